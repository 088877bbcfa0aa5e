// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// alive is how often a silent stream sends a comment, so that proxies keep it open.
const alive = 20 * time.Second

// live streams the entries of a conversation after a position, as Server-Sent Events (HTML
// Standard, § 9.2). The ID of an event is the number of canisters so far, and Last-Event-ID
// continues there.
func (c conversationPages) live(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	after, err := strconv.Atoi(r.URL.Query().Get("after"))
	if last, failed := strconv.Atoi(r.Header.Get("Last-Event-ID")); failed == nil {
		after, err = last, nil
	}
	if err != nil || after < 1 || after > info.Length {
		c.console.refuse(w, r, http.StatusBadRequest, "The conversation has no such position.")
		return
	}
	s := &stream{w: w, control: http.NewResponseController(w), pages: c, person: p, info: info, position: after, sent: map[string]string{}}
	if err := s.preload(r.Context(), after); err != nil {
		c.console.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.run(r.Context(), after)
}

// stream is one response of live.
type stream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	pages    conversationPages
	person   *person
	info     history.Info
	position int
	// turn are the canisters since the latest message of the model, and sent the HTML of
	// their entries that the reader has.
	turn    []canister.Canister
	sent    map[string]string
	attempt int64
}

// preload reads the canisters before the stream that later ones may belong to.
func (s *stream) preload(ctx context.Context, after int) error {
	from := max(0, after-windowSize)
	for one, err := range s.pages.console.Store.Read(ctx, s.info.ID, from) {
		if err != nil {
			return err
		}
		if from++; from > after {
			return nil
		}
		s.hold(one)
	}
	return nil
}

// hold adds a canister to the turn; a message of the model begins it anew.
func (s *stream) hold(one canister.Canister) {
	if kind := one.Kind(); kind == canister.KindAssistant || kind == canister.KindUser {
		s.turn, s.sent = nil, map[string]string{}
	}
	s.turn = append(s.turn, one)
}

// run sends events until ctx ends or the reader leaves.
func (s *stream) run(ctx context.Context, after int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan func() error)
	go func() {
		defer close(events)
		for happened, err := range s.pages.watch(ctx, s.info, after) {
			do := func() error { return s.event(happened, err) }
			select {
			case events <- do:
			case <-ctx.Done():
				return
			}
		}
	}()
	ticker := time.NewTicker(alive)
	defer ticker.Stop()
	err := s.send("begin", "", false)
	for err == nil {
		select {
		case do, ok := <-events:
			if !ok {
				return
			}
			err = do()
		case <-ticker.C:
			_, err = s.w.Write([]byte(": alive\n\n"))
			err = errors.Join(err, s.control.Flush())
		}
	}
	cancel()
	for range events { // until the watch has ended
	}
}

// watch watches a conversation with the engine that runs it, or by reading the store.
func (c conversationPages) watch(ctx context.Context, info history.Info, after int) iter.Seq2[engine.Event, error] {
	if c.console.runs(info) {
		return c.console.Engine.Watch(ctx, info.ID, after)
	}
	return (&engine.Watcher{Log: c.console.Store}).Watch(ctx, info.ID, after)
}

func (s *stream) event(happened engine.Event, err error) error {
	switch e := happened.(type) {
	case nil:
		return errors.Join(errGone, err)
	case engine.Added:
		s.position = e.Position
		s.hold(e.Canister)
		return s.entries()
	case engine.Delta:
		return s.delta(e)
	case engine.Ended:
		said := "The turn is over: " + string(e.Reason)
		if e.Error != "" {
			said = "The turn failed: " + s.pages.console.Redact(e.Error)
		}
		form, err := json.Marshal(said)
		if err != nil {
			return err
		}
		return s.send("ended", string(form), false)
	}
	return nil
}

var errGone = errors.New("the conversation is not watched any longer")

// entries sends the entries of the turn that are new or have changed.
func (s *stream) entries() error {
	for _, e := range entries(s.position-len(s.turn), s.turn) {
		key := entryID(e)
		markup := fragment(s.pages.entry(s.person, s.info, e))
		if s.sent[key] == markup {
			continue
		}
		s.sent[key] = markup
		form, err := json.Marshal(map[string]string{"id": key, "html": markup})
		if err == nil {
			err = s.send("entry", string(form), true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// delta sends text of a message that is not complete.
func (s *stream) delta(d engine.Delta) error {
	said := map[string]any{"text": s.pages.console.Redact(d.Text()), "again": d.Attempt != s.attempt || d.Missed > 0}
	s.attempt = d.Attempt
	if tool, progress, ok := d.Progress(); ok {
		said["status"] = s.pages.console.Redact(fmt.Sprintf("%s: %s", tool, progress.Message))
	}
	form, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return s.send("delta", string(form), false)
}

// send writes an event. Only the event of an entry moves the position that a reader
// continues from.
func (s *stream) send(name, data string, moves bool) error {
	var b bytes.Buffer
	if moves {
		fmt.Fprintf(&b, "id: %d\n", s.position)
	}
	fmt.Fprintf(&b, "event: %s\n", name)
	fmt.Fprintf(&b, "data: %s\n\n", data) // JSON, on one line
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return err
	}
	return s.control.Flush()
}
