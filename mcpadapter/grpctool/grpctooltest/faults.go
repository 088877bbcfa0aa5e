// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// connectionKinds are the faults that affect a connection as a whole.
func connectionKinds() []kind {
	return []kind{
		{
			Info:    Info{"silence", "Sends nothing: on the connection, or in answer to the request.", anywhere()},
			connect: func(w *wire, _ Rule) bool { return ignored(w) },
			request: func(r *request, _ Rule) (bool, error) { return r.silent() },
		},
		{
			Info: Info{"slow", "Waits Delay (1 s) and continues.", anywhere()},
			connect: func(w *wire, rule Rule) bool {
				select {
				case <-time.After(cmp.Or(rule.Delay, time.Second)):
					return true
				case <-w.closed:
					return false
				}
			},
			request: slow,
		},
		{
			Info: Info{"drip", "Continues, and sends everything on the connection from then on byte by byte, Delay (10 ms) apart.", append([]Place{"connect"}, answering()...)},
			connect: func(w *wire, rule Rule) bool {
				w.slow(cmp.Or(rule.Delay, 10*time.Millisecond))
				return true
			},
			request: func(r *request, rule Rule) (bool, error) {
				r.wire.slow(cmp.Or(rule.Delay, 10*time.Millisecond))
				return true, nil
			},
		},
		{
			Info:    Info{"cut", "Resets the TCP connection. The server continues.", anywhere()},
			connect: func(w *wire, _ Rule) bool { w.cut(); return false },
			request: func(r *request, _ Rule) (bool, error) { r.wire.cut(); return r.silent() },
		},
		{
			Info: Info{"die", "Stops serving, as Server.Stop does, until Server.Start.", anywhere()},
			connect: func(w *wire, _ Rule) bool {
				w.server.work.Go(w.server.Stop)
				return ignored(w)
			},
			request: func(r *request, _ Rule) (bool, error) {
				r.server.work.Go(r.server.Stop)
				return r.silent()
			},
		},
	}
}

