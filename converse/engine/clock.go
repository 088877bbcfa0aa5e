// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// clock knows when a conversation is to be looked at again. It is all that is in
// memory of one that waits. A clock that is lost is made anew from the log.
type clock struct {
	mu   sync.Mutex
	heap alarms
	of   map[string]*alarm
	kick chan struct{} // the first alarm is another one
}

// alarm is a conversation and a time.
type alarm struct {
	conversation string
	at           time.Time
	tries        tries
	index        int // in the heap
}

// tries are the attempts so far that came to nothing.
type tries struct{ failed, conflicts int }

func newClock() *clock {
	return &clock{of: map[string]*alarm{}, kick: make(chan struct{}, 1)}
}

// set has a conversation looked at again at a time, and at no other.
func (c *clock) set(conversation string, at time.Time, t tries) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.of[conversation]
	if a == nil {
		a = &alarm{conversation: conversation, at: at, tries: t}
		c.of[conversation] = a
		heap.Push(&c.heap, a)
	} else {
		a.at, a.tries = at, t
		heap.Fix(&c.heap, a.index)
	}
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// forget has a conversation not looked at again.
func (c *clock) forget(conversation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.of[conversation]; a != nil {
		heap.Remove(&c.heap, a.index)
		c.drop(conversation)
	}
}

// drop forgets an alarm that is not in the heap any more, and the room that many
// of them took. The caller holds mu.
func (c *clock) drop(conversation string) {
	delete(c.of, conversation)
	if len(c.of) == 0 {
		c.of, c.heap = map[string]*alarm{}, nil
	}
}

// due takes the alarms whose time has come, and returns when the next one is; zero
// if there is none.
func (c *clock) due(now time.Time) (due []*alarm, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.heap) > 0 {
		if c.heap[0].at.After(now) {
			return due, c.heap[0].at
		}
		a := heap.Pop(&c.heap).(*alarm)
		c.drop(a.conversation)
		due = append(due, a)
	}
	return due, time.Time{}
}

// longest is how long a timer runs at most: the clock of the machine may be set.
const longest = time.Minute

// run calls ring for each conversation when its time has come, until ctx ends.
func (c *clock) run(ctx context.Context, ring func(conversation string, t tries)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, next := c.due(time.Now())
		for _, a := range due {
			ring(a.conversation, a.tries)
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(min(time.Until(next), longest))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		case <-timer.C:
		}
	}
}

// alarms is a heap, the earliest first.
type alarms []*alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *alarms) Push(x any) {
	a := x.(*alarm)
	a.index = len(*h)
	*h = append(*h, a)
}

func (h *alarms) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}
