// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// retentionInterval is how often a long-running process deletes expired conversations.
const retentionInterval = time.Hour

// startRetention starts a goroutine that deletes expired conversations, immediately and
// then every retentionInterval; stop ends it.
func startRetention(ctx context.Context, store history.Store, retention history.Retention, log *zap.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(retentionInterval)
		defer ticker.Stop()
		for {
			deleteExpired(ctx, store, retention, log)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// deleteExpired deletes the conversations that have expired by now.
func deleteExpired(ctx context.Context, store history.Store, retention history.Retention, log *zap.Logger) {
	deleted := 0
	for _, err := range retention.Apply(ctx, store, time.Now()) {
		switch {
		case err == nil:
			deleted++
		case ctx.Err() == nil:
			logevent.Log(ctx, log, zap.WarnLevel, "expired conversations could not be deleted, or not with all their data", logevent.HistoryPruneFailed, zap.Error(err))
		}
	}
	if deleted > 0 {
		logevent.Log(ctx, log, zap.InfoLevel, "expired conversations were deleted", logevent.HistoryPruned, zap.Int("conversations", deleted))
	}
}
