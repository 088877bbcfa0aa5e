// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// pollInterval is how often the store is polled for answers from other processes.
const pollInterval = 2 * time.Second

// pollAnswers starts a goroutine that makes the engine continue conversations whose last
// canister is an answer, for example from consort approve; stop ends it.
func (c *conversations) pollAnswers(log *zap.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(pollInterval)
		defer ticker.Stop()
		since := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			began := time.Now()
			c.continueAnswered(ctx, history.Filter{Open: true, Since: since.Add(-pollInterval)}, log)
			since = began
		}
	}()
	return func() { cancel(); <-done }
}

// continueAnswered sends the last message again in conversations that have a new answer.
// The engine does not record the message twice; it only checks the conversation.
func (c *conversations) continueAnswered(ctx context.Context, changed history.Filter, log *zap.Logger) {
	for info, err := range c.store.List(ctx, changed) {
		if err == nil && info.Last != canister.KindAnswer {
			continue
		}
		if err == nil {
			var last canister.User
			if last, _, err = lastMessage(ctx, c.store, info.ID); err == nil {
				err = c.recheck(ctx, info.ID, last)
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) { // a deadline means that a turn is running
			logevent.Log(ctx, log, zap.WarnLevel, "a conversation that received an answer could not be continued", logevent.WakeFailed, zap.String(telemetry.ConversationField, info.ID), zap.Error(err))
		}
	}
}

// recheck makes the engine check a conversation whose last message is last. It waits at
// most pollInterval for a conversation with a running turn, and does not begin one that was
// deleted meanwhile.
func (c *conversations) recheck(ctx context.Context, id string, last canister.User) error {
	bounded, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	return c.engine.Send(engine.MustExist(bounded), id, last)
}
