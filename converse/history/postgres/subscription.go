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
	maxPayloads = 256
	maxBytes    = 1 << 20
)

// subscription connects one loop to one channel.
type subscription struct {
	store         *Store
	channel       string
	conversation  string
	watchesLength bool         // the length, instead of payloads
	seen          atomic.Int64 // the last length yielded, -1 at first
	confirmed     bool         // the server has confirmed LISTEN; used only by the listener, with its lock held
	assembler     assembler    // used only by the listener

	mu    sync.Mutex
	queue [][]byte // nil stands where something may have been missed
	size  int
	err   error
	ready chan struct{} // buffered
}

func newSubscription(s *Store, channel, conversation string, watches bool) *subscription {
	sub := &subscription{store: s, channel: channel, conversation: conversation, watchesLength: watches, ready: make(chan struct{}, 1)}
	sub.seen.Store(-1)
	return sub
}

// handle processes a notification from the server.
func (sub *subscription) handle(frame string) {
	if sub.watchesLength {
		sub.markMissed()
		return
	}
	payload, whole, fits := sub.assembler.add(frame)
	switch {
	case whole:
		sub.buffer(payload)
	case !fits:
		sub.markMissed()
	}
}

// buffer keeps a payload for the loop, if there is room.
func (sub *subscription) buffer(payload []byte) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	defer sub.signal()
	if len(sub.queue) >= maxPayloads || sub.size+len(payload) > maxBytes {
		sub.addGap()
		return
	}
	sub.queue = append(sub.queue, payload)
	sub.size += len(payload)
}

// markMissed records that something may have been missed.
func (sub *subscription) markMissed() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	defer sub.signal()
	sub.addGap()
}

// addGap ends the queue with nil. The caller holds mu.
func (sub *subscription) addGap() {
	if n := len(sub.queue); n == 0 || sub.queue[n-1] != nil {
		sub.queue = append(sub.queue, nil)
	}
}

// fail ends the loop with an error, after the buffered payloads.
func (sub *subscription) fail(err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	defer sub.signal()
	sub.err = err
}

func (sub *subscription) signal() {
	select {
	case sub.ready <- struct{}{}:
	default:
	}
}

// next waits for something and returns everything buffered.
func (sub *subscription) next(ctx context.Context) ([][]byte, error) {
	select {
	case <-sub.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-sub.store.common.Closing:
		return nil, history.ErrClosed
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	all := sub.queue
	if len(all) == 0 && sub.err != nil {
		return nil, sub.store.explain(ctx, sub.conversation, sub.err)
	}
	if sub.err != nil {
		sub.signal()
	}
	sub.queue, sub.size = nil, 0
	return all, nil
}
