// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// notifier notifies programs that watch a conversation that it has grown. It does so after
// the append and not in its transaction: PostgreSQL serializes the commits of
// transactions that notify, and all appends of all conversations would wait for each
// other's disk writes. If the process dies in between, watchers notice by polling; see
// [listener.check].
type notifier struct {
	store *Store
	wake  chan struct{} // buffered
	ended chan struct{}

	mu      sync.Mutex
	pending map[string]bool // channels
}

// maxPending is how many conversations may have a pending notification. More accumulate
// only if the database does not answer.
const maxPending = 10_000

func newNotifier(s *Store) *notifier {
	n := &notifier{store: s, wake: make(chan struct{}, 1), ended: make(chan struct{}), pending: map[string]bool{}}
	go n.run()
	return n
}

// schedule has watchers notified that a conversation has grown.
func (n *notifier) schedule(conversation string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pending) < maxPending {
		n.pending[n.store.channel('g', conversation)] = true
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// stop sends the remaining notifications, after the store has begun to close.
func (n *notifier) stop() { <-n.ended }

func (n *notifier) run() {
	defer close(n.ended)
	for {
		select {
		case <-n.wake:
			n.send(10 * time.Second)
		case <-n.store.common.Closing:
			n.send(time.Second)
			return
		}
	}
}

// send sends the pending notifications. If that fails, they are lost.
func (n *notifier) send(timeout time.Duration) {
	n.mu.Lock()
	channels := slices.Collect(maps.Keys(n.pending))
	clear(n.pending)
	n.mu.Unlock()
	if len(channels) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, _ = n.store.pool.Exec(ctx, "SELECT pg_notify(channel, '') FROM unnest($1::text[]) AS channel", channels)
}
