// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"

	"github.com/consort-go/consort/canister"
)

// firstTail is how many canisters Tail reads first; if they are not enough, each
// further step is four times as long.
const firstTail = 64

// Tail reads the end of a conversation without reading the beginning: it reads more and
// more of the last canisters, until enough returns true for the canisters read so far,
// or all are read. It returns them, in order, with the index of the first, which is the
// number of canisters before it. If the conversation does not exist it returns 0 and no
// canisters. Tail calls enough after each read except one that reaches the beginning.
//
// Tail learns the length of the conversation from the log if the log has the Info of a
// [Store]. If it does not, or if the Info is damaged, Tail reads the whole conversation
// at once and does not call enough.
func Tail(ctx context.Context, log Log, conversation string, enough func(start int, canisters []canister.Canister) bool) (int, []canister.Canister, error) {
	start, err := lengthOf(ctx, log, conversation)
	if err != nil {
		return 0, nil, err
	}
	var canisters []canister.Canister
	for step := firstTail; ; step *= 4 {
		from := max(0, start-step)
		most := start - from + 1 // with the first that is known
		if canisters == nil {    // including what has been appended meanwhile
			most = -1
		}
		part, err := section(ctx, log, conversation, from, most)
		if last := start - from; err == nil && canisters != nil && len(part) > last && part[last].Header().ID == canisters[0].Header().ID {
			part = part[:last]
		} else if err == nil && (canisters != nil || len(part) < last) { // deleted, and perhaps begun anew
			from, canisters = 0, nil
			part, err = From(ctx, log, conversation, 0)
		}
		if err != nil {
			return 0, nil, err
		}
		start, canisters = from, append(part, canisters...)
		if start == 0 || enough(start, canisters) {
			return start, canisters, nil
		}
	}
}

// From returns the canisters of a conversation starting at an index.
func From(ctx context.Context, log Log, conversation string, start int) ([]canister.Canister, error) {
	return section(ctx, log, conversation, start, -1)
}

// lengthOf returns the length of a conversation, or 0 if the log cannot tell.
func lengthOf(ctx context.Context, log Log, conversation string) (int, error) {
	teller, ok := log.(interface {
		Info(ctx context.Context, conversation string) (Info, error)
	})
	if !ok {
		return 0, nil
	}
	info, err := teller.Info(ctx, conversation)
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt || errors.Is(err, ErrNotFound) {
		return 0, nil // the metadata may be damaged while the canisters are not
	}
	return info.Length, err
}

// section returns up to most canisters starting at the index from, or all if most is
// negative.
func section(ctx context.Context, log Log, conversation string, from, most int) ([]canister.Canister, error) {
	var canisters []canister.Canister
	for c, err := range log.Read(ctx, conversation, from) {
		if err == nil {
			err = context.Cause(ctx) // the log may ignore its context
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
