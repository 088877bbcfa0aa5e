// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
)

// Stream carries deltas from workers to watchers, separately from the log and without a
// guarantee: everything that it loses is in the log, or will be. Its methods may be
// called concurrently.
type Stream interface {
	// Publish sends a delta to the subscribers of the conversation. It does not wait
	// for them. An error means that the delta is lost.
	Publish(ctx context.Context, conversation string, delta Delta) error
	// Subscribe returns the deltas that are published from now on, until ctx ends; then
	// the channel is closed. A slow reader loses the oldest deltas, and Delta.Missed
	// counts them.
	Subscribe(ctx context.Context, conversation string) (<-chan Delta, error)
}

// streamBuffer is how many deltas a reader may be behind.
const streamBuffer = 256

// memoryStream is the Stream of one process.
type memoryStream struct {
	mu      sync.Mutex
	readers map[string]map[*subscription]struct{} // by conversation
}

// subscription is one subscription.
type subscription struct {
	deltas chan Delta
	missed int // lost since the last delta that was put in
}

// NewStream returns a Stream within the process. A reader that is 256 deltas behind
// loses the oldest. A conversation without subscribers costs nothing.
func NewStream() Stream {
	return &memoryStream{readers: map[string]map[*subscription]struct{}{}}
}

func (s *memoryStream) Publish(_ context.Context, conversation string, delta Delta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.readers[conversation] {
		r.deliver(delta)
	}
	return nil
}

// deliver adds a delta, and drops the oldest if the buffer is full. Its calls must not
// overlap.
func (r *subscription) deliver(delta Delta) {
	for missed := delta.Missed; ; {
		delta.Missed = missed + r.missed
		select {
		case r.deltas <- delta:
			r.missed = 0
			return
		default:
		}
		select {
		case lost := <-r.deltas:
			r.missed += 1 + lost.Missed
		default: // the reader has emptied the buffer
		}
	}
}

func (s *memoryStream) Subscribe(ctx context.Context, conversation string) (<-chan Delta, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &subscription{deltas: make(chan Delta, streamBuffer)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[conversation] == nil {
		s.readers[conversation] = map[*subscription]struct{}{}
	}
	s.readers[conversation][r] = struct{}{}
	context.AfterFunc(ctx, func() { s.unsubscribe(conversation, r) })
	return r.deltas, nil
}

func (s *memoryStream) unsubscribe(conversation string, r *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers[conversation], r)
	if len(s.readers[conversation]) == 0 {
		delete(s.readers, conversation)
	}
	close(r.deltas)
}
