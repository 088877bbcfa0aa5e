// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/redact"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Peer describes the connection between two sides that use MCP or its equivalent
// over gRPC. Unknown fields are empty.
type Peer struct {
	Ensemble  string // for clients, the name from [Ensemble], or else the name of the server
	Protocol  string // the version, such as "2025-11-25"
	Session   string // Mcp-Session-Id
	Transport string // "pipe" or "tcp"
	Network   string // "http" or "grpc", which is recorded as http 2; empty for pipes
	System    string // "grpc" for the tool service; empty for JSON-RPC
	Address   string // the host of the other side
	Port      int
	// Client is the server's name for the client, such as the name of its token. It is an
	// attribute of measurements, so a server must have only a few such names.
	Client string
	// Application is the name of the server in a mesh, such as its Dapr app ID. Spans
	// then have it and the tool also under the names mcp.app_id and mcp.tool_name,
	// which are older than the conventions.
	Application string
}

// overGRPC is the network that the MCP conventions call HTTP 2 (§ Recording MCP
// transport).
const overGRPC = "grpc"

// measured returns the attributes for measurements of requests.
func (p Peer) measured(client bool) []attribute.KeyValue {
	list := named(make([]attribute.KeyValue, 0, 12), keyTransport.String(p.Transport), keyRPCSystem.String(p.System))
	if p.Network == overGRPC {
		list = append(list, keyNetVersion.String("2"))
	}
	return append(list, p.session(client)...)
}

// session returns the attributes for measurements of sessions.
func (p Peer) session(client bool) []attribute.KeyValue {
	list := named(make([]attribute.KeyValue, 0, 8), keyEnsemble.String(p.Ensemble), keyProtocol.String(p.Protocol))
	if p.Network == overGRPC {
		list = append(list, keyNetProtocol.String("http"))
	} else {
		list = named(list, keyNetProtocol.String(p.Network))
	}
	if client {
		return appendAddress(list, p, keyServerAddress, keyServerPort)
	}
	return named(list, keyClient.String(p.Client))
}

// named appends the attributes that are not empty.
func named(list []attribute.KeyValue, attributes ...attribute.KeyValue) []attribute.KeyValue {
	for _, a := range attributes {
		if a.Value.AsString() != "" {
			list = append(list, a)
		}
	}
	return list
}

func appendAddress(list []attribute.KeyValue, p Peer, address, port attribute.Key) []attribute.KeyValue {
	if p.Address == "" {
		return list
	}
	list = append(list, address.String(p.Address))
	if p.Port != 0 {
		list = append(list, port.Int(p.Port))
	}
	return list
}

// Call describes a request in terms of the MCP conventions. For the gRPC tool
// service, the methods are the equivalent ones of MCP.
type Call struct {
	Method    string          // such as "tools/call"
	Tool      string          // the tool's own name, for tools/call
	Prompt    string          // for prompts/get
	URI       string          // for requests about a resource
	ID        string          // the ID of the JSON-RPC request
	RPC       string          // the full gRPC method, such as "package.Service/Method"
	Arguments json.RawMessage // the tool's arguments; only recorded with Options.Content
}

// aliases are the names of requests from before the conventions; see
// docs/observability.
var aliases = map[string]string{"tools/call": "mcp.call", "tools/list": "mcp.tools.list"}

// Request is a request to a server or from a client.
type Request struct {
	operation
	served  bool
	excused bool // the status code is the client's fault
}

// StartRequest starts a request to a server, on the client side. It returns a nil
// *Request, whose methods do nothing, if ctx carries no Telemetry.
func StartRequest(ctx context.Context, call Call, peer Peer) (context.Context, *Request) {
	return busy(ctx).request(ctx, call, peer, false)
}

// StartServing starts the handling of a client's request, on the server side.
// Call [Telemetry.Extract] first for the headers of the request. The returned
// context carries the Telemetry.
func (t *Telemetry) StartServing(ctx context.Context, call Call, peer Peer) (context.Context, *Request) {
	return t.request(With(ctx, t), call, peer, true)
}

func (t *Telemetry) request(ctx context.Context, call Call, peer Peer, served bool) (context.Context, *Request) {
	if t == nil || t.idle {
		return ctx, nil
	}
	name, measured := call.Method, append(peer.measured(!served), keyMethod.String(call.Method))
	switch {
	case call.Tool != "":
		name += " " + call.Tool
		measured = append(measured, keyOperation.String("execute_tool"), keyToolName.String(call.Tool))
	case call.Prompt != "":
		name += " " + call.Prompt
		measured = append(measured, keyPrompt.String(call.Prompt))
	}
	more := named(conversationOf(ctx), keySession.String(peer.Session), keyRequestID.String(call.ID), keyRPCMethod.String(call.RPC),
		keyAlias.String(aliases[call.Method]), keyApplication.String(peer.Application))
	if peer.Application != "" && call.Tool != "" {
		more = append(more, keyOldToolName.String(call.Tool))
	}
	kind := trace.SpanKindClient
	if served {
		kind = trace.SpanKindServer
		more = appendAddress(more, peer, keyClientAddress, keyClientPort)
	}
	r := &Request{operation: t.start(ctx, name, kind, measured, more...), served: served}
	if around, ok := ctx.Value(aroundKey{}).(trace.SpanContext); ok && served {
		r.onSpan(func(span trace.Span) { span.AddLink(trace.Link{SpanContext: around}) })
	}
	if call.URI != "" && r.recording {
		r.set(keyResource.String(r.text(redact.URI(call.URI))))
	}
	r.recordArguments(call.Arguments)
	return r.ctx, r
}

