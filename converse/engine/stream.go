// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
)

// Stream carries deltas from who works on a conversation to who watches it,
// beside the log and without a promise: what it loses, the log has, or will
// have. Its methods may be called concurrently.
type Stream interface {
	// Publish sends a delta to those that are subscribed to the conversation. It
	// does not wait for them. An error means that the delta is lost.
	Publish(ctx context.Context, conversation string, delta Delta) error
	// Subscribe returns the deltas that are published from now on, until ctx
	// ends; then the channel is closed. Who reads slowly loses the older ones,
	// and finds in Delta.Missed how many.
	Subscribe(ctx context.Context, conversation string) (<-chan Delta, error)
}

// streamBuffer is how many deltas a reader may be behind.
const streamBuffer = 256

// memoryStream is the Stream of one process.
type memoryStream struct {
	mu      sync.Mutex
	readers map[string]map[*reader]struct{} // by conversation
}

// reader is one subscription.
type reader struct {
	deltas chan Delta
	missed int // since the last delta that was put in
}

// NewStream returns a Stream within the process. A reader that is 256 deltas
// behind loses the oldest. A conversation that nobody watches costs nothing.
func NewStream() Stream {
	return &memoryStream{readers: map[string]map[*reader]struct{}{}}
}

func (s *memoryStream) Publish(_ context.Context, conversation string, delta Delta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.readers[conversation] {
		r.put(delta)
	}
	return nil
}

// put drops the oldest delta if there is no room. Only one put runs at a time.
func (r *reader) put(delta Delta) {
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
		default: // the reader was faster
		}
	}
}

func (s *memoryStream) Subscribe(ctx context.Context, conversation string) (<-chan Delta, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &reader{deltas: make(chan Delta, streamBuffer)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers[conversation] == nil {
		s.readers[conversation] = map[*reader]struct{}{}
	}
	s.readers[conversation][r] = struct{}{}
	context.AfterFunc(ctx, func() { s.leave(conversation, r) })
	return r.deltas, nil
}

func (s *memoryStream) leave(conversation string, r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.readers[conversation], r)
	if len(s.readers[conversation]) == 0 {
		delete(s.readers, conversation)
	}
	close(r.deltas)
}
