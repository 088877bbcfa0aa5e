// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/invoker"
)

// heartbeat is how often a silent stream sends a comment, so that proxies keep it open.
const heartbeat = 20 * time.Second

// live streams the entries of a conversation after a position, as Server-Sent Events (HTML
// Standard, § 9.2). Only entries have IDs, as in the feed ([httpapi.Cursor]), so that a page that
// connects again with Last-Event-ID gets the text of a message from its beginning. From the middle, a
// part of a secret could not be recognized.
func (c conversationPages) live(w http.ResponseWriter, r *http.Request, p *person) {
	info, ok := c.console.info(w, r, p)
	if !ok {
		return
	}
	after, err := httpapi.ParseCursor(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	if err != nil || after.Position < 1 || after.Position > info.Length {
		c.console.refuse(w, r, http.StatusBadRequest, "The conversation has no such position.")
		return
	}
	c.recordReading(r, p, info)
	end, ok := c.console.streams.Open(p.session.owner)
	if !ok {
		c.console.refuse(w, r, http.StatusTooManyRequests, fmt.Sprintf("You have %d pages of conversations open, which is the limit. Close some of them.", openstreams.DefaultPerOwner))
		return
	}
	defer end()
	s := &stream{w: w, control: http.NewResponseController(w), pages: c, person: p, info: info, position: after.Position, sent: map[string][]byte{},
		form: cmp.Or(r.URL.Query().Get(formID), rand.Text()), isLeft: isUnfinished(info)}
	if err := s.preload(r.Context()); err != nil {
		c.console.fail(w, r, c.console.unread.hide(r.Context(), p, err))
		return
	}
	openstreams.Require(r.Context(), func() error { return s.maySee(r.Context()) })
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s.run(r.Context(), r.Header.Get("Last-Event-ID") != "" || r.URL.Query().Get("again") != "")
}

// stream is one response of live.
type stream struct {
	pages    conversationPages
	person   *person
	info     history.Info
	position int
	// recent are the canisters since the latest message of the model or of a person, and sent
	// their entries that the reader has.
	recent []canister.Canister
	model  string // of the messages before them
	sent   map[string][]byte
	draft  draft
	form   string // the ID of the form for a message, on the page
	isLeft bool   // the page may say that this process does not continue the turn

	mu      sync.Mutex // guards the response
	w       http.ResponseWriter
	control *http.ResponseController
}

// preload reads the canisters before the stream that later ones may belong to: back to the message with
// the latest calls, or to the beginning. The page has their entries.
func (s *stream) preload(ctx context.Context) error {
	var before []canister.Canister
	for end, step := s.position, windowSize; end > 0 && !slices.ContainsFunc(before, beginsCalls); step *= 4 {
		from := max(0, end-step)
		part, err := s.pages.read(ctx, s.info, from, end)
		if err != nil {
			return err
		}
		before, end = append(part, before...), from
	}
	for _, one := range before {
		s.addRecent(one)
	}
	if len(before) == 0 { // it was deleted
		return history.ErrNotFound
	}
	for _, one := range s.rendered() {
		s.sent[one.key] = one.data
	}
	return nil
}

// beginsCalls reports whether a canister is a message after which no call before it gets a result.
func beginsCalls(one canister.Canister) bool {
	return isFromModel(one) || one.Kind() == canister.KindUser
}

// addRecent adds a canister to the recent ones, which begin anew with a message of the model or of a
// person.
func (s *stream) addRecent(one canister.Canister) {
	if beginsCalls(one) {
		for _, before := range s.recent {
			if a, ok := before.(canister.Assistant); ok {
				s.model = cmp.Or(a.Model, s.model)
			}
		}
		s.recent, s.sent = nil, map[string][]byte{}
	}
	s.recent = append(s.recent, one)
}

// run sends the events after the position until ctx ends or the reader leaves. A page that connects again
// also gets the state of the turn, which may have changed meanwhile.
func (s *stream) run(ctx context.Context, again bool) {
	ctx, cancel := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { s.sendHeartbeats(ctx, cancel) })
	defer beats.Wait()
	defer cancel()
	if s.send("", "begin", nil) != nil || again && s.sendState(ctx) != nil {
		return
	}
	for event, err := range s.pages.console.feedOf(s.info).Events(ctx, s.info.ID, httpapi.Cursor{Position: s.position}) {
		if err != nil || clientcalls.IsApproval(s.info) && openstreams.Check(ctx) != nil || s.event(ctx, event) != nil {
			return // the page connects again
		}
	}
}

