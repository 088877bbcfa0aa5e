// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/openstreams"
)

// defaultHeartbeat is how often a silent stream sends a comment. Proxies often close a
// connection that is silent for a minute.
const defaultHeartbeat = 15 * time.Second

// reconnectPause is how long the client of a stream should wait before it connects again,
// in milliseconds.
const reconnectPause = "1000"

// Serve writes the events of a conversation as server-sent events (WHATWG HTML § 9.2),
// until the client leaves or the feed is closed. The header Last-Event-ID, or else the
// parameter after of the query, says which events the client has: the ids are the texts
// of [Cursor]. A stream that cannot begin is answered with an error as JSON. A silent
// stream gets a comment every heartbeat; zero means 15 s.
//
// The caller must have checked that the client may read the conversation.
func (f *Feed) Serve(w http.ResponseWriter, r *http.Request, conversation string, heartbeat time.Duration) {
	after, err := cursorOf(r)
	if err != nil {
		writeError(w, err)
		return
	}
	s := newStream(w, heartbeat)
	defer s.stop()
	if r.Method == http.MethodHead { // its response has no end otherwise
		s.begin()
		return
	}
	err = f.read(r.Context(), conversation, after, s.idle(), func(event Event) bool {
		return s.send(event.ID.String(), event.Name, event.Data)
	})
	why, isEnded := openstreams.Reason(r.Context()) // the client may not have left
	switch {
	case isEnded && !s.begun:
		writeError(w, failure(http.StatusServiceUnavailable, "unavailable", "The request ended before its answer was ready: "+why+".", "Send the request again."))
	case r.Context().Err() != nil, s.begun && errors.Is(err, engine.ErrClosed): // the client connects again, here or to another process
	case !s.begun:
		writeError(w, err)
	default:
		s.send("", "error", asError(err).body())
	}
}

// cursorOf returns the place where the client of a stream continues.
func cursorOf(r *http.Request) (Cursor, error) {
	text, name := r.Header.Get("Last-Event-ID"), "Last-Event-ID"
	if text == "" {
		text, name = r.URL.Query().Get("after"), "after"
	}
	cursor, err := ParseCursor(text)
	if err != nil {
		return cursor, invalid(name, "It is not the id of an event of this stream.", "Send the id of the last event as it was received, or none for all events.")
	}
	return cursor, nil
}

// stream writes server-sent events. It is not safe for concurrent use.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ticker  *time.Ticker
	begun   bool
	isGone  bool // a write has failed
	buffer  bytes.Buffer
}

func newStream(w http.ResponseWriter, heartbeat time.Duration) *stream {
	if heartbeat <= 0 {
		heartbeat = defaultHeartbeat
	}
	return &stream{w: w, control: http.NewResponseController(w), ticker: time.NewTicker(heartbeat)}
}

func (s *stream) stop() { s.ticker.Stop() }

func (s *stream) idle() *heartbeat {
	return &heartbeat{ticks: s.ticker.C, beat: s.beat, flush: s.flush}
}

// begin sends the header of the response.
func (s *stream) begin() {
	if s.begun {
		return
	}
	s.begun = true
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	s.w.WriteHeader(http.StatusOK)
	// No blank line follows, here and after a comment: OpenAI's clients for Python and Go would read an event without data.
	_, _ = s.w.Write([]byte("retry: " + reconnectPause + "\n")) // a failure comes again
}

// beat sends a comment, which clients ignore.
func (s *stream) beat() bool {
	_, err := s.w.Write([]byte(":\n"))
	s.isGone = s.isGone || err != nil
	return s.flush()
}

// send writes an event; id and name may be empty. The data must be one line. It returns
// false if the client has gone.
func (s *stream) send(id, name string, data []byte) bool {
	s.begin()
	s.buffer.Reset()
	for _, field := range [...][2]string{{"id", id}, {"event", name}} {
		if field[1] != "" {
			s.buffer.WriteString(field[0] + ": " + strings.NewReplacer("\n", " ", "\r", " ").Replace(field[1]) + "\n")
		}
	}
	s.buffer.WriteString("data: ")
	s.buffer.Write(data)
	s.buffer.WriteString("\n\n")
	_, err := s.w.Write(s.buffer.Bytes())
	s.isGone = s.isGone || err != nil
	return !s.isGone
}

// sendForm writes an event with a form as data. Members are added to the form in pairs. An error means that
// the client has gone.
func (s *stream) sendForm(name string, form map[string]any, members ...any) error {
	for i := 0; i < len(members); i += 2 {
		form[members[i].(string)] = members[i+1]
	}
	data, err := jsontext.Encode(form)
	if err == nil && !s.send("", name, data) {
		err = context.Canceled
	}
	return err
}

// flush sends the written events, or the header if there are none.
func (s *stream) flush() bool {
	s.begin()
	err := s.control.Flush()
	s.isGone = s.isGone || err != nil && !errors.Is(err, http.ErrNotSupported)
	return !s.isGone
}
