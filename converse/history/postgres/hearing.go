// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/converse/history"
)

// The buffer of a loop that is slower than the notifications.
const (
	keepPayloads = 256
	keepBytes    = 1 << 20
)

// hearing is the subscription of one loop to one channel.
type hearing struct {
	store        *Store
	channel      string
	conversation string
	watches      bool         // the length, instead of payloads
	seen         atomic.Int64 // the last length yielded, -1 at first
	hears        bool         // the server has confirmed LISTEN; used only by the ear, with its lock held
	pieces       puzzle       // used only by the ear

	mu    sync.Mutex
	queue [][]byte // nil means that something was missed
	size  int
	lost  bool // something was missed after the queue
	err   error
	ready chan struct{} // buffered
}

func newHearing(s *Store, channel, conversation string, watches bool) *hearing {
	h := &hearing{store: s, channel: channel, conversation: conversation, watches: watches, ready: make(chan struct{}, 1)}
	h.seen.Store(-1)
	return h
}

// note handles a notification from the server.
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

// put buffers a payload, if there is room.
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

// miss records that something may have been missed.
func (h *hearing) miss() {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.tell()
	h.lost = true
}

// fail ends the loop with an error, after the buffered payloads.
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

// next waits for something and returns everything buffered.
func (h *hearing) next(ctx context.Context) ([][]byte, error) {
	select {
	case <-h.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.store.common.Closing:
		return nil, history.ErrClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.queue
	if h.lost {
		all = append(all, nil)
	}
	if len(all) == 0 && h.err != nil {
		return nil, h.store.explain(ctx, h.conversation, h.err)
	}
	if h.err != nil {
		h.tell()
	}
	h.queue, h.size, h.lost = nil, 0, false
	return all, nil
}
