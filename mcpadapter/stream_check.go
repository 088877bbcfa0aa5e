// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"errors"
	"io"

	"github.com/consort-go/consort/internal/sse"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// checkedStream is an event stream from the server. If an event is too large or not a
// message, the SDK would end the session without keeping the reason; checkedStream ends
// only the request that the stream answers, or the stream if it is not for one request.
type checkedStream struct {
	io.Closer
	events *sse.Reader
	id     jsonrpc.ID  // ID of the request; not valid if the stream is not for one request
	spoil  func(error) // records the reason
	of     *roundTripper
	joined bool // over HTTP with SSE: the event with the endpoint has come

	waiting []byte // checked, but not yet read
	over    error
}

func (t *roundTripper) checkStream(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	s := &checkedStream{Closer: body, events: sse.NewReader(body, t.limit), id: outgoingFrom(ctx).id, of: t}
	reason := &t.streamErr
	if x := exchangeFrom(ctx); x != nil && s.id.IsValid() {
		reason = &x.rejected
	}
	s.spoil = func(err error) { reason.Store(&err) }
	return s
}

// Read implements io.Reader.
func (s *checkedStream) Read(p []byte) (int, error) {
	for len(s.waiting) == 0 {
		if s.over != nil {
			return 0, s.over
		}
		s.fill()
	}
	n := copy(p, s.waiting)
	s.waiting = s.waiting[n:]
	return n, nil
}

// fill reads and checks one event.
func (s *checkedStream) fill() {
	e, err := s.events.Next()
	s.over = err
	if errors.Is(err, sse.ErrTooLarge) {
		s.refuse(&tooLargeError{s.of.limit})
		return
	}
	if e.Retry > 0 {
		e.Retry = max(e.Retry, firstRetry) // the SDK waits as long as the server says
	}
	if s.of.agreed() >= wire.Modern { // streams are not resumed: MCP 2026-07-28, basic/transports § Streamable HTTP
		e.ID, e.Retry = "", 0
	}
	var broken error
	if isMessage(e) {
		_, broken = jsonrpc.DecodeMessage(e.Data)
	}
	switch {
	case e.IsPartial && (broken != nil || len(e.Data) == 0): // cut off
	case broken != nil:
		s.refuse(&protocolError{"an event on its stream is not a JSON-RPC message", true})
	case s.passes(e):
		s.waiting = e.Bytes()
	}
}

// passes reports whether the SDK gets an event. On the stream of HTTP with SSE it takes each
// event for a message, after the first one with the endpoint (MCP 2024-11-05, basic/transports §
// HTTP with SSE).
func (s *checkedStream) passes(e sse.Event) bool {
	switch {
	case !s.of.apart:
		return true
	case e.Name == "endpoint" && !s.joined:
		s.joined = true
		return true
	}
	return isMessage(e)
}

func isMessage(e sse.Event) bool {
	return len(e.Data) > 0 && (e.Name == "" || e.Name == "message")
}

// refuse ends the stream and, if it is for one request, answers that with an error.
func (s *checkedStream) refuse(reason error) {
	s.spoil(reason)
	if s.over = io.EOF; !s.id.IsValid() {
		return
	}
	answer, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: s.id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: reason.Error()}})
	if err == nil {
		event := sse.Event{Data: answer}
		s.waiting = event.Bytes()
	}
}
