// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/forked"
	enumspb "go.temporal.io/api/enums/v1"
	"go.uber.org/zap"
)

// sweep repairs lost wake-ups: a Send or an Answer appends to the log first, and its
// process may die before it notifies the server.
type sweep struct {
	starter
	store  history.Store
	young  time.Duration // more recent changes are left to their sender
	idle   time.Duration // WorkerOptions.Idle
	logger *zap.Logger
}

// sending is how long a sender has to notify the server, unless half an interval is
// less. The clocks of the server and the store should not differ by more.
const sending = 5 * time.Second

// fullSweep is the number of sweeps after which all open conversations are checked
// again, and not only the ones changed recently.
const fullSweep = 60

// run sweeps immediately, and then once per interval.
func (s sweep) run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 0; ; n++ {
		filter := history.Filter{Open: true}
		if n%fullSweep != 0 {
			// Three intervals, because the clocks of machines differ, and a sweep may
			// have failed.
			filter.Since = time.Now().Add(-3 * interval)
		}
		woken, err := s.once(ctx, filter)
		if err != nil && ctx.Err() == nil {
			s.logger.Warn("unfinished conversations could not be searched for", eventSweepFailed, zap.Error(err))
		}
		if woken > 0 {
			s.logger.Info("unfinished conversations without a worker were resumed", eventSweepWoke, zap.Int("conversations", woken))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// once wakes the conversations that match a filter and need it, and returns their
// number.
func (s sweep) once(ctx context.Context, filter history.Filter) (woken int, err error) {
	for info, failed := range s.store.List(ctx, filter) {
		if failed != nil {
			err = failed // about a conversation that cannot be read, or the end
			continue
		}
		needed, failed := s.needed(ctx, info)
		if needed {
			failed = s.signal(ctx, info.ID, wakeSignal)
		}
		switch {
		case failed != nil && ctx.Err() != nil:
			return woken, failed
		case failed != nil:
			err = failed
		case needed:
			woken++
		}
	}
	return woken, err
}

// needed reports whether a wake-up is missing: no worker is working on the
// conversation, and the log has grown since the last one did. A fork that has not begun
// needs none.
func (s sweep) needed(ctx context.Context, info history.Info) (bool, error) {
	if time.Since(info.Changed) < s.young || forked.IsUntouched(info) {
		return false, nil // the next sweep finds it too
	}
	seen, err := s.seen(ctx, info.ID)
	if err != nil || seen.working {
		return false, err
	}
	read := seen.ended // when the last worker read the log
	switch seen.status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return s.ready(ctx, info.ID, seen.resting)
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		// It was idle before it ended. Clocks differ by less than young. A turn that was ended
		// by a limit is woken at most once again, because it changes nothing and is read later.
		read = read.Add(-s.idle - s.young)
	}
	// A turn that has failed, or was ended by a limit, has reported that. If the clock of the store is ahead, one that
	// has failed is woken once more. A message that came right after the failure would be lost otherwise.
	return read.Before(info.Changed), nil
}

// ready reports whether there is something to do now, rather than to wait for. A turn that is
// over only by the default limits counts as done if its workflow rests: that has read the log
// with the limits of the conversation, and would be woken by each sweep.
func (s sweep) ready(ctx context.Context, conversation string, resting bool) (bool, error) {
	_, canisters, err := engine.LastTurn(ctx, s.store, conversation, time.Now())
	if err != nil {
		return false, err
	}
	switch next := converse.Next(canisters, converse.Policy{Conversation: conversation}, time.Now()).(type) {
	case converse.Await:
		return false, nil
	case converse.Done:
		return !resting && next.Reason.Limited(), nil
	}
	return true, nil
}
