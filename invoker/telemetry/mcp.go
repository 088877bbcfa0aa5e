// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Peer says over what two sides speak MCP, or its like over gRPC. What is not
// known is empty.
type Peer struct {
	Ensemble  string // on the side of the client, the name of the ensemble or server
	Protocol  string // the version, such as "2025-11-25"
	Session   string // Mcp-Session-Id
	Transport string // "pipe" or "tcp"
	Network   string // "http" or "grpc"; empty over pipes
	System    string // "grpc" for the tool service; empty for JSON-RPC
	Address   string // the host of the other side
	Port      int
	// Application is the name by which a mesh knows the server, such as the app
	// id of Dapr. Spans have it, and the tool, by the names mcp.app_id and
	// mcp.tool_name, too, which came before the conventions.
	Application string
}

// measured are the attributes that measurements have too.
func (p Peer) measured(client bool) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 12)
	for _, a := range []attribute.KeyValue{
		keyEnsemble.String(p.Ensemble), keyProtocol.String(p.Protocol), keyTransport.String(p.Transport),
		keyNetProtocol.String(p.Network), keyRPCSystem.String(p.System),
	} {
		if a.Value.AsString() != "" {
			list = append(list, a)
		}
	}
	if client && p.Address != "" {
		list = append(list, keyServerAddress.String(p.Address))
		if p.Port != 0 {
			list = append(list, keyServerPort.Int(p.Port))
		}
	}
	return list
}

// Call is a request as the conventions of MCP see it. For the tool service over
// gRPC the methods are those of MCP that mean the same.
type Call struct {
	Method    string          // such as "tools/call"
	Tool      string          // its own name, of tools/call
	Prompt    string          // of prompts/get
	URI       string          // of requests about a resource
	ID        string          // of the JSON-RPC request
	RPC       string          // the full method of gRPC, such as "package.Service/Method"
	Arguments json.RawMessage // of the tool; recorded with Options.Content alone
}

// aliases are the names that requests had before there were conventions; see
// docs/observability.
var aliases = map[string]string{"tools/call": "mcp.call", "tools/list": "mcp.tools.list"}

// Request is a request to a server, or of a client.
type Request struct {
	operation
	duration metric.Float64Histogram
}

// StartRequest begins a request to a server, as its client. Nil, which all
// methods take, is returned if ctx carries no Telemetry.
func StartRequest(ctx context.Context, call Call, peer Peer) (context.Context, *Request) {
	return From(ctx).request(ctx, call, peer, true)
}

// StartServing begins the work on a request of a client, as its server. What
// came with the request has been taken by [Telemetry.Extract]. The context
// carries the Telemetry.
func (t *Telemetry) StartServing(ctx context.Context, call Call, peer Peer) (context.Context, *Request) {
	return t.request(With(ctx, t), call, peer, false)
}

func (t *Telemetry) request(ctx context.Context, call Call, peer Peer, client bool) (context.Context, *Request) {
	if t == nil {
		return ctx, nil
	}
	name, measured := bounded(call.Method, maxName), append(peer.measured(client), keyMethod.String(call.Method))
	switch {
	case call.Tool != "":
		name += " " + call.Tool
		measured = append(measured, keyOperation.String("execute_tool"), keyToolName.String(call.Tool))
	case call.Prompt != "":
		name += " " + call.Prompt
		measured = append(measured, keyPrompt.String(call.Prompt))
	}
	more := conversationOf(ctx)
	for _, a := range []attribute.KeyValue{
		keySession.String(peer.Session), keyResource.String(call.URI), keyRequestID.String(call.ID),
		keyRPCMethod.String(call.RPC), keyAlias.String(aliases[call.Method]), keyApplication.String(peer.Application),
	} {
		if a.Value.AsString() != "" {
			more = append(more, a)
		}
	}
	if peer.Application != "" && call.Tool != "" {
		more = append(more, keyOldToolName.String(call.Tool))
	}
	kind, duration := trace.SpanKindClient, t.instruments.request
	if !client {
		kind, duration = trace.SpanKindServer, t.instruments.serving
		if peer.Address != "" {
			more = append(more, keyClientAddress.String(peer.Address))
			if peer.Port != 0 {
				more = append(more, keyClientPort.Int(peer.Port))
			}
		}
	}
	r := &Request{t.start(ctx, name, kind, measured, more...), duration}
	if around, ok := ctx.Value(aroundKey{}).(trace.SpanContext); ok && !client {
		r.span.AddLink(trace.Link{SpanContext: around})
	}
	r.recordJSON(keyArguments, call.Arguments)
	return r.ctx, r
}

