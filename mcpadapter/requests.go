// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// client returns the SDK's client for one connection. Notifications that this
// package cares about are taken off the wire before the SDK sees them.
func (c *connection) client() *mcp.Client {
	o := c.options
	options := &mcp.ClientOptions{Capabilities: o.capabilities(), ElicitationHandler: c.elicit}
	if options.Capabilities.Sampling != nil {
		// The SDK's handler without tools drops those of a request, and refuses
		// messages with several blocks.
		options.CreateMessageWithToolsHandler = c.sample
	}
	client := mcp.NewClient(&mcp.Implementation{Name: o.ClientName, Version: o.ClientVersion}, options)
	for _, root := range o.Roots {
		client.AddRoots(&mcp.Root{URI: root.URI, Name: root.Name})
	}
	client.AddReceivingMiddleware(c.decline)
	return client
}

// capabilities returns what the client declares.
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

// capabilitiesFor returns what the client declares with a call, where the protocol
// lets each request declare it (MCP 2026-07-28, SEP-2575): no model if the call has
// none, and no tools for one that takes none.
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

// decline answers requests that nobody is there for: "method not found", as for
// any method that is not there (JSON-RPC 2.0, § 5.1).
func (c *connection) decline(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		if strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		ctx, span := c.answering(ctx, method, req)
		defer func() { span.End(nil, answeredWith(span, err)) }()
		o := c.options
		switch {
		case method == "sampling/createMessage" && o.Sample == nil && (!o.SampleCalls || c.asker(ctx) == nil),
			method == "elicitation/create" && o.Elicit == nil && c.asker(ctx) == nil:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client does not offer " + method}
		case method == "roots/list" && o.CallRoots:
			if x := c.askedBy(ctx); x != nil && x.roots != nil {
				return c.callRoots(ctx, x)
			}
		}
		return next(ctx, method, req)
	}
}

// callRoots answers roots/list with the roots of the client that runs the call of x.
func (c *connection) callRoots(ctx context.Context, x *exchange) (mcp.Result, error) {
	roots, err := consult(ctx, c, func(ctx context.Context) ([]Root, error) { return rootsFrom(ctx, x.roots) })
	if err != nil {
		return nil, err
	}
	result := &mcp.ListRootsResult{Roots: []*mcp.Root{}}
	for _, root := range roots {
		result.Roots = append(result.Roots, &mcp.Root{URI: root.URI, Name: root.Name})
	}
	return result, nil
}

func (c *connection) elicit(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	asked := &invoker.ElicitRequest{Server: c.options.Server, Message: req.Params.Message, URL: req.Params.URL}
	if asked.URL != "" {
		client := ""
		if x := c.askedBy(ctx); x != nil {
			client = x.origin.Client
		}
		asked.OnCompletion = c.onCompletion(req.Params.ElicitationID, client)
	}
	if x := exchangeFrom(ctx); x != nil && x.personal {
		asked.Anew = true // a round of SEP-2322: the server has answered the call, and keeps nothing of it
	}
	if req.Params.RequestedSchema != nil {
		schema, err := json.Marshal(req.Params.RequestedSchema)
		if err != nil {
			return nil, err
		}
		asked.Schema = schema
		if written := textKept(req.Params.Meta, formKey); written != nil {
			asked.Schema = written
		}
	}
	answer, err := consult(ctx, c, func(ctx context.Context) (*invoker.ElicitResult, error) { return c.person(ctx)(ctx, asked) })
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

// asker is the call that a question of the server belongs to; nil if nobody
// knows. A round of a call (SEP-2322) has its context; before 2026-07-28 it can
// only be the one that is in flight alone.
func (c *connection) asker(ctx context.Context) *invoker.Call {
	if x := c.askedBy(ctx); x != nil {
		return x.call
	}
	return nil
}

// askedBy is the exchange of that call.
func (c *connection) askedBy(ctx context.Context) *exchange {
	if x := exchangeFrom(ctx); x != nil && x.personal { // else that of the handshake
		return x
	}
	return c.wire.only()
}

// person returns who answers a question: the embedder, or the person of the
// call. Nobody says no.
func (c *connection) person(ctx context.Context) func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	if c.options.Elicit != nil {
		return c.options.Elicit
	}
	if call := c.asker(ctx); call != nil && call.Person != nil {
		return call.Person
	}
	return func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return &invoker.ElicitResult{Action: invoker.Decline}, nil
	}
}

// consult calls one of the embedder's functions while the calls that wait for
// its answer stand still. It returns when ctx or the connection ends, or the
// time for an answer, also if the function does not.
func consult[T any](ctx context.Context, c *connection, fn func(context.Context) (T, error)) (T, error) {
	limit := fmt.Errorf("no answer within %s", c.options.AnswerTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.AnswerTimeout, limit)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	defer c.hold(ctx)()
	type outcome struct {
		answer T
		err    error
	}
	returned := make(chan outcome, 1)
	started := c.start(func() {
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

// hold stops the time limits of the call that a question belongs to: a round
// of a call (SEP-2322) has its context. Before 2026-07-28 nothing says which
// call it is, so that all of the connection are held.
func (c *connection) hold(ctx context.Context) (resume func()) {
	if x := exchangeFrom(ctx); x != nil && x.call != nil {
		return x.call.Hold()
	}
	var resumes []func()
	for _, call := range c.wire.inFlight() {
		resumes = append(resumes, call.Hold())
	}
	return func() {
		for _, resume := range resumes {
			resume()
		}
	}
}

// recoverInto makes the panic of an embedder's function the error of the request.
func recoverInto(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the client's function panicked: %v", p)
	}
}
