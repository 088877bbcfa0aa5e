// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/sender"
)

// Feed yields the events of conversations to many readers. All readers of a conversation
// share one [engine.Engine.Watch], and the JSON of each event is made once. A reader that
// was cut off continues where it was, with [Cursor], also at the feed of another
// process.
//
// Its methods may be called concurrently. The caller must call Close.
type Feed struct {
	engine engine.Engine
	store  history.Store
	life   context.Context
	end    context.CancelFunc

	mu      sync.Mutex
	topics  map[string]*topic
	running sync.WaitGroup // the watches of the topics

	latest atomic.Int64 // the number of the last event
}

// linger is how long a conversation without readers is still watched, so that a reader
// that was cut off gets the deltas that it has missed.
const linger = 10 * time.Second

// NewFeed returns a feed of the conversations of an engine; store is the store of the
// engine. The caller must close both, after the feed.
func NewFeed(e engine.Engine, store history.Store) *Feed {
	f := &Feed{engine: e, store: store, topics: make(map[string]*topic)}
	f.life, f.end = context.WithCancel(context.Background())
	return f
}

// Close ends the loops of all readers, with [engine.ErrClosed], and waits for the
// goroutines of the feed.
func (f *Feed) Close() {
	f.mu.Lock() // join does not begin a watch after the end
	f.end()
	f.mu.Unlock()
	f.running.Wait()
}

// Event is an event of a feed.
type Event struct {
	// ID names the event: a reader that has it continues after it.
	ID Cursor
	// Name is "canister", "delta" or "ended".
	Name string
	// Event is the event itself: an engine.Added, engine.Delta or engine.Ended.
	Event engine.Event
	// Data is the JSON form of the event: one line. Other readers share it, so it must not
	// be changed.
	Data json.RawMessage

	number int64 // counts the events of the feed, from 1
}

// Events yields the events of a conversation after a cursor, as [engine.Engine.Watch]
// does, each once. Deltas before the last canister are superseded and not yielded. If
// deltas of a message were lost, because a reader or the feed is slow or has come in the middle of
// the message, no more of its text is yielded: the text_delta events that a reader has of a
// message are always its beginning, and its canister has all of it.
//
// The loop continues until ctx ends, and the last pair then has its error; until the feed
// or the engine is closed (engine.ErrClosed), or until the caller leaves it. If the
// conversation does not exist or was deleted, or has no such position, the error has
// history.ErrNotFound in its chain.
func (f *Feed) Events(ctx context.Context, conversation string, after Cursor) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		left := false
		err := f.read(ctx, conversation, after, nil, func(event Event) bool {
			left = left || !yield(event, nil)
			return !left
		})
		if !left {
			yield(Event{}, err)
		}
	}
}

// read passes the events after a cursor to emit until it returns false or an error ends
// the events. It calls beat at each tick of idle without an event.
func (f *Feed) read(ctx context.Context, conversation string, after Cursor, idle *heartbeat, emit func(Event) bool) error {
	t, err := f.join(ctx, conversation, after)
	if err != nil {
		return err
	}
	defer f.leave(t)
	seen := int64(0)
	for cursor, isOn := after, true; isOn; {
		news := t.after(cursor, seen)
		switch {
		case news.isBehind:
			seen = 0
			if cursor, isOn, err = f.catchUp(ctx, t, cursor, emit); err != nil {
				return err
			}
			continue
		case len(news.events) == 0 && news.err != nil:
			return news.err
		case len(news.events) == 0:
			if isOn, err = idle.wait(ctx, news.grown); err != nil {
				return err
			}
		}
		for _, event := range news.events {
			if isOn = isOn && emit(event); !isOn {
				break
			}
			cursor, seen = event.ID, event.number
		}
	}
	return nil
}

// heartbeat calls beat when nothing has happened for a while. Nil does nothing.
type heartbeat struct {
	ticks <-chan time.Time
	beat  func() bool // false ends the events
	flush func() bool // the same; called before a wait
}

