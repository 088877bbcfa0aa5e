// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/elsewhere"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/converse/internal/logtail"
)

// recorder appends canisters to the history of a conversation, and to its log first, for
// one piece of work. Its methods run on the goroutine of the work.
type recorder struct {
	conv   *Conversation
	opts   *Options // of conv
	guard  *guard
	broken bool // an append to the log has failed: this work appends nothing else
	loaded bool // the work has its history: of what others append, it takes only answers
}

// append fills in IDs and times, appends the canisters to the log, and adds them
// to the history. It changes the slice.
func (r *recorder) append(ctx context.Context, canisters []canister.Canister) error {
	entering := map[string]bool{}
	for i, c := range canisters {
		c, err := r.headed(c, entering)
		if err != nil {
			return err
		}
		canisters[i] = c
	}
	r.broken = true // in case store panics
	if err := r.store(ctx, canisters); err != nil {
		return err
	}
	r.broken = false
	r.conv.mu.Lock()
	r.conv.history = append(r.conv.history, canisters...)
	r.conv.mu.Unlock()
	return nil
}

// headed fills in the ID and the time of a canister, and returns an error if it
// cannot enter the history together with the other entering canisters.
func (r *recorder) headed(c canister.Canister, entering map[string]bool) (_ canister.Canister, err error) {
	defer foreign.Caught("Options.NewID", &err)
	head := c.Header()
	if head.ID == "" || c.Kind() == canister.KindResult && r.used(head.ID, entering) {
		head.ID = r.opts.NewID()
		c = canister.WithHead(c, head)
	}
	if r.used(head.ID, entering) {
		return nil, foreign.SameIdentity(head.ID)
	}
	entering[head.ID] = true
	if head.Time.IsZero() {
		head.Time = r.opts.Now()
		c = canister.WithHead(c, head)
	}
	if err := canister.Writable(c); err != nil {
		return nil, fmt.Errorf("converse: the canister cannot be added to the history: %w", err)
	}
	return c, nil
}

// used reports whether a canister of the history, or one that is entering, has the
// identity.
func (r *recorder) used(id string, entering map[string]bool) bool {
	for ; r.conv.identified < len(r.conv.history); r.conv.identified++ {
		r.conv.identities[r.conv.history[r.conv.identified].Header().ID] = struct{}{}
	}
	_, used := r.conv.identities[id]
	return used || entering[id]
}

// load adds canisters of the log to the history: at first everything that a turn can
// need, and later the canisters that other processes have appended. Within a piece of
// work these may only be answers.
func (r *recorder) load(ctx context.Context) error {
	if err := r.written(ctx); err != nil || r.opts.Log == nil {
		return err
	}
	held, added, err := r.conv.held, []canister.Canister(nil), error(nil)
	if len(r.conv.history) == 0 {
		held, added, err = r.takeUp(ctx)
	} else {
		added, err = r.unread(ctx, ctx)
	}
	if err != nil {
		return fmt.Errorf("converse: the log cannot be read: %w", err)
	}
	if slices.Contains(added, nil) {
		return errors.New("converse: the log returned a nil canister")
	}
	if r.loaded && !onlyAnswers(added) {
		place := held.Length(len(r.conv.history))
		return fmt.Errorf("converse: the turn cannot continue: %w", &history.ConflictError{Conversation: r.opts.ID, Expected: place, Length: place + len(added)})
	}
	if r.loaded = true; len(added) == 0 {
		return nil
	}
	whole := append(slices.Clip(r.conv.history), added...)
	for _, problem := range sequence.Check(whole) {
		if problem.Rule != sequence.RuleOpen {
			problem.Index = held.LogIndex(problem.Index)
			return fmt.Errorf("converse: the log does not have a valid history (sequence.Repair can repair it): %w",
				&history.CorruptError{Conversation: r.opts.ID, Location: fmt.Sprint("canister ", problem.Index), Err: errors.New(problem.String())})
		}
	}
	if err := elsewhere.Check(ctx, r.opts.ID, whole, added); err != nil {
		return err
	}
	r.conv.mu.Lock()
	r.conv.history, r.conv.held = whole, held
	r.conv.mu.Unlock()
	r.conv.owed = slices.DeleteFunc(r.conv.owed, func(c canister.Canister) bool { return answers(added, c) })
	return nil
}

