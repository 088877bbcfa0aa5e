// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// checkQueue schedules when conversations are checked again. It is all the memory that a
// waiting conversation uses. The queue can be rebuilt from the log.
type checkQueue struct {
	mu             sync.Mutex
	heap           checkHeap
	byConversation map[string]*scheduledCheck
	changed        chan struct{} // signals that the first check has changed
}

// scheduledCheck is a conversation and the time to check it.
type scheduledCheck struct {
	conversation string
	at           time.Time
	tries        tries
	index        int // index in the heap
}

// tries counts the failed attempts so far.
type tries struct{ failed, conflicts int }

func newCheckQueue() *checkQueue {
	return &checkQueue{byConversation: map[string]*scheduledCheck{}, changed: make(chan struct{}, 1)}
}

// set schedules the next check of a conversation and replaces an earlier schedule.
func (c *checkQueue) set(conversation string, at time.Time, t tries) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.byConversation[conversation]
	if a == nil {
		a = &scheduledCheck{conversation: conversation, at: at, tries: t}
		c.byConversation[conversation] = a
		heap.Push(&c.heap, a)
	} else {
		a.at, a.tries = at, t
		heap.Fix(&c.heap, a.index)
	}
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// forget cancels the scheduled check of a conversation.
func (c *checkQueue) forget(conversation string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.byConversation[conversation]; a != nil {
		heap.Remove(&c.heap, a.index)
		c.drop(conversation)
	}
}

// has reports whether a check of a conversation is scheduled.
func (c *checkQueue) has(conversation string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byConversation[conversation] != nil
}

// drop removes a check that has left the heap, and frees the maps once they are empty.
// The caller holds mu.
func (c *checkQueue) drop(conversation string) {
	delete(c.byConversation, conversation)
	if len(c.byConversation) == 0 {
		c.byConversation, c.heap = map[string]*scheduledCheck{}, nil
	}
}

// due removes and returns the checks that are due, and the time of the next one; zero
// if the heap is empty.
func (c *checkQueue) due(now time.Time) (due []*scheduledCheck, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.heap) > 0 {
		if c.heap[0].at.After(now) {
			return due, c.heap[0].at
		}
		a := heap.Pop(&c.heap).(*scheduledCheck)
		c.drop(a.conversation)
		due = append(due, a)
	}
	return due, time.Time{}
}

// longest bounds how long a timer runs, because the machine's clock may be set.
const longest = time.Minute

// run calls check for each conversation when it is due, until ctx ends.
func (c *checkQueue) run(ctx context.Context, check func(conversation string, t tries)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, next := c.due(time.Now())
		for _, a := range due {
			check(a.conversation, a.tries)
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(min(time.Until(next), longest))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		case <-timer.C:
		}
	}
}

// checkHeap has the earliest check first.
type checkHeap []*scheduledCheck

func (h checkHeap) Len() int           { return len(h) }
func (h checkHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h checkHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *checkHeap) Push(x any) {
	a := x.(*scheduledCheck)
	a.index = len(*h)
	*h = append(*h, a)
}

func (h *checkHeap) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}