// wait waits until grown is closed, a heartbeat was sent, or ctx ends.
func (h *heartbeat) wait(ctx context.Context, grown <-chan struct{}) (isOn bool, err error) {
	var ticks <-chan time.Time
	if h != nil {
		if ticks = h.ticks; !h.flush() {
			return false, nil
		}
	}
	select {
	case <-grown:
		return true, nil
	case <-ticks:
		return h.beat(), nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// catchUp passes the events that a topic no longer has to emit.
func (f *Feed) catchUp(ctx context.Context, t *topic, cursor Cursor, emit func(Event) bool) (Cursor, bool, error) {
	for happened, err := range f.engine.Watch(ctx, t.conversation, cursor.Position) {
		if err != nil {
			return cursor, false, err
		}
		at := cursor.at(happened)
		if _, isDelta := happened.(engine.Delta); isDelta || !cursor.precedes(at) {
			continue
		}
		event, err := newEvent(at, happened)
		if err != nil {
			return cursor, false, err
		}
		if !emit(event) {
			return cursor, false, nil
		}
		if cursor = at; t.covers(cursor) {
			return cursor, true, nil
		}
	}
	return cursor, false, engine.ErrClosed
}

// join adds a reader to the topic of a conversation, and begins one if it is missing.
func (f *Feed) join(ctx context.Context, conversation string, after Cursor) (*topic, error) {
	info, err := f.store.Info(ctx, conversation)
	switch {
	case err != nil:
		return nil, err
	case info.Length < after.Position:
		return nil, fmt.Errorf("%w: %w", errUnknownPosition, history.ErrNotFound)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.life.Err() != nil {
		return nil, engine.ErrClosed
	}
	t := f.topics[conversation]
	if t == nil {
		begin := Cursor{Position: max(0, info.Length-1)}
		t = &topic{conversation: conversation, begin: begin, base: begin.Position, last: begin, latest: &f.latest, grown: make(chan struct{})}
		watching, cancel := context.WithCancel(f.life)
		t.end = cancel
		f.topics[conversation] = t
		f.running.Go(func() {
			t.follow(f.engine.Watch(watching, conversation, begin.Position), func() (int, error) {
				info, err := f.store.Info(watching, conversation)
				return info.Length, err
			})
			f.forget(t)
		})
	}
	t.readers++
	if t.lingers != nil {
		t.lingers.Stop()
	}
	return t, nil
}

// prepare watches a conversation for a while, for a reader that is about to come. It
// returns when the watch has begun, so that the reader gets all deltas from now on.
func (f *Feed) prepare(ctx context.Context, conversation string) {
	t, err := f.join(ctx, conversation, Cursor{})
	if err != nil {
		return
	}
	defer f.leave(t)
	if n := t.after(t.begin, 0); len(n.events) == 0 && !n.isBehind && n.err == nil {
		select {
		case <-n.grown: // the last canister of the log comes again
		case <-ctx.Done():
		}
	}
}

// deleted lets later readers of a conversation begin anew, because it was deleted. The readers
// that it has find that out by themselves.
func (f *Feed) deleted(conversation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.topics, conversation)
}

// leave removes a reader. The last one leaves a topic that ends after a while.
func (f *Feed) leave(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.readers--; t.readers == 0 {
		t.lingers = time.AfterFunc(linger, func() { f.abandon(t) })
	}
}

// abandon ends a topic unless it has readers.
func (f *Feed) abandon(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.readers == 0 {
		t.end()
		f.remove(t)
	}
}

// forget removes a topic whose watch has ended.
func (f *Feed) forget(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.end()
	if t.lingers != nil {
		t.lingers.Stop()
	}
	f.remove(t)
}

// remove removes a topic. f.mu must be held.
func (f *Feed) remove(t *topic) {
	if f.topics[t.conversation] == t {
		delete(f.topics, t.conversation)
	}
}

// newEvent returns an event with its JSON form.
func newEvent(at Cursor, event engine.Event) (Event, error) {
	var name string
	var form any
	switch e := event.(type) {
	case engine.Added:
		line, err := canister.Marshal(sender.Without(e.Canister))
		if err != nil {
			return Event{}, err
		}
		name, form = "canister", placedCanister{e.Position, line}
	case engine.Delta:
		name, form = "delta", e
	case engine.Ended:
		name, form = "ended", struct {
			Position int `json:"position"`
			engine.Ended
		}{at.Position, e}
	default:
		return Event{}, errors.New("httpapi: an unknown event")
	}
	data, err := jsontext.Encode(form)
	return Event{ID: at, Name: name, Event: event, Data: data}, err
}

// placedCanister is a canister with its position in the log.
type placedCanister struct {
	Position int             `json:"position"`
	Canister json.RawMessage `json:"canister"`
}
