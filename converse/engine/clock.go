// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// clock schedules when conversations are checked again. It is all the memory that a
// waiting conversation uses. A lost clock can be rebuilt from the log.
type clock struct {
	mu   sync.Mutex
	heap alarms
	of   map[string]*alarm
	kick chan struct{} // signals that the first alarm has changed
}

// alarm is a conversation and the time to check it.
type alarm struct {
	conversation string
	at           time.Time
	tries        tries
	index        int // index in the heap
}

// tries counts the failed attempts so far.
type tries struct{ failed, conflicts int }

func newClock() *clock {
	return &clock{of: map[string]*alarm{}, kick: make(chan struct{}, 1)}
}

// set schedules the next check of a conversation and replaces an earlier schedule.
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

// forget cancels the scheduled check of a conversation.
func (c *clock) forget(conversation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.of[conversation]; a != nil {
		heap.Remove(&c.heap, a.index)
		c.drop(conversation)
	}
}

// drop removes an alarm that has left the heap, and frees the maps once they are empty.
// The caller holds mu.
func (c *clock) drop(conversation string) {
	delete(c.of, conversation)
	if len(c.of) == 0 {
		c.of, c.heap = map[string]*alarm{}, nil
	}
}

// due removes and returns the alarms that are due, and the time of the next one; zero
// if the heap is empty.
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

// longest bounds how long a timer runs, because the machine's clock may be set.
const longest = time.Minute

// run calls ring for each conversation when it is due, until ctx ends.
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

// alarms is a heap with the earliest alarm first.
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
