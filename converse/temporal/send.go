// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	enumspb "go.temporal.io/api/enums/v1"
)

// lines queues the callers of Send for each conversation in order of arrival. The zero
// value is empty.
type lines struct {
	mu sync.Mutex
	of map[string][]chan struct{} // the first is active; each is closed when it becomes active
}

// queue waits until it is the caller's turn. The caller must call the returned function
// when it is done. Life is the context of the engine.
func (l *lines) queue(ctx, life context.Context, conversation string) (func(), error) {
	mine := make(chan struct{})
	l.mu.Lock()
	if l.of == nil {
		l.of = map[string][]chan struct{}{}
	}
	l.of[conversation] = append(l.of[conversation], mine)
	if len(l.of[conversation]) == 1 {
		close(mine)
	}
	l.mu.Unlock()
	leave := func() { l.leave(conversation, mine) }
	select {
	case <-mine:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	case <-life.Done():
		leave()
		return nil, engine.ErrClosed
	}
}

func (l *lines) leave(conversation string, mine chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.of[conversation]
	first := line[0] == mine
	line = slices.DeleteFunc(line, func(c chan struct{}) bool { return c == mine })
	switch l.of[conversation] = line; {
	case len(line) == 0:
		delete(l.of, conversation)
	case first:
		close(line[0])
	}
}

// post appends a message to the log once the turn before it is over.
func (e *Engine) post(ctx context.Context, conversation string, message canister.User) error {
	wait := turnEnd{Engine: e, conversation: conversation, since: message.Time.Add(-engine.Skew)}
	for {
		free, err := wait.over(ctx, message.ID)
		if err != nil {
			return err
		}
		if free {
			err := contained(func() error { return engine.Post(ctx, e.store, e.opts.Open, conversation, message, e.opts.Now()) })
			switch {
			case errors.Is(err, engine.ErrBusy):
			case err == nil || errors.Is(err, engine.ErrWaiting) || !wait.isThere(ctx, message.ID):
				return err
			default:
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(e.opts.Poll):
		}
	}
}

// turnEnd determines whether a turn is over if the canisters alone do not show it: it
// may have failed, or a limit may have ended it.
type turnEnd struct {
	*Engine
	conversation string
	since        time.Time // the message is not in the log before
	woken        int64     // length of the workflow's history when it was woken; 0 if it was not
	ended        time.Time // when the workflow before that had ended, if it had
}

// lookedAt is the minimum number of events by which a workflow's history grows while it
// is woken and reads the log: three each for two tasks and an activity, not counting
// the signal.
const lookedAt = 9

// isThere reports whether a message is in the log although its append returned an error: the context ended, or the
// connection of the store, before the outcome was known.
func (t *turnEnd) isThere(ctx context.Context, message string) (there bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeTimeout)
	defer cancel()
	err := contained(func() error {
		_, canisters, err := engine.LastTurn(ctx, t.store, t.conversation, t.since)
		there = slices.ContainsFunc(canisters, func(c canister.Canister) bool { return c.Kind() == canister.KindUser && c.Header().ID == message })
		return err
	})
	return err == nil && there
}

// over reports whether a message may enter: no turn is running, or the message is
// already in the log. It returns [engine.ErrBusy] if calls are open and the turn that would
// complete them has failed for good.
func (t *turnEnd) over(ctx context.Context, message string) (bool, error) {
	now := t.opts.Now()
	_, canisters, err := engine.LastTurn(ctx, t.store, t.conversation, t.since)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(canisters, func(c canister.Canister) bool { return c.Header().ID == message }) {
		return true, nil
	}
	if now = now.Add(-engine.Skew); now.After(t.since) {
		t.since = now // what was appended before was searched
	}
	switch next := converse.Next(canisters, converse.Policy{Conversation: t.conversation}, t.opts.Now()).(type) {
	case converse.Await:
		return true, nil
	case converse.Done:
		if !next.Reason.Limited() { // the limits of the conversation may be others
			return true, nil
		}
	}
	seen, err := t.seen(ctx, t.conversation)
	pending := canister.Pending(canisters)
	switch {
	case err != nil || seen.working:
		return false, err
	case seen.resting && t.woken > 0 && seen.events >= t.woken+lookedAt:
		return true, nil
	case !seen.resting && len(pending) == 0:
		return true, nil
	case t.woken > 0 && seen.status == enumspb.WORKFLOW_EXECUTION_STATUS_FAILED && seen.ended.After(t.ended):
		return false, fmt.Errorf("%w: %q, because the turn has failed (%s); nothing was sent", engine.ErrBusy, pending[0].ID, seen.failed.text)
	case t.woken > 0 && seen.resting:
		return false, nil
	}
	// It is about to begin, or was not notified.
	t.woken, t.ended = max(seen.events, 1), seen.ended
	return false, t.signal(ctx, t.conversation, wakeSignal)
}
