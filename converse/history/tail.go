// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"

	"github.com/consort-go/consort/canister"
)

// firstTail is how many canisters Tail reads first; each time that is not enough,
// it reads four times as many.
const firstTail = 64

// Tail returns the end of a conversation, however long that is, without what is
// before it: ever more of the last canisters, until enough is content with those
// from a place on, or there are no more. It returns them, in order, with the place
// of the first, which is how many the log has before it; no canisters and 0 if
// there is no such conversation. Enough is asked after each read.
//
// The log tells how long a conversation is if it has the Info of a [Store]. Of one
// that has not, or whose Info is damaged, all is read at once, and enough is not asked.
func Tail(ctx context.Context, log Log, conversation string, enough func(place int, canisters []canister.Canister) bool) (int, []canister.Canister, error) {
	place, err := lengthOf(ctx, log, conversation)
	if err != nil {
		return 0, nil, err
	}
	var canisters []canister.Canister
	for step := firstTail; ; step *= 4 {
		from := max(0, place-step)
		most := place - from
		if canisters == nil { // and what has been appended meanwhile
			most = -1
		}
		more, err := section(ctx, log, conversation, from, most)
		if err == nil && len(more) < place-from { // somebody has deleted it, and may have begun it anew
			from, canisters = 0, nil
			more, err = From(ctx, log, conversation, 0)
		}
		if err != nil {
			return 0, nil, err
		}
		place, canisters = from, append(more, canisters...)
		if place == 0 || enough(place, canisters) {
			return place, canisters, nil
		}
	}
}

// From returns the canisters of a conversation from a place on.
func From(ctx context.Context, log Log, conversation string, place int) ([]canister.Canister, error) {
	return section(ctx, log, conversation, place, -1)
}

// lengthOf is how long a conversation is, as far as the log can tell: otherwise 0.
func lengthOf(ctx context.Context, log Log, conversation string) (int, error) {
	teller, ok := log.(interface {
		Info(ctx context.Context, conversation string) (Info, error)
	})
	if !ok {
		return 0, nil
	}
	info, err := teller.Info(ctx, conversation)
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt || errors.Is(err, ErrNotFound) {
		return 0, nil // what stands beside the canisters may be damaged, and they may not
	}
	return info.Length, err
}

// section returns up to most canisters from a place on; all if most is negative.
func section(ctx context.Context, log Log, conversation string, from, most int) ([]canister.Canister, error) {
	var canisters []canister.Canister
	for c, err := range log.Read(ctx, conversation, from) {
		if err == nil {
			err = context.Cause(ctx) // which the log may not heed
		}
		if err != nil {
			return nil, err
		}
		if canisters = append(canisters, c); len(canisters) == most {
			break
		}
	}
	return canisters, nil
}
