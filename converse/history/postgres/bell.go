// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"sync"
	"time"
)

// bell tells the programs that watch a conversation that it grew. It does so
// behind the append and not in it: PostgreSQL lets the transactions that notify
// commit one after the other, and all appends of all conversations would wait
// for each other's turn at the disk. Who dies in between has told nobody, and
// those who watch find out by themselves; see [ear.check].
type bell struct {
	store *Store
	wake  chan struct{} // has room for one
	ended chan struct{}

	mu    sync.Mutex
	grown map[string]bool // channels
}

// bellRoom is how many conversations may wait to be told of. There are more
// only where the database does not answer.
const bellRoom = 10_000

func newBell(s *Store) *bell {
	b := &bell{store: s, wake: make(chan struct{}, 1), ended: make(chan struct{}), grown: map[string]bool{}}
	go b.run()
	return b
}

// ring says that a conversation has grown.
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

// stop tells what is left to tell, after the store has begun to close.
func (b *bell) stop() { <-b.ended }

func (b *bell) run() {
	defer close(b.ended)
	for {
		select {
		case <-b.wake:
			b.tell(10 * time.Second)
		case <-b.store.closing:
			b.tell(time.Second)
			return
		}
	}
}

// tell tells of all that has grown. What fails is missed.
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
