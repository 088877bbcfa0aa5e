// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/converse/history"
)

// What is kept for a loop that is slower than what it hears.
const (
	keepPayloads = 256
	keepBytes    = 1 << 20
)

// hearing is what one loop hears of one channel.
type hearing struct {
	store        *Store
	channel      string
	conversation string
	watches      bool         // for the length, and not for payloads
	seen         atomic.Int64 // the length that was yielded last, -1 at first
	hears        bool         // since the server said so; for the ear alone, with its lock
	pieces       puzzle       // for the ear alone

	mu    sync.Mutex
	queue [][]byte // nil is something missed
	size  int
	lost  bool // something behind the queue
	err   error
	ready chan struct{} // has room for one
}

func newHearing(s *Store, channel, conversation string, watches bool) *hearing {
	h := &hearing{store: s, channel: channel, conversation: conversation, watches: watches, ready: make(chan struct{}, 1)}
	h.seen.Store(-1)
	return h
}

// note takes what the server passes on.
func (h *hearing) note(frame string) {
	if h.watches {
		h.miss()
		return
	}
	payload, whole, fits := h.pieces.add(frame)
	switch {
	case whole:
		h.put(payload)
	case !fits:
		h.miss()
	}
}

// put keeps a payload, if there is room.
func (h *hearing) put(payload []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.tell()
	if h.lost = h.lost || len(h.queue) >= keepPayloads || h.size+len(payload) > keepBytes; h.lost {
		return
	}
	h.queue = append(h.queue, payload)
	h.size += len(payload)
}

// miss says that something may have been missed.
func (h *hearing) miss() {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.tell()
	h.lost = true
}

// fail ends the loop with an error, behind what is kept.
func (h *hearing) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.tell()
	h.err = err
}

func (h *hearing) tell() {
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// next waits for something and returns all that there is.
func (h *hearing) next(ctx context.Context) ([][]byte, error) {
	select {
	case <-h.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.store.closing:
		return nil, history.ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.queue
	if h.lost {
		all = append(all, nil)
	}
	if len(all) == 0 && h.err != nil {
		return nil, h.store.fault(ctx, h.conversation, h.err)
	}
	if h.err != nil {
		h.tell()
	}
	h.queue, h.size, h.lost = nil, 0, false
	return all, nil
}
