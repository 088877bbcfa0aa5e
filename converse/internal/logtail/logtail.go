// SPDX-License-Identifier: Apache-2.0

package logtail

import (
	"context"
	"fmt"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/internal/textcut"
)

// Map says which canisters of its log a conversation holds: the instructions, and
// everything from one index on. Its cost depends on the part that remains after the
// newest summary.
type Map struct {
	Front []int // the log indexes of the first ones, before the skipped part
	From  int   // the log index of the first canister after the skipped part
}

// Length returns the length of the log for a number of held canisters.
func (h *Map) Length(held int) int { return h.From + held - len(h.Front) }

// LogIndex returns the log index of the canister that is held at an index.
func (h *Map) LogIndex(index int) int {
	if index < len(h.Front) {
		return h.Front[index]
	}
	return h.From + index - len(h.Front)
}

// Mark returns the mark of a compaction of the held history, after which a request has
// about so many tokens.
func (h *Map) Mark(history []canister.Canister, plan *compaction.Plan, tokens int64) compaction.Mark {
	m := compaction.Mark{Through: plan.Through, Trim: plan.Trim, Tokens: tokens}
	if plan.Trim > 0 {
		return m
	}
	m.Index, m.Instructions = h.LogIndex(plan.Cut-1), []int{}
	for i, c := range history[:plan.Cut] {
		if c.Kind() == canister.KindSupervisor {
			m.Instructions = append(m.Instructions, h.LogIndex(i))
		}
	}
	return m
}

// TakeUp reads a conversation from its end, as far back as its next turn can need: to
// the turn that contains the newest summary, and if the summary covers the message of that
// turn, to the last message before it. Without a summary, or if it does not record its index,
// TakeUp reads everything.
func TakeUp(ctx context.Context, log history.Log, conversation string) (Map, []canister.Canister, error) {
	first, canisters, err := history.Tail(ctx, log, conversation, func(first int, canisters []canister.Canister) bool {
		_, _, ok := needed(first, canisters)
		return ok
	})
	if err != nil || first == 0 {
		return Map{}, canisters, err
	}
	start, summary, _ := needed(first, canisters)
	h := Map{From: first + start}
	before, _ := slices.BinarySearch(summary.Instructions, h.From)
	h.Front = summary.Instructions[:before]
	front, err := instructions(ctx, log, conversation, h.Front)
	if err != nil {
		return Map{}, nil, err
	}
	if len(front) < before { // the log has changed
		all, err := history.From(ctx, log, conversation, 0)
		return Map{}, all, err
	}
	return h, append(front, canisters[start:]...), nil
}

// needed finds, in the end of a history that begins at a log index, the first canister
// that the next turn can need, and the mark of the summary after it.
func needed(first int, end []canister.Canister) (start int, summary compaction.Mark, ok bool) {
	for i, c := range slices.Backward(end) {
		m, is := compaction.MarkOf(c)
		if !is || m.Trim > 0 {
			continue
		}
		through, user := m.In(end[:i]), compaction.LastUser(end[:i])
		if through < 0 || user < 0 || m.Instructions == nil || m.Index != first+through {
			return 0, compaction.Mark{}, false
		}
		if start = through; user <= through { // the canister before its message says when the turn could begin
			start = user - 1
		}
		for start > 0 && !compaction.Opens(end[start]) {
			start--
		}
		return start, m, start >= 0 && compaction.Opens(end[start])
	}
	return 0, compaction.Mark{}, false
}

// near is the largest gap that is read and skipped, because starting a new read costs
// about as much.
const near = 32

// instructions returns the Supervisors at the given indexes of a log, up to the
// first index that has none.
func instructions(ctx context.Context, log history.Log, conversation string, indexes []int) ([]canister.Canister, error) {
	var found []canister.Canister
	for len(found) < len(indexes) {
		before, index := len(found), indexes[len(found)]
		for c, err := range log.Read(ctx, conversation, index) {
			if err != nil {
				return nil, err
			}
			if index == indexes[len(found)] {
				if c.Kind() != canister.KindSupervisor {
					return found, nil
				}
				if found = append(found, c); len(found) == len(indexes) || indexes[len(found)]-index > near {
					break
				}
			}
			index++
		}
		if len(found) == before { // the index does not exist
			break
		}
	}
	return found, nil
}

// After returns the canisters of a log after the known ones. If there are any, it reads the last
// known one again: if another one is there, the conversation was deleted and begun anew, and the
// error is a [history.ConflictError] with the length 0.
func After(ctx context.Context, log history.Log, conversation string, held Map, known []canister.Canister) ([]canister.Canister, error) {
	place, last := held.Length(len(known)), len(known)-1
	found, err := history.From(ctx, log, conversation, place)
	if err != nil || len(found) == 0 || last < len(held.Front) {
		return found, err
	}
	for c, err := range log.Read(ctx, conversation, place-1) {
		switch {
		case err != nil:
			return nil, err
		case c != nil && c.Header().ID == known[last].Header().ID:
			return found, nil
		}
		break
	}
	return nil, &history.ConflictError{Conversation: conversation, Expected: place}
}

// Before returns the first wanted canister before an index of a log, and its index, or
// nil.
func Before(ctx context.Context, log history.Log, conversation string, end int, wanted func(canister.Canister) bool) (canister.Canister, int, error) {
	index := 0
	for c, err := range log.Read(ctx, conversation, 0) {
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("converse: the log cannot be read: %w", err)
		case index == end:
			return nil, 0, nil
		case wanted(c):
			return c, index, nil
		}
		index++
	}
	return nil, 0, nil
}

// Clash returns an error if one of the canisters has the ID of a canister of the log that is
// not held.
func Clash(ctx context.Context, log history.Log, conversation string, held Map, canisters []canister.Canister) error {
	named := map[string]bool{}
	for _, c := range canisters {
		if id := c.Header().ID; id != "" {
			named[id] = true
		}
	}
	if held.From == len(held.Front) || len(named) == 0 {
		return nil
	}
	c, place, err := Before(ctx, log, conversation, held.From, func(c canister.Canister) bool { return named[c.Header().ID] })
	if c != nil {
		return fmt.Errorf("converse: the canisters do not fit the history: canister %d of the log already has the ID %s", place, textcut.Bytes(c.Header().ID, bounds.MaxQuoted))
	}
	return err
}
