// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/questiontext"
	"github.com/consort-go/consort/mcpadapter/internal/sdkcache"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// questions answers the requests of the server: for roots, for an answer of the person,
// and for one of the model.
type questions struct {
	options     *ClientOptions
	interceptor *interceptor
	life        *lifetime
	route       func() telemetry.Peer
	telemetry   *telemetry.Telemetry // from the context of open
	completions completions
}

// client returns the SDK's client for one connection. The interceptor handles the
// notifications that concern this package before the SDK sees them.
func (q *questions) client() *mcp.Client {
	o := q.options
	options := &mcp.ClientOptions{Capabilities: o.capabilities(), ElicitationHandler: q.elicit}
	if options.Capabilities.Sampling != nil {
		// The SDK's handler without tools drops the tools of a request, and refuses
		// messages with several blocks.
		options.CreateMessageWithToolsHandler = q.sample
	}
	client := mcp.NewClient(&mcp.Implementation{Name: o.ClientName, Version: o.ClientVersion}, options)
	for _, root := range o.Roots {
		client.AddRoots(&mcp.Root{URI: root.URI, Name: root.Name})
	}
	client.AddSendingMiddleware(sdkcache.KeepNewest())
	client.AddReceivingMiddleware(q.decline)
	return client
}

// capabilities returns the capabilities that the client declares.
func (o *ClientOptions) capabilities() *mcp.ClientCapabilities {
	can := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
		Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
	}}
	if o.Roots != nil || o.CallRoots {
		can.RootsV2 = &mcp.RootCapabilities{}
	}
	if o.Sample != nil || o.SampleCalls {
		can.Sampling = &mcp.SamplingCapabilities{}
	}
	if can.Sampling != nil && o.SampleTools {
		can.Sampling.Tools = &mcp.SamplingToolsCapabilities{}
	}
	return can
}

// capabilitiesFor returns the capabilities that the client declares with a call, where
// the protocol lets each request declare them (MCP 2026-07-28, SEP-2575). It leaves out
// sampling if the call has no model, and sampling.tools if the model takes no tools.
func (o *ClientOptions) capabilitiesFor(call *invoker.Call) any {
	can := o.capabilities()
	if o.Sample == nil && can.Sampling != nil && !call.ModelTools {
		can.Sampling.Tools = nil
	}
	if o.Sample == nil && call.Model == nil {
		can.Sampling = nil
	}
	return struct {
		*mcp.ClientCapabilities
		Roots *mcp.RootCapabilities `json:"roots,omitempty"`
	}{can, can.RootsV2}
}

// decline answers requests that the client cannot handle with "method not found", as
// for any unknown method (JSON-RPC 2.0, § 5.1).
func (q *questions) decline(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		if strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		ctx, span := q.answering(ctx, method, req)
		defer func() { span.End(nil, wire.ErrorFault(span, err)) }()
		defer recoverInto(&err) // the SDK panics if some members are null
		o := q.options
		switch {
		case method == "sampling/createMessage" && o.Sample == nil && (!o.SampleCalls || q.asker(ctx) == nil),
			method == "elicitation/create" && o.Elicit == nil && q.asker(ctx) == nil:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not offer " + method}
		case method == "roots/list" && o.CallRoots:
			if x := q.askedBy(ctx); x != nil && x.roots != nil {
				return q.callRoots(ctx, x)
			}
		}
		return next(ctx, method, req)
	}
}

// callRoots answers roots/list with the roots of the client that runs the call of x.
func (q *questions) callRoots(ctx context.Context, x *exchange) (mcp.Result, error) {
	roots, err := consult(ctx, q, func(ctx context.Context) ([]*mcp.Root, error) { return wire.AskRoots(ctx, x.roots) })
	if err != nil {
		return nil, err
	}
	return &mcp.ListRootsResult{Roots: roots}, nil
}

