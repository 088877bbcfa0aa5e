// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/httpapi/internal/eventstream"
	"github.com/consort-go/consort/internal/openstreams"
)

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
	s := eventstream.New(w, heartbeat)
	defer s.Stop()
	if r.Method == http.MethodHead { // its response has no end otherwise
		s.Begin()
		return
	}
	err = f.read(r.Context(), conversation, after, idleOf(s), func(event Event) bool {
		return s.Send(event.ID.String(), event.Name, event.Data)
	})
	_, isEnded := openstreams.Reason(r.Context()) // the client may not have left
	switch {
	case isEnded && !s.HasBegun():
		writeError(w, openstreams.Explain(r.Context(), err))
	case r.Context().Err() != nil, s.HasBegun() && errors.Is(err, engine.ErrClosed): // the client connects again, here or to another process
	case !s.HasBegun():
		writeError(w, err)
	default:
		s.Send("", "error", asError(err).body())
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

// idleOf returns the heartbeat of a stream.
func idleOf(s *eventstream.Stream) *heartbeat {
	return &heartbeat{ticks: s.Ticks(), beat: s.Beat, flush: s.Flush}
}