// Agreed records the protocol version, if it becomes known only after the request
// began.
func (r *Request) Agreed(protocol string) {
	if r != nil && protocol != "" {
		r.measure(keyProtocol.String(protocol))
	}
}

// Tool records the name of the tool, if it becomes known only after the request
// began that the tool exists: names that a client made up must not become names
// of spans.
func (r *Request) Tool(name string) {
	if r != nil && name != "" {
		r.onSpan(func(span trace.Span) { span.SetName(bounded("tools/call "+name, maxName)) })
		r.measure(keyOperation.String("execute_tool"), keyToolName.String(name))
	}
}

// Prompt records the name of the prompt, like [Request.Tool].
func (r *Request) Prompt(name string) {
	if r != nil && name != "" {
		r.onSpan(func(span trace.Span) { span.SetName(bounded("prompts/get "+name, maxName)) })
		r.measure(keyPrompt.String(name))
	}
}

// Listed records the number of tools in a list, and the number that were set
// aside.
func (r *Request) Listed(tools, aside int) {
	if r != nil {
		r.set(keyTools.Int(tools), keyAside.Int(aside))
	}
}

// Refused records the code of the JSON-RPC error or the gRPC status, such as
// NOT_FOUND, in the response. If the request was served here and the code means a
// mistake of the client, the request is not a failure of the server, as the
// conventions of MCP and gRPC specify, even if End is called with a fault.
func (r *Request) Refused(code string) {
	if r != nil {
		r.excused = r.served && clientsFault[code]
		if code != "" {
			r.code(keyStatusCode, code)
		}
	}
}

// clientsFault has the codes that are not errors of the server that returns them
// (conventions of MCP, rpc.response.status_code of servers; of gRPC, § Server).
var clientsFault = map[string]bool{
	"-32700": true, "-32600": true, "-32601": true, "-32602": true, "-32002": true,
	"CANCELLED": true, "INVALID_ARGUMENT": true, "NOT_FOUND": true, "ALREADY_EXISTS": true, "PERMISSION_DENIED": true,
	"RESOURCE_EXHAUSTED": true, "FAILED_PRECONDITION": true, "ABORTED": true, "OUT_OF_RANGE": true, "UNAUTHENTICATED": true,
}

// End ends the request; content is the result of a tool. Only the first call
// counts.
func (r *Request) End(content []canister.Content, fault *Fault) {
	if r == nil || r.ended {
		return
	}
	if fault == nil {
		r.recordResult(content)
	}
	if r.excused {
		fault = nil
	}
	duration := r.telemetry.instruments.request
	if r.served {
		duration = r.telemetry.instruments.serving
	}
	r.end(duration, fault)
}

// Session is an open connection to a server or from a client.
type Session struct {
	telemetry *Telemetry
	duration  metric.Float64Histogram
	began     time.Time
	mu        sync.Mutex
	measured  []attribute.KeyValue
	protocol  bool // whether measured has the protocol
	ended     bool
}

// StartSession starts a connection. It has no span; its duration is measured when
// it ends. client reports whether this side is the client.
func (t *Telemetry) StartSession(peer Peer, client bool) *Session {
	if t == nil {
		return nil
	}
	duration := t.instruments.clientSession
	if !client {
		duration = t.instruments.serverSession
	}
	return &Session{telemetry: t, duration: duration, began: time.Now(), measured: peer.session(client), protocol: peer.Protocol != ""}
}

// Agreed records the protocol version, if it becomes known only after the session
// began; only the first version counts. It may be called concurrently.
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

// End ends the session; a fault means that the connection was lost. Only the
// first call counts.
func (s *Session) End(fault *Fault) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if fault != nil {
		s.measured = append(s.measured, keyErrorType.String(fault.kind()))
	}
	bound(s.measured, maxName)
	s.telemetry.measureSeconds(context.Background(), s.duration, time.Since(s.began).Seconds(), func() metric.MeasurementOption {
		return metric.WithAttributes(s.measured...)
	})
}

// Connect is an attempt to connect an ensemble, including the listing of its
// tools.
type Connect struct{ operation }

// StartConnect starts an attempt. Requests during the attempt are in its trace.
// It is the root of a new trace and belongs to no conversation, because all
// waiting callers share an attempt. It has a link to the span of ctx, which
// belongs to the first of them.
func StartConnect(ctx context.Context, ensemble string) (context.Context, *Connect) {
	t := busy(ctx)
	if t == nil {
		return ctx, nil
	}
	measured := []attribute.KeyValue{keyEnsemble.String(ensemble)}
	o := t.begin(WithConversation(ctx, ""), "connect "+ensemble, measured, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
	return o.ctx, &Connect{o}
}

// End ends the attempt. Only the first call counts.
func (c *Connect) End(tools, aside int, fault *Fault) {
	if c == nil || c.ended {
		return
	}
	c.set(keyTools.Int(tools), keyAside.Int(aside))
	c.end(c.telemetry.instruments.connect, fault)
}
