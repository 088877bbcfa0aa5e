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

// Load takes up what Options.Log has of the conversation and the history lacks,
// as each piece of work does before it begins. It is for programs that look at
// the history first. It writes nothing, and without a log does nothing.
func (c *Conversation) Load(ctx context.Context) error {
	for _, err := range c.run(ctx, false, nil) {
		if err != nil {
			return err
		}
	}
	return nil
}

// load adds to the history what the log has behind it: what a turn can need of it
// at first, and later what others have appended.
func (t *turn) load() error {
	if t.opts.Log == nil {
		return nil
	}
	held, added, err := t.held, []canister.Canister(nil), error(nil)
	if len(t.history) == 0 {
		held, added, err = takeUp(t.ctx, t.opts.Log, t.opts.ID)
	} else {
		added, err = t.behind(t.ctx)
	}
	if err != nil {
		return fmt.Errorf("converse: the log cannot be read: %w", err)
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

// answers reports whether the invocation of an owed result has one among the
// canisters: the log took it after all, or somebody else was faster.
func answers(canisters []canister.Canister, owed canister.Canister) bool {
	result, ok := owed.(canister.Result)
	return ok && slices.ContainsFunc(canisters, func(c canister.Canister) bool {
		there, ok := c.(canister.Result)
		return ok && there.Invocation == result.Invocation
	})
}

// write appends canisters to the log, behind answers that somebody has given
// meanwhile: who answers does not carry the conversation on. An answer is not
// written behind another, which may be to the same wait.
func (t *turn) write(ctx context.Context, canisters []canister.Canister) error {
	for {
		err := t.opts.Log.Append(ctx, t.opts.ID, t.held.length(len(t.history)), canisters...)
		_, conflict := errors.AsType[*history.ConflictError](err)
		if !conflict || slices.ContainsFunc(canisters, isAnswer) || !t.takeAnswers(ctx) {
			return err
		}
	}
}

// behind returns what the log has behind the history.
func (t *turn) behind(ctx context.Context) ([]canister.Canister, error) {
	return history.From(ctx, t.opts.Log, t.opts.ID, t.held.length(len(t.history)))
}

func isAnswer(c canister.Canister) bool { return c.Kind() == canister.KindAnswer }

// takeAnswers adds to the history what the log has behind it, if that is nothing
// but answers, and reports whether it did.
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

// keep writes canisters down before they enter the history. What has happened
// is written down even when the turn was cancelled.
func (t *turn) keep(canisters []canister.Canister) error {
	ctx := context.WithoutCancel(t.ctx)
	if t.opts.Log != nil {
		if err := t.write(ctx, canisters); err != nil {
			return fmt.Errorf("converse: the log failed: %w", err)
		}
	}
	if t.opts.Journal != nil {
		if err := t.opts.Journal(ctx, canisters); err != nil {
			return fmt.Errorf("converse: the journal failed: %w", err)
		}
	}
	return nil
}