// byteKinds are the faults that affect the bytes of a connection.
func byteKinds() []kind {
	return []kind{
		{
			Info:    Info{"half", "Sends half of an answer, and resets the TCP connection.", answering()},
			request: func(r *request, _ Rule) (bool, error) { r.enlarge(1 << 20); r.wire.halve(r.wire.cut); return true, nil },
		},
		{
			Info:    Info{"half-then-silence", "Sends half of an answer, and nothing more on the connection.", answering()},
			request: func(r *request, _ Rule) (bool, error) { r.enlarge(1 << 20); r.wire.halve(func() {}); return true, nil },
		},
		{
			Info: Info{"junk", "Sends Size (1 KiB) bytes that are not HTTP/2, and closes the connection.", []Place{"connect"}},
			connect: func(w *wire, rule Rule) bool {
				_, _ = io.WriteString(w.socket, strings.Repeat("\xde\xad\xbe\xef", cmp.Or(rule.Size, 1<<10)/4))
				return drained(w)
			},
		},
		{
			Info: Info{"bad-gateway", "Answers like a proxy without a backend: with the status 502 and an HTML page, over HTTP/1.1 at " + string("connect") + " and over HTTP/2 elsewhere.", anywhere()},
			connect: func(w *wire, _ Rule) bool {
				_, _ = fmt.Fprintf(w.socket, "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(page), page)
				return drained(w)
			},
			request: func(r *request, _ Rule) (bool, error) { r.wire.page(r.id, "502", page); return r.silent() },
		},
	}
}

const page = "<html><body><h1>502 Bad Gateway</h1></body></html>"

// answerKinds are the faults that affect a response.
func answerKinds() []kind {
	return []kind{
		{
			Info:    Info{"huge-headers", "Sends metadata of Size (100 kB) before the answer and again after it.", answering()},
			request: hugeHeaders,
		},
		{
			Info: Info{"huge-result", "Answers with Size (20 MiB) additional bytes.", answering()},
			request: func(r *request, rule Rule) (bool, error) {
				r.enlarge(cmp.Or(rule.Size, 20<<20))
				return true, nil
			},
		},
		{
			Info: Info{"bomb", "Answers with Size (64 MiB) additional bytes, compressed to a small fraction.", answering()},
			request: func(r *request, rule Rule) (bool, error) {
				r.enlarge(cmp.Or(rule.Size, 64<<20))
				r.compress = true
				return true, nil
			},
		},
		{
			Info: Info{"broken-message", "Answers with bytes that are not a message.", answering()},
			request: func(r *request, _ Rule) (bool, error) {
				r.raw = []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff not a message")
				return true, nil
			},
		},
		{
			Info: Info{"many-tools", "Lists Count (10,000) additional tools: many0, many1 and so on.", []Place{"list"}},
			request: func(r *request, rule Rule) (bool, error) {
				for i := range cmp.Or(rule.Count, 10_000) {
					r.tools(&toolspb.ToolDefinition{Name: fmt.Sprintf("many%d", i), Description: "One of many.", InputSchemaJson: `{"type":"object"}`})
				}
				return true, nil
			},
		},
		{
			Info:    Info{"odd-tools", "Lists additional tools: two without a name, one whose name has Size (10 kB) letters, two with the name twice, one with a schema that is not JSON, one with an invalid schema, and one with an odd output schema.", []Place{"list"}},
			request: oddTools,
		},
	}
}

// streamKinds are the faults that use HTTP/2 frames or gRPC statuses.
func streamKinds() []kind {
	return []kind{
		{
			Info: Info{"html", "Answers with the status 200 and an HTML page, like some proxies.", asked()},
			request: func(r *request, _ Rule) (bool, error) {
				r.wire.page(r.id, "200", page)
				return r.silent()
			},
		},
		{
			Info: Info{"status", "Answers with only a status: Code (UNAVAILABLE) and Text.", asked()},
			request: func(_ *request, rule Rule) (bool, error) {
				return false, status.Error(cmp.Or(rule.Code, codes.Unavailable), cmp.Or(rule.Text, "the script says so"))
			},
		},
		{
			Info: Info{"reset", "Resets the stream (RST_STREAM) with Reason (8, CANCEL). 7, REFUSED_STREAM, states that nothing was done, which is true only before the effect.", asked()},
			request: func(r *request, rule Rule) (bool, error) {
				r.wire.reset(r.id, cmp.Or(rule.Reason, 8))
				return r.silent()
			},
		},
		{
			Info: Info{"goaway", "Sends GOAWAY with Reason (0, NO_ERROR): the connection accepts no new requests, and running ones continue.", asked()},
			request: func(r *request, rule Rule) (bool, error) {
				r.wire.goAway(lastStream, rule.Reason)
				return true, nil
			},
		},
		{
			Info: Info{"goaway-unseen", "Sends GOAWAY with Reason (0, NO_ERROR), which states that neither this request nor a later one was processed. That is true as long as the client makes one request at a time.", []Place{"list", "before-effect"}},
			request: func(r *request, rule Rule) (bool, error) {
				r.wire.goAway(max(r.id, 2)-2, rule.Reason)
				return r.silent()
			},
		},
	}
}

// certificateKinds are the TLS faults.
func certificateKinds() []kind {
	shows := func(fault Fault, about string, which func(*certificates) *tls.Certificate) kind {
		return kind{
			Info: Info{fault, about, []Place{"connect"}}, tls: true,
			connect: func(w *wire, _ Rule) bool {
				w.bad = which(w.server.certificates)
				return true
			},
		}
	}
	return []kind{
		shows("expired", "Uses an expired certificate. Needs Options.TLS.", func(c *certificates) *tls.Certificate { return &c.expired }),
		shows("other-name", "Uses a certificate for another host. Needs Options.TLS.", func(c *certificates) *tls.Certificate { return &c.otherName }),
		shows("self-signed", "Uses a certificate of an unknown authority. Needs Options.TLS.", func(c *certificates) *tls.Certificate { return &c.selfSigned }),
	}
}

// ignored reads everything from a connection and never responds.
func ignored(w *wire) bool {
	_, _ = io.Copy(io.Discard, w.socket)
	return false
}

// drained gives the client time to read the response: closing a socket with unread
// input would reset it.
func drained(w *wire) bool {
	if tcp, ok := w.socket.(interface{ CloseWrite() error }); ok {
		_ = tcp.CloseWrite()
	}
	return ignored(w)
}

// silent waits until the request is cancelled.
func (r *request) silent() (bool, error) {
	<-r.stream.Context().Done()
	return false, context.Cause(r.stream.Context())
}

func slow(r *request, rule Rule) (bool, error) {
	select {
	case <-time.After(cmp.Or(rule.Delay, time.Second)):
		return true, nil
	case <-r.stream.Context().Done():
		return false, r.stream.Context().Err()
	}
}

func hugeHeaders(r *request, rule Rule) (bool, error) {
	const piece = 4 << 10
	huge := metadata.MD{}
	for size := cmp.Or(rule.Size, 100_000); size > 0; size -= piece {
		huge.Append("x-huge", strings.Repeat("x", min(size, piece)))
	}
	r.stream.SetTrailer(huge)
	return true, r.stream.SetHeader(huge)
}

// enlarge adds size bytes to the response.
func (r *request) enlarge(size int) {
	more := strings.Repeat("x", size)
	switch answer := r.answer.(type) {
	case *toolspb.ListToolsResponse:
		r.tools(&toolspb.ToolDefinition{Name: "large", Description: more, InputSchemaJson: `{"type":"object"}`})
	case *toolspb.ToolCallResponse:
		r.answer = &toolspb.ToolCallResponse{Success: true, ResultJson: `"` + more + `"`, ErrorCode: answer.ErrorCode}
	}
}

// tools adds tools to a listing.
func (r *request) tools(more ...*toolspb.ToolDefinition) {
	answer := r.answer.(*toolspb.ListToolsResponse)
	answer.Tools = append(answer.Tools, more...)
}

func oddTools(r *request, rule Rule) (bool, error) {
	const object = `{"type":"object"}`
	r.tools(
		&toolspb.ToolDefinition{InputSchemaJson: object}, &toolspb.ToolDefinition{InputSchemaJson: object},
		&toolspb.ToolDefinition{Name: strings.Repeat("n", cmp.Or(rule.Size, 10_000)), InputSchemaJson: object},
		&toolspb.ToolDefinition{Name: "twice", InputSchemaJson: object}, &toolspb.ToolDefinition{Name: "twice", InputSchemaJson: object},
		&toolspb.ToolDefinition{Name: "no-json", InputSchemaJson: `{"type":`},
		&toolspb.ToolDefinition{Name: "no-schema", InputSchemaJson: `{"type":"object","properties":{"a":{"type":"nonsense"}}}`},
		&toolspb.ToolDefinition{Name: "odd-output", InputSchemaJson: object, OutputSchemaJson: `[]`},
	)
	return true, nil
}
