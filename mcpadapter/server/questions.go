// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Older protocols are supported too, with features that the newest one deprecates.

package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// offer gives a call access to the client's user and model, and its context access to
// the roots, as far as the client declares these capabilities. complete tells the
// client that the interaction with an elicitationId is complete; nil if its protocol
// has no such notification.
func offer(ctx context.Context, call *invoker.Call, ask wire.Asker, complete func(id string), caps *mcp.ClientCapabilities) context.Context {
	if caps.Elicitation != nil {
		call.Person = func(ctx context.Context, q *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			params, err := elicitParams(q, caps.Elicitation)
			if err != nil {
				return nil, err
			}
			if params.ElicitationID != "" && q.OnCompletion != nil && complete != nil {
				q.OnCompletion(func() { complete(params.ElicitationID) })
			}
			answer, err := ask(ctx, q.Key, params)
			if err != nil {
				return nil, err
			}
			result, ok := answer.(*mcp.ElicitResult)
			if !ok {
				return nil, invoker.Failf(invoker.Protocol, "The client's answer to a question for its user is not valid.")
			}
			return &invoker.ElicitResult{Action: invoker.Action(result.Action), Content: result.Content}, nil
		}
	}
	if caps.Sampling != nil {
		call.Model, call.ModelTools = clientModel(ask, caps.Sampling), caps.Sampling.Tools != nil
	}
	if !hasRoots(caps) {
		return ctx
	}
	return wire.WithRoots(ctx, ask)
}

// canBeAsked reports whether a client declares that it answers any kind of question.
func canBeAsked(caps *mcp.ClientCapabilities) bool {
	return caps != nil && (caps.Elicitation != nil || caps.Sampling != nil || hasRoots(caps))
}

// directly returns an asker that sends requests to the client while the client waits
// for the result (before 2026-07-28).
func (s *Server) directly(requestCtx context.Context, session *mcp.ServerSession, from *caller) wire.Asker {
	return func(toolCtx context.Context, _ string, question mcp.InputRequest) (mcp.InputResponse, error) {
		// The SDK finds the stream of the call through the context of its request.
		ctx, cancel := context.WithTimeoutCause(requestCtx, s.options.AnswerTimeout, errNoAnswer)
		defer cancel()
		defer context.AfterFunc(toolCtx, cancel)()
		if from.gone != nil {
			var left context.CancelCauseFunc
			ctx, left = context.WithCancelCause(ctx)
			defer left(nil)
			done := make(chan struct{})
			defer close(done)
			go func() {
				select {
				case <-from.gone:
					left(errClientGone)
				case <-done:
				}
			}()
		}
		span := questioning(toolCtx, question, from, session)
		var answer mcp.InputResponse
		var err error
		switch q := question.(type) {
		case *mcp.ElicitParams:
			answer, err = session.Elicit(ctx, q)
		case *mcp.CreateMessageWithToolsParams:
			answer, err = session.CreateMessageWithTools(ctx, q)
		case *mcp.ListRootsParams:
			answer, err = session.ListRoots(ctx, q)
		}
		failure := askFailure(toolCtx, ctx, err)
		span.End(nil, wire.ErrorFault(span, cmp.Or(err, failure)))
		return answer, failure
	}
}

// completeTimeout bounds how long a client may take to accept the notification that
// an interaction is complete.
const completeTimeout = 5 * time.Second

// completes returns a function that tells the client of a request that an interaction
// at a page is complete (MCP 2025-11-25, client/elicitation; 2026-07-28 has neither the
// notification nor the id). While the request is open, the notification is sent on its
// stream, and afterwards on the stream of the session.
func completes(requestCtx context.Context, session *mcp.ServerSession) func(id string) {
	return func(id string) {
		params := &mcp.ElicitationCompleteParams{ElicitationID: id}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(requestCtx), completeTimeout)
		defer cancel()
		if requestCtx.Err() == nil && session.NotifyElicitationComplete(ctx, params) == nil {
			return
		}
		ctx, cancel = context.WithTimeout(context.Background(), completeTimeout)
		defer cancel()
		_ = session.NotifyElicitationComplete(ctx, params) // a client that has gone does not wait for it
	}
}

var (
	errNoAnswer   = errors.New("the client has not answered in time")
	errClientGone = errors.New("the client has disconnected")
)

// undeclared returns the error for a request that needs a capability that its client
// did not declare (MCP 2026-07-28, SEP-2575); nil if the request failed for another
// reason.
func undeclared(err error) error {
	var capability, required string
	switch {
	case errors.Is(err, invoker.ErrNoPerson):
		capability, required = "elicitation", `{"elicitation":{}}`
	case errors.Is(err, invoker.ErrNoModel):
		capability, required = "sampling", `{"sampling":{}}`
	case errors.Is(err, invoker.ErrNoModelTools):
		capability, required = "sampling.tools", `{"sampling":{"tools":{}}}`
	case errors.Is(err, errNoRoots):
		capability, required = "roots", `{"roots":{}}`
	default:
		return nil
	}
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "this needs a capability of the client that it has not declared: " + capability,
		Data:    json.RawMessage(`{"requiredCapabilities":` + required + `}`),
	}
}

// askFailure returns the error that a tool gets for a question without an answer.
func askFailure(toolCtx, ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case toolCtx.Err() != nil:
		return toolCtx.Err()
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return invoker.Failf(invoker.Unavailable, "The client could not be asked: %w", err)
}

func elicitParams(q *invoker.ElicitRequest, can *mcp.ElicitationCapabilities) (*mcp.ElicitParams, error) {
	params := &mcp.ElicitParams{Mode: "form", Message: q.Message}
	if q.URL != "" {
		if can.URL == nil {
			return nil, invoker.Failf(invoker.Unavailable, "The client cannot send its user to a page.")
		}
		params.Mode, params.URL, params.ElicitationID = "url", q.URL, rand.Text()
		return params, nil
	}
	if can.Form == nil && can.URL != nil {
		return nil, invoker.Failf(invoker.Unavailable, "The client cannot show its user a form.")
	}
	schema := q.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	params.RequestedSchema = schema
	return params, nil
}
