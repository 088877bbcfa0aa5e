// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// checkedStream is a stream of events from the server. The SDK ends the session
// with an event that is too large or no message, and forgets why; here it ends
// the one request that the stream answers, or the stream if it is for all.
type checkedStream struct {
	io.Closer
	events eventReader
	id     jsonrpc.ID  // of the request; not valid if the stream is for all
	spoil  func(error) // takes the reason

	waiting []byte // checked, and not yet read
	over    error
}

func (t *tripper) checkStream(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	s := &checkedStream{Closer: body, events: eventReader{bufio.NewReader(body), t.limit}, id: outgoingFrom(ctx).id}
	spoilt := &t.spoilt
	if x := exchangeFrom(ctx); x != nil && s.id.IsValid() {
		spoilt = &x.spoilt
	}
	s.spoil = func(err error) { spoilt.Store(&err) }
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

// fill checks one event.
func (s *checkedStream) fill() {
	e, err := s.events.next()
	s.over = err
	var large *tooLargeError
	if errors.As(err, &large) {
		s.refuse(err)
		return
	}
	var broken error
	if len(e.data) > 0 && (e.name == "" || e.name == "message") {
		_, broken = jsonrpc.DecodeMessage(e.data)
	}
	switch {
	case err != nil && (broken != nil || len(e.data) == 0): // cut off
	case broken != nil:
		s.refuse(&protocolError{"an event on its stream is no message of JSON-RPC"})
	default:
		s.waiting = e.text()
	}
}

// refuse answers in the server's place, and ends the stream.
func (s *checkedStream) refuse(reason error) {
	s.spoil(reason)
	if s.over = io.EOF; !s.id.IsValid() {
		return
	}
	answer, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: s.id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: reason.Error()}})
	if err == nil {
		s.waiting = sseEvent{data: answer}.text()
	}
}

// text is the event on the wire again, its data in one line: outside of
// strings a newline is nothing to JSON, and inside there is none.
func (e sseEvent) text() []byte {
	var b bytes.Buffer
	if e.name != "" {
		fmt.Fprintf(&b, "event: %s\n", e.name)
	}
	if e.id != "" {
		fmt.Fprintf(&b, "id: %s\n", e.id)
	}
	if e.retry > 0 {
		fmt.Fprintf(&b, "retry: %d\n", e.retry.Milliseconds())
	}
	if len(e.data) > 0 {
		fmt.Fprintf(&b, "data: %s\n", bytes.ReplaceAll(e.data, []byte("\n"), []byte(" ")))
	}
	if b.Len() == 0 {
		return nil
	}
	b.WriteByte('\n')
	return b.Bytes()
}
