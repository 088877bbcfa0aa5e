// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/forked"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// pollInterval is how often the store is polled for answers from other processes.
const pollInterval = 2 * time.Second

// pollAnswers starts a goroutine that makes the engine continue conversations whose last
// canister is an answer, for example from consort approve, also one that was given while no
// process was there; stop ends it.
func (c *conversations) pollAnswers(log *zap.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(pollInterval)
		defer ticker.Stop()
		poll := answerPoll{of: c, log: log, seen: map[string]checkedAnswer{}}
		for {
			poll.once(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// answerPoll searches the store for answers again and again.
type answerPoll struct {
	of    *conversations
	log   *zap.Logger
	since time.Time // answers before were used; zero at first
	seen  map[string]checkedAnswer
}

// checkedAnswer is a conversation with an answer that a search has found, or one that could not be read.
type checkedAnswer struct {
	changed time.Time // of the conversation
	length  int       // of the conversation
	done    bool      // the engine has checked it; otherwise the next search tries again
	unread  bool      // the search could not read it, so nothing is known of its end
}

// once searches the store once. If the search fails, or a conversation cannot be read for now, the next one
// begins at the same time, and conversations that could not be checked are checked again: their answers
// would be lost.
func (p *answerPoll) once(ctx context.Context) {
	began, filter, failed := time.Now(), history.Filter{Open: true}, false
	if !p.since.IsZero() {
		filter.Since = p.since.Add(-engine.Skew) // the clock of the store may be late
	}
	maps.DeleteFunc(p.seen, func(_ string, was checkedAnswer) bool {
		return (was.done || was.unread) && !was.changed.IsZero() && was.changed.Before(filter.Since)
	})
	for info, err := range p.of.store.List(ctx, filter) {
		was, isKnown := p.seen[info.ID]
		isKnown = isKnown && was.changed.Equal(info.Changed) && was.length == info.Length
		switch {
		case err != nil && info.ID == "":
			failed = true
		case err != nil: // this conversation cannot be read
			failed = failed || !engine.Permanent(err) && !errors.Is(err, fs.ErrPermission) // which lasts
			p.seen[info.ID] = checkedAnswer{changed: info.Changed, length: info.Length, unread: true}
		case info.Last != canister.KindAnswer || forked.IsUntouched(info) || isKnown && was.done:
			continue
		default:
			err = p.check(ctx, info.ID, checkedAnswer{changed: info.Changed, length: info.Length})
		}
		if err != nil && ctx.Err() == nil && (info.ID == "" || !isKnown) && !errors.Is(err, context.DeadlineExceeded) { // a deadline means that a turn is running
			logevent.Log(ctx, p.log, zap.WarnLevel, "a conversation that received an answer could not be continued", logevent.WakeFailed, zap.String(telemetry.ConversationField, info.ID), zap.Error(err))
		}
	}
	for id, was := range p.seen {
		if !was.done && !was.unread && was.changed.Before(filter.Since) { // the search has not found it
			_ = p.check(ctx, id, was)
		}
	}
	if !failed {
		p.since = began
	}
}

// check makes the engine check a conversation that a search has found, and records whether that
// has to be done again.
func (p *answerPoll) check(ctx context.Context, id string, found checkedAnswer) error {
	err := p.of.recheckLast(ctx, id)
	found.done = err == nil || engine.Permanent(err) || errors.Is(err, history.ErrNotFound)
	p.seen[id] = found
	return err
}

// recheckLast sends the last message of a conversation again. The engine does not record the
// message twice; it only checks the conversation.
func (c *conversations) recheckLast(ctx context.Context, id string) error {
	last, _, err := lastMessage(ctx, c.store, id)
	if err != nil {
		return err
	}
	return c.recheck(ctx, id, last)
}

// recheck makes the engine check a conversation whose last message is last. It waits at
// most pollInterval for a conversation with a running turn, and does not begin one that was
// deleted meanwhile.
func (c *conversations) recheck(ctx context.Context, id string, last canister.User) error {
	bounded, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	return c.engine.Send(engine.MustExist(bounded), id, last)
}
