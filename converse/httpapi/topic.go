// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/converse/engine"
)

// The bounds of the events that a topic keeps.
const (
	maxKept      = 256     // events, besides the deltas of the current position
	maxKeptSize  = 4 << 20 // bytes of these events; one canister can have more
	maxDeltaSize = 1 << 20 // bytes of these deltas
)

// topic is a conversation that has readers: the events since a position. Readers have no
// queues: each has a cursor, and takes the events after it.
type topic struct {
	conversation string
	begin        Cursor // of the watch
	end          context.CancelFunc
	readers      int         // guarded by Feed.mu
	lingers      *time.Timer // guarded by Feed.mu

	mu     sync.Mutex
	base   int // events has all that happened after this canister
	last   Cursor
	events []Event
	latest *atomic.Int64 // of the feed
	gaps   gaps
	lost   Cursor        // of the last text that trim has dropped from the current message; may be zero
	deltas int           // size of the deltas in events, in bytes
	others int           // number of the other events
	size   int           // size of the other events, in bytes
	grown  chan struct{} // closed when something changes
	err    error         // why the watch has ended
}

// news is the result of topic.after.
type news struct {
	events   []Event
	isBehind bool            // the reader has to catch up first
	grown    <-chan struct{} // closed when there is more
	err      error           // there will be no more
}

// follow adds the events of a watch until it ends. length returns the length of the log.
func (t *topic) follow(watch iter.Seq2[engine.Event, error], length func() (int, error)) {
	ended := engine.ErrClosed
	t.gaps.joined = -1
	for happened, err := range watch {
		if err == nil && t.gaps.joined < 0 { // the watch gets all deltas from now on
			t.gaps.joined, err = length()
		}
		if err == nil {
			err = t.add(happened)
		}
		if err != nil {
			ended = err
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err = ended; errors.Is(ended, context.Canceled) { // the feed is closed
		t.err = engine.ErrClosed
	}
	close(t.grown)
}

func (t *topic) add(happened engine.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	event, err := newEvent(t.last.at(happened), happened)
	if err != nil {
		return err
	}
	// A watch can find a failure before the stream has passed the deltas of its attempt and the same
	// failure.
	isOld := !t.last.precedes(event.ID)
	switch e := happened.(type) {
	case engine.Ended:
		if isOld && e.Attempt > 0 {
			return nil
		}
	case engine.Delta:
		if isOld && t.last.ended != "" {
			return nil
		}
		switch t.gaps.add(event.ID, e) {
		case holdBack:
			return nil
		case startAgain:
			t.dropDeltas()
		}
		t.deltas += len(event.Data)
	case engine.Added:
		t.dropDeltas()
	}
	t.last = event.ID
	event.number = t.latest.Add(1)
	t.events = append(t.events, event)
	if isDelta(event) {
		t.trimDeltas()
	} else {
		t.others, t.size = t.others+1, t.size+len(event.Data)
		t.trim()
	}
	close(t.grown)
	t.grown = make(chan struct{})
	return nil
}

// dropDeltas drops the deltas, which are obsolete.
func (t *topic) dropDeltas() {
	t.events = slices.DeleteFunc(t.events, isDelta)
	t.deltas, t.lost = 0, Cursor{}
}

func isDelta(event Event) bool {
	_, is := event.Event.(engine.Delta)
	return is
}

// trimDeltas drops the oldest deltas beyond the bound.
func (t *topic) trimDeltas() {
	if t.deltas <= maxDeltaSize {
		return
	}
	half := t.deltas / 2
	t.events = slices.DeleteFunc(t.events, func(event Event) bool {
		d, is := event.Event.(engine.Delta)
		if !is || t.deltas <= half {
			return false
		}
		if isWriting(d) {
			t.lost = event.ID
		}
		t.deltas -= len(event.Data)
		return true
	})
}

// trim drops the oldest of the other events beyond the bounds, up to a canister.
func (t *topic) trim() {
	if t.others < 2*maxKept && t.size <= 2*maxKeptSize {
		return
	}
	kept, size := 0, 0
	for i, event := range slices.Backward(t.events) {
		if isDelta(event) {
			continue
		}
		added, is := event.Event.(engine.Added)
		if is && kept > 0 && (kept >= maxKept || size+len(event.Data) > maxKeptSize) {
			t.base, t.events, t.others, t.size = added.Position, slices.Clone(t.events[i+1:]), kept, size
			return
		}
		kept, size = kept+1, size+len(event.Data)
	}
}

// covers reports whether the topic has everything after a cursor.
func (t *topic) covers(cursor Cursor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cursor.Position >= t.base
}

// after returns the events after a cursor, or, for a reader that has an event of the topic, after the
// one with the number seen. A reader that has not seen all of the text that trim has dropped gets no
// deltas until the message is complete or begins again.
func (t *topic) after(cursor Cursor, seen int64) news {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := news{grown: t.grown, err: t.err, isBehind: cursor.Position < t.base}
	if n.isBehind {
		return n
	}
	isCut := t.lost.isDelta && cursor.precedes(t.lost)
	for i, event := range slices.Backward(t.events) {
		if seen > 0 || event.ID.Position < cursor.Position {
			break
		}
		if event.ID == cursor {
			seen = event.number
			if !isCut {
				n.events = slices.Clone(t.events[i+1:])
				return n
			}
		}
	}
	for _, event := range t.events {
		isNew := cursor.precedes(event.ID)
		if seen > 0 {
			isNew = event.number > seen
		}
		if isNew && !(isCut && isDelta(event)) {
			n.events = append(n.events, event)
		}
	}
	return n
}
