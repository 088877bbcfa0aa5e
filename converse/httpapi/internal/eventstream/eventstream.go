// SPDX-License-Identifier: Apache-2.0

// Package eventstream writes server-sent events (WHATWG HTML § 9.2).
package eventstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/jsontext"
)

// DefaultHeartbeat is how often a silent stream sends a comment. Proxies often close a
// connection that is silent for a minute.
const DefaultHeartbeat = 15 * time.Second

// reconnectPause is how long the client of a stream should wait before it connects again,
// in milliseconds.
const reconnectPause = "1000"

// Stream writes server-sent events. It is not safe for concurrent use.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ticker  *time.Ticker
	begun   bool
	isGone  bool // a write has failed
	buffer  bytes.Buffer
}

// New returns a stream with a heartbeat, or one every DefaultHeartbeat if it is not positive. The caller must call Stop.
func New(w http.ResponseWriter, heartbeat time.Duration) *Stream {
	if heartbeat <= 0 {
		heartbeat = DefaultHeartbeat
	}
	return &Stream{w: w, control: http.NewResponseController(w), ticker: time.NewTicker(heartbeat)}
}

// Stop ends the heartbeats.
func (s *Stream) Stop() { s.ticker.Stop() }

// HasBegun reports whether the header of the response was sent.
func (s *Stream) HasBegun() bool { return s.begun }

// Ticks has a tick for each heartbeat.
func (s *Stream) Ticks() <-chan time.Time { return s.ticker.C }

// Begin sends the header of the response.
func (s *Stream) Begin() {
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

// Beat sends a comment, which clients ignore.
func (s *Stream) Beat() bool {
	_, err := s.w.Write([]byte(":\n"))
	s.isGone = s.isGone || err != nil
	return s.Flush()
}

// Send writes an event; id and name may be empty. The data must be one line. It returns
// false if the client has gone.
func (s *Stream) Send(id, name string, data []byte) bool {
	s.Begin()
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

// SendForm writes an event with a form as data. Members are added to the form in pairs. An error means that
// the client has gone.
func (s *Stream) SendForm(name string, form map[string]any, members ...any) error {
	for i := 0; i < len(members); i += 2 {
		form[members[i].(string)] = members[i+1]
	}
	data, err := jsontext.Encode(form)
	if err == nil && !s.Send("", name, data) {
		err = context.Canceled
	}
	return err
}

// Flush sends the written events, or the header before the first one.
func (s *Stream) Flush() bool {
	s.Begin()
	err := s.control.Flush()
	s.isGone = s.isGone || err != nil && !errors.Is(err, http.ErrNotSupported)
	return !s.isGone
}
