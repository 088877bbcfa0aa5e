// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/servedcall"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// served is one tool call of a client, from its request to its response. It may take
// several rounds (see rounds).
type served struct {
	server  *Server
	tool    *offeredTool // nil if no tool has the name
	call    invoker.Call
	record  audit.Record
	reports *reports
	ctx     context.Context // of the request that started the call
	modern  bool
}

// callTool answers tools/call (MCP 2025-11-25, server/tools § Calling Tools).
func (s *Server) callTool(ctx context.Context, span *telemetry.Request, req *mcp.CallToolRequest, from *caller) (mcp.Result, error) {
	waiting, err := s.parked.resumed(req.Params.RequestState, which("tools/call", req.Params.Name, req.Params.Arguments), from)
	if waiting != nil {
		span.Tool(req.Params.Name)
		return waiting.resume(ctx, req.Session, req.Params.GetProgressToken(), req.Params.InputResponses)
	}
	c := &served{
		server: s, ctx: ctx, modern: speaksModern(req.ProtocolVersion()),
		call: invoker.Call{ID: callID(req, from), Arguments: req.Params.Arguments},
	}
	c.record = audit.Record{
		Time: time.Now(), Asker: "mcp", Client: clientName(req.ClientInfo()), ClientName: access.NameFrom(from.ctx),
		Invocation: c.call.ID, Tool: textcut.Bytes(req.Params.Name, wire.MaxQuoted), Arguments: req.Params.Arguments,
	}
	if err != nil {
		return nil, c.refused(notWaiting, err)
	}
	tool, err := s.find(ctx, req.Params.Name, from)
	if err != nil {
		return nil, c.refused(invoker.Failf(invoker.Unavailable, "The tools are not available now."), err)
	}
	if tool == nil {
		return nil, c.refused(unknownTool, refusal(jsonrpc.CodeInvalidParams, "unknown tool %q", textcut.Bytes(req.Params.Name, wire.MaxQuoted)))
	}
	c.tool = tool
	if tool.offer != nil {
		c.ctx = context.WithValue(c.ctx, searchKey{}, &search{s, s.selects.of(from), tool.offer})
	}
	span.Tool(tool.name)
	c.record.Ensemble, c.record.Tool = tool.Ensemble().Name(), tool.def.Name
	if failure := c.admitted(); failure != nil {
		return c.answer(invoker.Output{}, failure), nil
	}
	release, ok := from.slot()
	if !ok {
		return c.answer(invoker.Output{}, invoker.UnavailableFor(time.Second, "Too many calls of this client are running.")), nil
	}
	defer release()
	return c.run(req, from)
}

var (
	unknownTool = invoker.Failf(invoker.ToolNotFound, "There is no such tool.")
	notWaiting  = invoker.Failf(invoker.InvalidArguments, "No call of this client waits for these answers.")
)

// refused records that a call was refused with err before it reached a tool.
func (c *served) refused(failure *invoker.Failure, err error) error {
	c.record.Ended(nil, failure)
	c.server.options.Audit.Keep(c.ctx, c.record)
	return err
}

// admitted returns the reason why a call may not run; nil if it may.
func (c *served) admitted() *invoker.Failure {
	if c.server.taking.Err() != nil {
		return invoker.Failf(invoker.Unavailable, "The server is shutting down.")
	}
	return servedcall.Unentitled(c.ctx, c.tool.def)
}

// run runs the call and answers it.
func (c *served) run(req *mcp.CallToolRequest, from *caller) (mcp.Result, error) {
	c.reports = newReports(c.ctx, req)
	c.call.Progress, c.call.Log = c.reports.listener(), c.reports.log
	caps := req.ClientCapabilities()
	switch {
	case !canBeAsked(caps) || !c.modern && !from.asks:
	case c.modern:
		r, err := newRounds(c.server, which("tools/call", req.Params.Name, req.Params.Arguments), len(req.Params.Arguments), from, req.Params.InputResponses)
		if err != nil {
			return c.answer(invoker.Output{}, invoker.UnavailableFor(time.Second, "The calls of this client that may ask it take too much memory at once.")), nil
		}
		r.pause, r.goOn = c.reports.pause, c.reports.goOn
		c.call.Progress = c.reports.progress // a later request may have a token
		return r.begin(c.ctx, func(ctx context.Context) (mcp.Result, error) {
			return c.finish(offer(ctx, &c.call, r.ask, nil, caps))
		})
	default:
		c.ctx = offer(c.ctx, &c.call, c.server.directly(c.ctx, req.Session, from), completes(c.ctx, req.Session), caps)
	}
	return c.finish(c.ctx)
}

// finish calls the tool and answers the call.
func (c *served) finish(ctx context.Context) (mcp.Result, error) {
	output, failure := c.invoke(ctx)
	c.reports.end()
	return c.result(output, failure)
}

// result returns the response, or an error if the tool has disappeared since it was
// found or needs a capability that the client did not declare.
func (c *served) result(output invoker.Output, failure *invoker.Failure) (mcp.Result, error) {
	answer := c.answer(output, failure)
	if failure != nil && failure.Code == invoker.ToolNotFound {
		return nil, refusal(jsonrpc.CodeInvalidParams, "unknown tool %q", c.tool.name)
	}
	if c.modern && failure != nil {
		if refused := undeclared(failure); refused != nil {
			return nil, refused
		}
	}
	return answer, nil
}

// invoke calls the tool.
func (c *served) invoke(ctx context.Context) (invoker.Output, *invoker.Failure) {
	call := &ToolCall{Tool: c.tool.Tool, Item: servedcall.Item(c.tool.Tool, c.server.own), Call: &c.call, Record: &c.record}
	invoke := c.server.auth.Load().invoke
	if c.tool.offer != nil { // the tools of the server that search
		invoke = makeCall
	}
	output, err := invoke(ctx, call)
	return output, servedcall.FailureOf(ctx, err, errServerClosed)
}

// answer builds the response of the call and records its outcome.
func (c *served) answer(output invoker.Output, failure *invoker.Failure) *rawResult {
	result, content := resultOf(c.tool, output, failure, c.modern)
	c.note(content, failure)
	return result
}

// note keeps the audit record of the call, and logs what the client is not told.
func (c *served) note(content []canister.Content, failure *invoker.Failure) {
	account := servedcall.Account{Audit: c.server.options.Audit, Log: c.server.log}
	account.Keep(c.ctx, &c.record, c.tool.name, content, failure, zap.String("client", c.record.Client))
}

// callID returns the ID of a call. The scope of an idempotency key is the identity of the
// caller, or else its session.
func callID(req *mcp.CallToolRequest, from *caller) string {
	key, _ := req.Params.Meta[mcpadapter.IdempotencyKey].(string)
	return servedcall.ID("mcp", cmp.Or(from.identity, req.Session.ID()), key)
}
