// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
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
		call: invoker.Call{ID: callID(from.identity, request.GetIdempotencyKey()), Arguments: json.RawMessage(request.GetArgumentsJson())},
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
	for _, need := range def.Needs {
		// Not every invoker checks this itself.
		if _, ok := invoker.TrustedValue(ctx, need); !ok {
			return invoker.Output{}, invoker.Failf(invoker.Unauthorized, "The tool acts on behalf of a user, and the server does not know the user of this call.")
		}
	}
	output, err := s.guard.Load().invoke(ctx, &server.ToolCall{Tool: tool.Tool, Item: itemOf(tool.Tool, s.own), Call: &c.call, Record: &c.record})
	failure := invoker.AsFailure(err)
	if failure != nil && context.Cause(ctx) == errServerClosed && errors.Is(err, context.Canceled) {
		failure = invoker.Failf(invoker.Canceled, "The server ended during the call. It may or may not have taken effect.")
	}
	return output, failure
}

// itemOf returns how selections see a tool. Own is the ensemble of ServerOptions.Tools.
func itemOf(t *ensemble.Tool, own *ensemble.Ensemble) ensemble.Item {
	def := t.Definition()
	if t.Ensemble() == own {
		return ensemble.Item{Kind: ensemble.ToolItem, Name: def.Name, Hints: def.Hints}
	}
	return ensemble.Item{Kind: ensemble.ToolItem, Ensemble: t.Ensemble().Name(), Name: def.Name, Hints: t.TrustedHints()}
}

// note keeps the audit record of the call, and logs what the client is not told.
func (c *served) note(content []canister.Content, failure *invoker.Failure) {
	var err error
	if failure != nil {
		err = failure
	}
	c.record.Ended(content, err)
	c.server.options.Audit.Keep(c.ctx, c.record)
	if failure == nil {
		return
	}
	fields := []zap.Field{
		zap.String("tool", textcut.Bytes(c.name, maxQuoted)), zap.String("code", string(failure.Code)), zap.String("invocation", c.call.ID),
		zap.String("caller", c.record.Client),
	}
	if c.record.ClientName != "" {
		fields = append(fields, zap.String("client_name", c.record.ClientName))
	}
	if telemetry.TraceID(c.ctx) == "" && isTraceID(c.trace) {
		fields = append(fields, zap.String(telemetry.TraceField, c.trace))
	}
	var forged *invoker.Forged
	switch log := c.server.log; {
	case errors.As(failure, &forged):
		logevent.Log(c.ctx, log, zapcore.WarnLevel, "a client sent trusted values as arguments", logevent.ServeCallForged, append(fields, zap.Strings("forged", forged.Names))...)
	case failure.Cause != nil:
		logevent.Log(c.ctx, log, zapcore.WarnLevel, "a call failed", logevent.ServeCallFailed, append(fields, zap.NamedError("cause", failure.Cause))...)
	default:
		logevent.Log(c.ctx, log, zapcore.DebugLevel, "a call failed", logevent.ServeCallFailed, fields...)
	}
}

// callID returns the ID of a call. A client may choose its own with an
// idempotency key, but only within its own scope: its identity is hashed into it.
// Without an identity, each request gets a new ID.
func callID(identity, key string) string {
	const longest = 256
	if key == "" || identity == "" || len(key) > longest {
		return "grpc-" + rand.Text()
	}
	sum := sha256.Sum256([]byte(identity + "\x00" + key))
	return "grpc-" + base32.StdEncoding.EncodeToString(sum[:16])[:26]
}
