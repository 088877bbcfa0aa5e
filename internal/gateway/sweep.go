// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
)

// sweepEvery is how often a long-running process deletes expired conversations.
const sweepEvery = time.Hour

// sweeps deletes expired conversations, immediately and then every sweepEvery, on a goroutine; stop
// ends it.
func sweeps(ctx context.Context, store history.Store, retention history.Retention, log *zap.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		again := time.NewTicker(sweepEvery)
		defer again.Stop()
		for {
			sweep(ctx, store, retention, log)
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

func sweep(ctx context.Context, store history.Store, retention history.Retention, log *zap.Logger) {
	gone := 0
	for _, err := range history.Retain(ctx, store, retention, time.Now()) {
		switch {
		case err == nil:
			gone++
		case ctx.Err() == nil:
			event.Log(ctx, log, zap.WarnLevel, "expired conversations could not be deleted", event.HistoryPruneFailed, zap.Error(err))
		}
	}
	if gone > 0 {
		event.Log(ctx, log, zap.InfoLevel, "expired conversations were deleted", event.HistoryPruned, zap.Int("conversations", gone))
	}
}