// Agreed notes the version of the protocol, if it is known only after the
// request began.
func (r *Request) Agreed(protocol string) { r.late(keyProtocol, protocol) }

// Tool names the tool, if it is known only after the request began that there
// is one: names that a client made up must not become names of spans.
func (r *Request) Tool(name string) {
	if r != nil && name != "" {
		r.span.SetName("tools/call " + name)
		r.late(keyOperation, "execute_tool")
		r.late(keyToolName, name)
	}
}

// Prompt names the prompt, likewise.
func (r *Request) Prompt(name string) {
	if r != nil && name != "" {
		r.span.SetName("prompts/get " + name)
		r.late(keyPrompt, name)
	}
}

func (r *Request) late(key attribute.Key, value string) {
	if r != nil && value != "" {
		r.measured = append(r.measured, key.String(value))
		r.span.SetAttributes(key.String(value))
	}
}

// Listed notes how many tools a list has, and how many were set aside.
func (r *Request) Listed(tools, aside int) {
	if r != nil {
		r.span.SetAttributes(keyTools.Int(tools), keyAside.Int(aside))
	}
}

// Refused notes the code of a JSON-RPC error, or of a gRPC status, that the
// request was answered with.
func (r *Request) Refused(code string) { r.late(keyStatusCode, code) }

// End ends the request; content is what a tool returned.
func (r *Request) End(content []canister.Content, fault *Fault) {
	if r == nil {
		return
	}
	r.recordContent(keyResult, content)
	r.end(r.duration, fault)
}

// Session is a connection to a server, or that of a client, while it lasts.
type Session struct {
	duration metric.Float64Histogram
	began    time.Time
	mu       sync.Mutex
	measured []attribute.KeyValue
	protocol bool // is among them
}

// StartSession begins a connection to a server; there is no span of it, only
// the measurement of its duration when it ends.
func (t *Telemetry) StartSession(peer Peer, client bool) *Session {
	if t == nil {
		return nil
	}
	duration := t.instruments.clientSession
	if !client {
		duration = t.instruments.serverSession
	}
	return &Session{duration: duration, began: time.Now(), measured: peer.measured(client), protocol: peer.Protocol != ""}
}

// Agreed notes the version of the protocol, if it is known only after the
// session began; the first one counts. It may be called concurrently.
func (s *Session) Agreed(protocol string) {
	if s == nil || protocol == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.protocol {
		s.protocol = true
		s.measured = append(s.measured, keyProtocol.String(protocol))
	}
}

// End ends the session; a fault says that it was lost.
func (s *Session) End(fault *Fault) {
	if s == nil {
		return
	}
	s.mu.Lock()
	measured := s.measured
	s.mu.Unlock()
	if fault != nil {
		measured = append(measured[:len(measured):len(measured)], keyErrorType.String(fault.Type))
	}
	s.duration.Record(context.Background(), time.Since(s.began).Seconds(), metric.WithAttributes(measured...))
}

// Connect is an attempt to connect an ensemble, the listing of its tools
// included.
type Connect struct{ operation }

// StartConnect begins an attempt; what is asked meanwhile is in its trace. It is
// the root of that and belongs to no conversation, because an attempt is for all
// who wait: the span of ctx, of the one who came first, is linked.
func StartConnect(ctx context.Context, ensemble string) (context.Context, *Connect) {
	t := From(ctx)
	if t == nil {
		return ctx, nil
	}
	o := operation{telemetry: t, began: time.Now(), measured: []attribute.KeyValue{keyEnsemble.String(ensemble)}}
	o.ctx, o.span = t.tracer.Start(WithConversation(ctx, ""), "connect "+ensemble, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)),
		trace.WithTimestamp(o.began), trace.WithAttributes(o.measured...))
	return o.ctx, &Connect{o}
}

// End ends the attempt.
func (c *Connect) End(tools, aside int, fault *Fault) {
	if c == nil {
		return
	}
	c.span.SetAttributes(keyTools.Int(tools), keyAside.Int(aside))
	c.end(c.telemetry.instruments.connect, fault)
}