// maySee returns why the person may not see the conversation any longer, as the page finds it out:
// the approval of a call is visible to the person who is named only while it waits for that person.
func (s *stream) maySee(ctx context.Context) error {
	switch _, err := s.pages.console.visible(ctx, s.person, s.info.ID); {
	case errors.Is(err, history.ErrNotFound):
		return errSessionEnded
	case err != nil:
		return &invoker.Failure{Code: invoker.Unavailable, Message: "The conversation cannot be read now.", Cause: err, Retryable: true}
	}
	return nil
}

// sendHeartbeats sends a comment now and then until ctx ends. If that fails it cancels the stream.
func (s *stream) sendHeartbeats(ctx context.Context, cancel func()) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if s.write([]byte(":\n\n")) != nil {
				cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// event sends an event of the feed as the page shows it.
func (s *stream) event(ctx context.Context, event httpapi.Event) error {
	switch e := event.Event.(type) {
	case engine.Added:
		s.position = e.Position
		s.addRecent(e.Canister)
		if isFromModel(e.Canister) {
			s.draft = draft{}
		}
		if err := s.entries(event.ID); err != nil || !changesState(e.Canister) && !s.continues() {
			return err
		}
		return s.sendState(ctx)
	case engine.Delta:
		if isNew := e.Attempt != s.draft.attempt; isNew && s.continues() {
			if err := s.sendState(ctx); err != nil {
				return err
			}
		}
		return s.delta(e)
	case engine.Ended:
		if err := s.send("", "ended", saidOf(e, s.pages.console.clean)); err != nil {
			return err
		}
		return s.sendState(ctx)
	}
	return nil
}

// entries sends the entries of the turn that are new or have changed. The last one has the
// ID: a reader that is cut off before gets all of them again.
func (s *stream) entries(at httpapi.Cursor) error {
	var changed []liveEntry
	for _, one := range s.rendered() {
		if !bytes.Equal(s.sent[one.key], one.data) {
			s.sent[one.key] = one.data
			changed = append(changed, one)
		}
	}
	for i, one := range changed {
		id := ""
		if i == len(changed)-1 {
			id = at.String()
		}
		if err := s.send(id, "entry", s.pages.console.renderings.own(one, s.person.session)); err != nil {
			return err
		}
	}
	return nil
}

// delta sends text of a message that is not complete, or the progress of a tool.
func (s *stream) delta(d engine.Delta) error {
	c := s.pages.console
	said := map[string]any{}
	if s.draft.begin(d) {
		said["again"] = true
	}
	if text := s.draft.next(d.Text(), c.RedactPart); text != "" {
		said["text"] = text
	} else if tool, progress, ok := d.Progress(); ok {
		said["status"] = c.clean.shown(fmt.Sprintf("%s: %s", tool, progress.Message))
	}
	if len(said) == 0 {
		return nil
	}
	return s.send("", "delta", said)
}

// send writes an event with a value, or its JSON form in one line. id may be empty.
func (s *stream) send(id, name string, form any) error {
	data, isForm := form.(json.RawMessage)
	if !isForm {
		var err error
		if data, err = json.Marshal(form); err != nil { // one line
			return err
		}
	}
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data)
	return s.write(b.Bytes())
}

func (s *stream) write(text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}

// feedOf returns the feed of a conversation: that of the engine that runs it, or one that
// reads the store.
func (c *Console) feedOf(info history.Info) *httpapi.Feed {
	if c.runs(info) && c.Feed != nil {
		return c.Feed
	}
	return c.others
}

// prewatch keeps the text that a conversation is going to stream for the page that is about
// to be opened. It returns when nothing from now on is missed.
func (c *Console) prewatch(ctx context.Context, conversation string) {
	info, err := c.Store.Info(ctx, conversation)
	if err != nil || info.Length == 0 {
		return // the page shows the error
	}
	for range c.feedOf(info).Events(ctx, conversation, httpapi.Cursor{Position: info.Length - 1}) {
		return // after the last canister, which comes again
	}
}

// onlyLog is an engine that watches logs, for conversations that this process does not run.
type onlyLog struct{ log history.Log }

var errNotRun = errors.New("this process does not run the conversation")

func (o onlyLog) Send(context.Context, string, canister.User) error     { return errNotRun }
func (o onlyLog) Answer(context.Context, string, canister.Answer) error { return errNotRun }
func (o onlyLog) Cancel(context.Context, string) error                  { return errNotRun }
func (o onlyLog) Close(context.Context) error                           { return nil }

func (o onlyLog) Watch(ctx context.Context, conversation string, after int) iter.Seq2[engine.Event, error] {
	return (&engine.Watcher{Log: o.log}).Watch(ctx, conversation, after)
}
