// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"math"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
)

// news is the stream of a Watch. It merges the deltas of the workers, if they have a
// stream, with failed turns reported by the server, which the log does not show.
type news struct{ *Engine }

// newsPoll is how often the server is asked about an unfinished conversation.
const newsPoll = 5 * time.Second

// Publish does nothing: only workers publish.
func (news) Publish(context.Context, string, engine.Delta) error { return nil }

// Subscribe implements [engine.Stream].
func (n news) Subscribe(ctx context.Context, conversation string) (<-chan engine.Delta, error) {
	var deltas <-chan engine.Delta
	if n.opts.Stream != nil {
		var err error
		if deltas, err = n.opts.Stream.Subscribe(ctx, conversation); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return nil, engine.ErrClosed
	}
	all := make(chan engine.Delta)
	n.readers.Go(func() {
		defer close(all)
		n.merge(ctx, conversation, deltas, all)
	})
	return all, nil
}

// merge forwards deltas and failures until ctx ends.
func (n news) merge(ctx context.Context, conversation string, deltas <-chan engine.Delta, all chan<- engine.Delta) {
	ticker := time.NewTicker(newsPoll)
	defer ticker.Stop()
	var told failure
	for {
		var delta engine.Delta
		select {
		case <-ctx.Done():
			return
		case d, open := <-deltas:
			if !open {
				deltas = nil
				continue
			}
			delta = d
		case <-ticker.C:
			f := n.failure(ctx, conversation)
			if f == told || f.text == "" {
				continue
			}
			told = f
			delta = engine.Delta{Position: math.MaxInt, Ended: &engine.Ended{Error: f.text, Again: f.again}}
		}
		select {
		case <-ctx.Done():
			return
		case all <- delta:
		}
	}
}

// failure asks the server for the failure of a conversation; the zero value means that
// none is known. The log may have grown since, but the clocks of the server and the store may
// differ by sending: a message that enters within that time after a failure, and of which the
// server is not notified, is reported with that failure.
func (n news) failure(ctx context.Context, conversation string) failure {
	info, err := n.store.Info(ctx, conversation)
	if err != nil || info.Last == canister.KindAssistant {
		return failure{}
	}
	seen, err := n.seen(ctx, conversation)
	if err != nil || !seen.working && !seen.resting && seen.ended.Add(sending).Before(info.Changed) {
		return failure{}
	}
	return seen.failed
}
