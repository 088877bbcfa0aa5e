// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Retention says how long conversations are kept after their last change. Its zero
// value keeps all of them indefinitely.
type Retention struct {
	// Keep applies to conversations that no rule matches; 0 means indefinitely.
	Keep time.Duration
	// Rules are exceptions; the first that matches a conversation decides.
	Rules []RetentionRule
	// ExpireOpen also lets open conversations expire, see [Filter.Open]: they may still
	// be waiting for a person. By default they are kept.
	ExpireOpen bool
}

// RetentionRule applies to the conversations that have the tag and the owner; an empty
// field matches all.
type RetentionRule struct {
	Tag, Owner string
	// Keep is how long they are kept; 0 means indefinitely.
	Keep time.Duration
}

func (r RetentionRule) matches(info Info) bool {
	return (r.Tag == "" || slices.Contains(info.Tags, r.Tag)) && (r.Owner == "" || r.Owner == info.Owner)
}

// KeepsAll reports whether no conversation ever expires.
func (r Retention) KeepsAll() bool { return r.shortest() <= 0 }

// shortest returns the shortest time any conversation is kept; 0 means indefinitely.
func (r Retention) shortest() time.Duration {
	least := r.Keep
	for _, rule := range r.Rules {
		if rule.Keep > 0 && (least <= 0 || rule.Keep < least) {
			least = rule.Keep
		}
	}
	return least
}

// hasExpired reports whether a conversation has expired at the time now.
func (r Retention) hasExpired(info Info, now time.Time) bool {
	keep := r.Keep
	if i := slices.IndexFunc(r.Rules, func(rule RetentionRule) bool { return rule.matches(info) }); i >= 0 {
		keep = r.Rules[i].Keep
	}
	open := (Filter{Open: true}).Match(info)
	return keep > 0 && (r.ExpireOpen || !open) && now.Sub(info.Changed) > keep
}

// Expired yields the conversations of a store that have expired at the time now, in the
// order of [Store.List]. If the store has a clock of its own, a method Now, whose time is earlier, that is the
// time: a clock of this machine that is fast makes no conversation expire.
func (r Retention) Expired(ctx context.Context, store Store, now time.Time) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if r.KeepsAll() {
			return
		}
		now, err := earliest(ctx, store, now)
		if err != nil {
			yield(Info{}, err)
			return
		}
		r.expired(ctx, store, now)(yield)
	}
}

// expired is like Expired, at a time that is already the earliest.
func (r Retention) expired(ctx context.Context, store Store, now time.Time) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if r.KeepsAll() {
			return
		}
		for info, err := range store.List(ctx, Filter{Until: now.Add(-r.shortest())}) {
			if (err != nil || r.hasExpired(info, now)) && !yield(info, err) {
				return
			}
		}
	}
}

// earliest returns now, or the time by the clock of a store if that is earlier.
func earliest(ctx context.Context, store Store, now time.Time) (time.Time, error) {
	if wrapper, ok := store.(interface{ Unwrap() Store }); ok {
		return earliest(ctx, wrapper.Unwrap(), now)
	}
	clock, ok := store.(interface {
		Now(ctx context.Context) (time.Time, error)
	})
	if !ok {
		return now, nil
	}
	there, err := clock.Now(ctx)
	if err != nil || now.Before(there) {
		return now, err
	}
	return there, nil
}

// Apply deletes the conversations of [Retention.Expired] and yields each one that it has
// deleted. An error does not end the sequence, unless it is the error of the context:
// it says which conversation could not be deleted, or not with all its data, with its Info,
// or which could not be read. If the context ends, the last pair has its error.
//
// A conversation that changes before Apply reaches it is kept, and so is one that
// receives a message at the same moment: Apply deletes it only if it still has the
// length that it had when it expired. A writer that appends after the deletion gets a
// [*ConflictError]. A [Store.Describe] at that moment, for example one that sets a tag
// that would have kept the conversation, may come too late.
func (r Retention) Apply(ctx context.Context, store Store, now time.Time) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		now, err := earliest(ctx, store, now)
		if err != nil {
			yield(Info{}, err)
			return
		}
		var expired []Info // collected first, since a list shows the state when it began
		var unread []error
		for info, err := range r.expired(ctx, store, now) {
			if err != nil {
				unread = append(unread, err)
				continue
			}
			expired = append(expired, info)
		}
		for _, info := range slices.Backward(expired) {
			if ctx.Err() != nil {
				break
			}
			gone, err := r.deleteExpired(ctx, store, info.ID, now)
			if (gone || err != nil) && !yield(info, err) {
				return
			}
		}
		err = errors.Join(unread...)
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = errors.Join(ctx.Err(), err)
		}
		if err != nil {
			yield(Info{}, err)
		}
	}
}

// deleteExpired deletes a conversation if it is still expired.
func (r Retention) deleteExpired(ctx context.Context, store Store, id string, now time.Time) (gone bool, err error) {
	info, err := store.Info(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err == nil && !r.hasExpired(info, now):
		return false, nil
	case err == nil:
		err = store.Delete(ctx, id, info.Length)
	}
	if _, changed := errors.AsType[*ConflictError](err); changed {
		return false, nil
	}
	if err == nil {
		return true, nil
	}
	if _, missing := store.Info(ctx, id); errors.Is(missing, ErrNotFound) {
		return false, err // for example about files that were left
	}
	return false, fmt.Errorf("history: conversation %q was not deleted: %w", id, err)
}
