// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/consort-go/consort/converse/engine"
)

// Notifier forwards payloads between machines without storing them. The store of
// package converse/history/postgres implements it.
type Notifier interface {
	// Notify forwards a payload to the current listeners of a conversation.
	Notify(ctx context.Context, conversation string, payload []byte) error
	// Listen yields the payloads forwarded from now on, and nil where some may have
	// been missed.
	Listen(ctx context.Context, conversation string) iter.Seq2[[]byte, error]
}

// NewStream returns a stream between machines over n, for workers and engines that
// share a database. Its methods may be called concurrently.
func NewStream(n Notifier) engine.Stream { return notified{n} }

type notified struct{ Notifier }

// Publish implements [engine.Stream].
func (s notified) Publish(ctx context.Context, conversation string, delta engine.Delta) error {
	payload, err := json.Marshal(delta)
	if err == nil {
		err = s.Notify(ctx, conversation, payload)
	}
	if err != nil {
		return fmt.Errorf("temporal: a delta was lost: %w", err)
	}
	return nil
}

// Subscribe implements [engine.Stream]. It returns when it is listening. A slow reader
// loses the payloads that the Notifier does not buffer.
func (s notified) Subscribe(ctx context.Context, conversation string) (<-chan engine.Delta, error) {
	deltas := make(chan engine.Delta)
	begun := make(chan error, 1)
	go func() {
		defer close(deltas)
		missed := 0
		for payload, err := range s.Listen(ctx, conversation) {
			select {
			case begun <- err: // the first: it is listening now
			default:
			}
			var delta engine.Delta
			if err != nil || json.Unmarshal(payload, &delta) != nil {
				delta = engine.Delta{Missed: missed} // the log may have grown, and deltas may have been lost
			}
			missed = 1 // the first payload says only that it is listening
			select {
			case deltas <- delta:
			case <-ctx.Done():
				return
			}
		}
	}()
	select {
	case err := <-begun:
		return deltas, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