// takeUp calls [logtail.TakeUp], which reads the program's log.
func (r *recorder) takeUp(ctx context.Context) (logtail.Map, []canister.Canister, error) {
	type taken struct {
		logtail.Map
		canisters []canister.Canister
	}
	all, err := callForeign(ctx, r.guard, "Options.Log", func() (taken taken, err error) {
		taken.Map, taken.canisters, err = logtail.TakeUp(ctx, r.opts.Log, r.opts.ID)
		return taken, err
	})
	return all.Map, all.canisters, err
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
func (r *recorder) write(ctx context.Context, canisters []canister.Canister) error {
	appending := context.WithoutCancel(ctx)
	for {
		place := r.conv.held.Length(len(r.conv.history))
		err := r.put(ctx, func() error {
			return r.opts.Log.Append(appending, r.opts.ID, place, canisters...)
		})
		_, conflict := errors.AsType[*history.ConflictError](err)
		if !conflict || slices.ContainsFunc(canisters, isAnswer) || !r.takeAnswers(ctx) {
			return err
		}
	}
}

// unread returns the canisters of the log after the end of the history. It waits for
// the log as long as ctx lasts; the log receives the context reading.
func (r *recorder) unread(ctx, reading context.Context) ([]canister.Canister, error) {
	held, known := r.conv.held, r.conv.history
	return callForeign(ctx, r.guard, "Options.Log", func() ([]canister.Canister, error) {
		return logtail.After(reading, r.opts.Log, r.opts.ID, held, known)
	})
}

func isAnswer(c canister.Canister) bool { return c.Kind() == canister.KindAnswer }

func onlyAnswers(canisters []canister.Canister) bool {
	return !slices.ContainsFunc(canisters, func(c canister.Canister) bool { return !isAnswer(c) })
}

// takeAnswers adds the canisters of the log that follow the history, if they are all
// answers, and reports whether it added any.
func (r *recorder) takeAnswers(ctx context.Context) bool {
	answers, err := r.unread(ctx, context.WithoutCancel(ctx))
	if err != nil || slices.Contains(answers, nil) || !onlyAnswers(answers) {
		return false
	}
	r.conv.mu.Lock()
	defer r.conv.mu.Unlock()
	r.conv.history = append(r.conv.history, answers...)
	return len(answers) > 0
}

// store appends canisters to the log, if there is one, before they enter the history. It
// does so even if the turn was cancelled.
func (r *recorder) store(ctx context.Context, canisters []canister.Canister) error {
	if r.opts.Log == nil {
		return nil
	}
	if err := r.write(ctx, canisters); err != nil {
		return fmt.Errorf("converse: the log failed: %w", err)
	}
	return nil
}

// put calls an append to the log. If it hangs, its outcome is unknown, and no other work
// begins before it has returned.
func (r *recorder) put(ctx context.Context, write func() error) error {
	if _, memory := r.opts.Log.(*history.Memory); memory {
		return write() // it cannot hang
	}
	_, err := callForeign(ctx, r.guard, "Options.Log", func() (struct{}, error) { return struct{}{}, write() })
	if left, ok := errors.AsType[*foreign.LeftError](err); ok {
		r.conv.mu.Lock()
		r.conv.writing = left.Done
		r.conv.mu.Unlock()
	}
	return err
}

// written waits for an unfinished append of earlier work. Until it returns, the
// contents of the log are unknown.
func (r *recorder) written(ctx context.Context) error {
	r.conv.mu.Lock()
	writing := r.conv.writing
	r.conv.mu.Unlock()
	if writing == nil {
		return nil
	}
	if err := foreign.Wait(ctx, writing); err != nil {
		return fmt.Errorf("converse: an append of earlier work has not returned: %w", err)
	}
	r.conv.mu.Lock()
	r.conv.writing = nil
	r.conv.mu.Unlock()
	return nil
}
