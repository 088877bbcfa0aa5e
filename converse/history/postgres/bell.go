// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"sync"
	"time"
)

// bell notifies programs that watch a conversation that it has grown. It does so after
// the append and not in its transaction: PostgreSQL serializes the commits of
// transactions that notify, and all appends of all conversations would wait for each
// other's disk writes. If the process dies in between, watchers notice by polling; see
// [ear.check].
type bell struct {
	store *Store
	wake  chan struct{} // buffered
	ended chan struct{}

	mu    sync.Mutex
	grown map[string]bool // channels
}

// bellRoom is how many conversations may have a pending notification. More accumulate
// only if the database does not answer.
const bellRoom = 10_000

func newBell(s *Store) *bell {
	b := &bell{store: s, wake: make(chan struct{}, 1), ended: make(chan struct{}), grown: map[string]bool{}}
	go b.run()
	return b
}

// ring schedules a notification that a conversation has grown.
func (b *bell) ring(conversation string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.grown) < bellRoom {
		b.grown[b.store.channel('g', conversation)] = true
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// stop sends the remaining notifications, after the store has begun to close.
func (b *bell) stop() { <-b.ended }

func (b *bell) run() {
	defer close(b.ended)
	for {
		select {
		case <-b.wake:
			b.tell(10 * time.Second)
		case <-b.store.common.Closing:
			b.tell(time.Second)
			return
		}
	}
}

// tell sends the pending notifications. If that fails, they are lost.
func (b *bell) tell(patience time.Duration) {
	b.mu.Lock()
	channels := make([]string, 0, len(b.grown))
	for channel := range b.grown {
		channels = append(channels, channel)
	}
	clear(b.grown)
	b.mu.Unlock()
	if len(channels) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, _ = b.store.pool.Exec(ctx, "SELECT pg_notify(channel, '') FROM unnest($1::text[]) AS channel", channels)
}
