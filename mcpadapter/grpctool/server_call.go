// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/servedcall"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
)

// served is one call of a client.
type served struct {
	server *Server
	from   *caller
	ctx    context.Context // with the trusted values and the span of the call
	seen   *telemetry.Request
	name   string // of the tool, as used by the client
	trace  string // trace id in the request; used if the metadata has none
	call   invoker.Call
	record audit.Record
}

// callTool implements CallTool.
func (s *Server) callTool(from *caller, request *toolspb.ToolCallRequest) *toolspb.ToolCallResponse {
	c := &served{
		server: s, from: from, name: request.GetToolName(), trace: request.GetTraceId(),
		call: invoker.Call{ID: servedcall.ID("grpc", from.identity, request.GetIdempotencyKey()), Arguments: json.RawMessage(request.GetArgumentsJson())},
	}
	c.record = audit.Record{
		Time: time.Now(), Asker: "grpc", Client: textcut.Bytes(request.GetCallerAgentId(), maxQuoted), ClientName: access.NameFrom(from.ctx),
		Invocation: c.call.ID, Tool: textcut.Bytes(c.name, maxQuoted), Arguments: c.call.Arguments,
	}
	what := telemetry.Call{Method: "tools/call", RPC: rpcOf(from.ctx), Arguments: c.call.Arguments}
	c.ctx, c.seen = s.options.Telemetry.StartServing(from.ctx, what, clientOf(from.ctx))
	line := accesslog.From(c.ctx)
	line.Method(what.Method)
	line.Tool(textcut.Bytes(c.name, maxQuoted))
	line.Traced(c.ctx)
	output, failure := c.run()
	response, content, failure := respond(output, failure, s.options.MaxMessage)
	if failure != nil {
		line.Failed(string(failure.Code))
	}
	c.seen.End(content, toolFailed(failure))
	c.note(content, failure)
	return response
}

// run finds the tool and calls it, if the call is admitted.
func (c *served) run() (invoker.Output, *invoker.Failure) {
	s := c.server
	leave, refused := s.enter(c.from.client, access.Request)
	if refused != nil {
		return invoker.Output{}, refused
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errServerClosed) })()
	tool, err := s.find(ctx, c.name)
	switch {
	case err != nil:
		return invoker.Output{}, invoker.Failf(invoker.Unavailable, "The tools are not available now: nothing was done.")
	case tool == nil:
		return invoker.Output{}, invoker.Failf(invoker.ToolNotFound, "There is no tool %q.", textcut.Bytes(c.name, maxQuoted))
	}
	c.seen.Tool(c.name)
	def := tool.Definition()
	c.record.Ensemble, c.record.Tool = tool.Ensemble().Name(), def.Name
	if refused := servedcall.Unentitled(ctx, def); refused != nil {
		return invoker.Output{}, refused
	}
	output, err := s.guard.Load().invoke(ctx, &server.ToolCall{Tool: tool.Tool, Item: servedcall.Item(tool.Tool, s.own), Call: &c.call, Record: &c.record})
	return output, servedcall.FailureOf(ctx, err, errServerClosed)
}

// note keeps the audit record of the call, and logs what the client is not told.
func (c *served) note(content []canister.Content, failure *invoker.Failure) {
	fields := []zap.Field{zap.String("caller", c.record.Client)}
	if telemetry.TraceID(c.ctx) == "" && isTraceID(c.trace) {
		fields = append(fields, zap.String(telemetry.TraceField, c.trace))
	}
	account := servedcall.Account{Audit: c.server.options.Audit, Log: c.server.log}
	account.Keep(c.ctx, &c.record, textcut.Bytes(c.name, maxQuoted), content, failure, fields...)
}
