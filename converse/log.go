// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// Load adds the canisters that Options.Log has and the history lacks, as each piece of
// work does before it begins. Use it to look at the history first. It writes nothing,
// and does nothing without a log.
func (c *Conversation) Load(ctx context.Context) error {
	for _, err := range c.run(ctx, false, nil) {
		if err != nil {
			return err
		}
	}
	return nil
}

// load adds canisters of the log to the history: at first everything that a turn can
// need, and later the canisters that other processes have appended.
func (t *turn) load() error {
	if err := t.written(); err != nil || t.opts.Log == nil {
		return err
	}
	held, added, err := t.held, []canister.Canister(nil), error(nil)
	if len(t.history) == 0 {
		held, added, err = t.takeUp()
	} else {
		added, err = t.behind(t.ctx)
	}
	if err != nil {
		return fmt.Errorf("converse: the log cannot be read: %w", err)
	}
	if slices.Contains(added, nil) {
		return errors.New("converse: the log has yielded a canister that is nil")
	}
	if len(added) == 0 {
		return nil
	}
	whole := append(slices.Clip(t.history), added...)
	for _, problem := range canister.Check(whole) {
		if problem.Rule != canister.RuleOpen {
			problem.Index = held.place(problem.Index)
			return fmt.Errorf("converse: what the log has is no history (canister.Repair can mend it): %v", problem)
		}
	}
	t.mu.Lock()
	t.history, t.held = whole, held
	t.mu.Unlock()
	t.owed = slices.DeleteFunc(t.owed, func(c canister.Canister) bool { return answers(added, c) })
	return nil
}

// takeUp calls the function takeUp, which reads the program's log.
func (t *turn) takeUp() (held, []canister.Canister, error) {
	type taken struct {
		held
		canisters []canister.Canister
	}
	all, err := foreign(t, t.ctx, "Options.Log", func() (taken taken, err error) {
		taken.held, taken.canisters, err = takeUp(t.ctx, t.opts.Log, t.opts.ID)
		return taken, err
	})
	return all.held, all.canisters, err
}

// foreign calls within and records a call that was left behind.
func foreign[T any](t *turn, ctx context.Context, what string, call func() (T, error)) (T, error) {
	value, err := within(ctx, &t.background, what, call)
	if left, ok := errors.AsType[*leftError](err); ok {
		t.leave(ctx, left)
	}
	return value, err
}

// answers reports whether canisters has a result for the invocation of an owed result:
// the log accepted it after all, or another process was faster.
func answers(canisters []canister.Canister, owed canister.Canister) bool {
	result, ok := owed.(canister.Result)
	return ok && slices.ContainsFunc(canisters, func(c canister.Canister) bool {
		there, ok := c.(canister.Result)
		return ok && there.Invocation == result.Invocation
	})
}

// write appends canisters to the log, after answers that others have appended
// meanwhile: an answer does not carry the conversation on. It does not append an answer
// after another one, which may be to the same wait.
func (t *turn) write(canisters []canister.Canister) error {
	ctx := context.WithoutCancel(t.ctx)
	for {
		place := t.held.length(len(t.history))
		err := t.put(func() error {
			return t.opts.Log.Append(ctx, t.opts.ID, place, canisters...)
		})
		_, conflict := errors.AsType[*history.ConflictError](err)
		if !conflict || slices.ContainsFunc(canisters, isAnswer) || !t.takeAnswers(ctx) {
			return err
		}
	}
}

// behind returns the canisters of the log after the end of the history.
func (t *turn) behind(ctx context.Context) ([]canister.Canister, error) {
	place := t.held.length(len(t.history))
	return foreign(t, t.ctx, "Options.Log", func() ([]canister.Canister, error) {
		return history.From(ctx, t.opts.Log, t.opts.ID, place)
	})
}

func isAnswer(c canister.Canister) bool { return c.Kind() == canister.KindAnswer }

// takeAnswers adds the canisters of the log that follow the history, if they are all
// answers, and reports whether it added any.
func (t *turn) takeAnswers(ctx context.Context) bool {
	answers, err := t.behind(ctx)
	if err != nil || slices.ContainsFunc(answers, func(c canister.Canister) bool { return !isAnswer(c) }) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history = append(t.history, answers...)
	return len(answers) > 0
}

// keep appends canisters to the log, if there is one, before they enter the history. It
// does so even if the turn was cancelled.
func (t *turn) keep(canisters []canister.Canister) error {
	if t.opts.Log == nil {
		return nil
	}
	if err := t.write(canisters); err != nil {
		return fmt.Errorf("converse: the log failed: %w", err)
	}
	return nil
}

// put calls an append to the log. If it hangs, its outcome is unknown, and no other work
// begins before it has returned.
func (t *turn) put(write func() error) error {
	_, err := foreign(t, t.ctx, "Options.Log", func() (struct{}, error) { return struct{}{}, write() })
	if left, ok := errors.AsType[*leftError](err); ok {
		t.mu.Lock()
		t.writing = left.done
		t.mu.Unlock()
	}
	return err
}

// written waits for an unfinished append of earlier work. Until it returns, the
// contents of the log are unknown.
func (t *turn) written() error {
	t.mu.Lock()
	writing := t.writing
	t.mu.Unlock()
	if writing == nil {
		return nil
	}
	if err := wait(t.ctx, writing); err != nil {
		return fmt.Errorf("converse: an append that earlier work has left behind has not returned: %w", err)
	}
	t.mu.Lock()
	t.writing = nil
	t.mu.Unlock()
	return nil
}