func (q *questions) elicit(ctx context.Context, req *mcp.ElicitRequest) (_ *mcp.ElicitResult, err error) {
	defer recoverInto(&err) // in a round of SEP-2322, the SDK calls it on a goroutine of its own
	asked := &invoker.ElicitRequest{Server: q.options.Server, Message: req.Params.Message, URL: req.Params.URL}
	if asked.URL != "" {
		client := ""
		if x := q.askedBy(ctx); x != nil {
			client = x.origin.Client
		}
		asked.OnCompletion = q.onCompletion(req.Params.ElicitationID, client)
	}
	if x := exchangeFrom(ctx); x != nil && x.personal {
		asked.Anew = true // a round of SEP-2322: the server keeps no state of the call
	}
	if req.Params.RequestedSchema != nil {
		if asked.Schema, err = json.Marshal(req.Params.RequestedSchema); err != nil {
			return nil, err
		}
		if written := questiontext.Kept(req.Params.Meta, questiontext.FormKey); written != nil {
			asked.Schema = written
		}
	}
	answer, err := consult(ctx, q, func(ctx context.Context) (*invoker.ElicitResult, error) { return q.person(ctx)(ctx, asked) })
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return &mcp.ElicitResult{Action: string(invoker.Dismiss)}, nil
	}
	result := &mcp.ElicitResult{Action: string(answer.Action), Content: answer.Content}
	if answer.Action == invoker.Accept && asked.URL == "" && result.Content == nil {
		result.Content = map[string]any{} // so that the schema's defaults are filled in
	}
	return result, nil
}

// asker returns the call that a question of the server belongs to, or nil if it is not
// known. A round of a call (SEP-2322) has the call's context. Before 2026-07-28 it can
// only be the call that is in flight alone.
func (q *questions) asker(ctx context.Context) *invoker.Call {
	if x := q.askedBy(ctx); x != nil {
		return x.call
	}
	return nil
}

// askedBy returns the exchange of that call.
func (q *questions) askedBy(ctx context.Context) *exchange {
	if x := exchangeFrom(ctx); x != nil && x.personal { // otherwise it is the exchange of the handshake
		return x
	}
	return q.interceptor.only()
}

// person returns the function that answers a question: the embedder's, or that of the
// call. Without either, the answer is Decline.
func (q *questions) person(ctx context.Context) func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if q.options.Elicit != nil {
		return q.options.Elicit
	}
	if call := q.asker(ctx); call != nil && call.Person != nil {
		return call.Person
	}
	return func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return &invoker.ElicitResult{Action: invoker.Decline}, nil
	}
}

// consult calls one of the embedder's functions while the time limits of the calls that
// wait for its answer are suspended. It returns when ctx, the connection or
// AnswerTimeout ends, even if the function does not.
func consult[T any](ctx context.Context, q *questions, fn func(context.Context) (T, error)) (T, error) {
	limit := fmt.Errorf("no answer within %s", q.options.AnswerTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, q.options.AnswerTimeout, limit)
	defer cancel()
	defer context.AfterFunc(q.life.ctx, cancel)()
	defer q.hold(ctx)()
	type outcome struct {
		answer T
		err    error
	}
	returned := make(chan outcome, 1)
	started := q.life.start(func() {
		var o outcome
		defer func() { returned <- o }()
		defer recoverInto(&o.err)
		o.answer, o.err = fn(ctx)
	})
	var none T
	if !started {
		return none, errClosed
	}
	select {
	case o := <-returned:
		return o.answer, o.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// hold suspends the time limits of the call that a question belongs to. A round of a
// call (SEP-2322) has the call's context. Before 2026-07-28 the protocol does not say
// which call it is, so the limits of all calls on the connection are suspended.
func (q *questions) hold(ctx context.Context) (resume func()) {
	if x := exchangeFrom(ctx); x != nil && x.call != nil {
		return x.call.Hold()
	}
	var resumes []func()
	for _, call := range q.interceptor.inFlight() {
		resumes = append(resumes, call.Hold())
	}
	return func() {
		for _, resume := range resumes {
			resume()
		}
	}
}

// recoverInto turns a panic into the error of the request.
func recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the client's function panicked: %v", p)
	}
}
