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

// Retention says how long conversations are kept after they were last changed.
// Its zero value keeps all for ever.
type Retention struct {
	// Keep is for those that no rule fits; 0 is for ever.
	Keep time.Duration
	// Rules are exceptions; the first that fits a conversation decides.
	Rules []RetentionRule
	// Open lets those go too that do not end with an answer, see [Filter]: somebody
	// may still be waited for. The default keeps them.
	Open bool
}

// RetentionRule is for the conversations that have the tag and the owner; one that
// is empty fits all.
type RetentionRule struct {
	Tag, Owner string
	// Keep is how long they are kept; 0 is for ever.
	Keep time.Duration
}

func (r RetentionRule) fits(info Info) bool {
	return (r.Tag == "" || slices.Contains(info.Tags, r.Tag)) && (r.Owner == "" || r.Owner == info.Owner)
}

// KeepsAll reports whether nothing ever goes.
func (r Retention) KeepsAll() bool { return r.shortest() <= 0 }

// shortest is how long every conversation is kept; 0 is for ever.
func (r Retention) shortest() time.Duration {
	least := r.Keep
	for _, rule := range r.Rules {
		if rule.Keep > 0 && (least <= 0 || rule.Keep < least) {
			least = rule.Keep
		}
	}
	return least
}

// Expired reports whether a conversation need not be kept any more at a time.
func (r Retention) Expired(info Info, now time.Time) bool {
	keep := r.Keep
	if i := slices.IndexFunc(r.Rules, func(rule RetentionRule) bool { return rule.fits(info) }); i >= 0 {
		keep = r.Rules[i].Keep
	}
	open := (Filter{Open: true}).Allows(info)
	return keep > 0 && (r.Open || !open) && now.Sub(info.Changed) > keep
}

// Expired yields the conversations of a store that need not be kept any more at a
// time, as [Store.List] does.
func Expired(ctx context.Context, store Store, retention Retention, now time.Time) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if retention.KeepsAll() {
			return
		}
		for info, err := range store.List(ctx, Filter{Until: now.Add(-retention.shortest())}) {
			if (err != nil || retention.Expired(info, now)) && !yield(info, err) {
				return
			}
		}
	}
}

// Retain deletes the conversations of [Expired] and yields each that is gone. An
// error does not end the sequence, unless it is that of the context: it says which
// conversation is still there, with its Info, or which could not be looked at.
//
// A conversation that has been changed by the time that its turn comes is kept,
// and so is one into which a message comes in the same moment: it is deleted only
// at the length at which it had expired. Whoever appends when it is gone is told
// that with a [*ConflictError]. What [Store.Describe] changes in that moment, such
// as a tag that would have kept the conversation, may come too late.
func Retain(ctx context.Context, store Store, retention Retention, now time.Time) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		var expired []Info // first, since a list is as things were when it began
		var unread []error
		for info, err := range Expired(ctx, store, retention, now) {
			if err != nil {
				unread = append(unread, err)
				continue
			}
			expired = append(expired, info)
		}
		for _, info := range slices.Backward(expired) {
			gone, err := retention.drop(ctx, store, info.ID, now)
			if (gone || err != nil) && !yield(info, err) || ctx.Err() != nil {
				return
			}
		}
		if len(unread) > 0 {
			yield(Info{}, errors.Join(unread...))
		}
	}
}

// drop deletes a conversation if it is still expired.
func (r Retention) drop(ctx context.Context, store Store, id string, now time.Time) (gone bool, err error) {
	info, err := store.Info(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err == nil && !r.Expired(info, now):
		return false, nil
	case err == nil:
		err = store.Delete(ctx, id, info.Length)
	}
	if _, changed := errors.AsType[*ConflictError](err); changed {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("history: conversation %q is kept: %w", id, err)
	}
	return true, nil
}
