// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"fmt"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/textcut"
)

// held says which canisters of its log a conversation holds, so that its cost is
// that of what the newest summary has left: the instructions of any time, and all
// from a place on.
type held struct {
	front []int // the places of the first ones, which stand before what is skipped
	from  int   // the place of those behind
}

// length is how many canisters the log has, if that many are held.
func (h *held) length(held int) int { return h.from + held - len(h.front) }

// place is where in the log a canister stands that is held at an index.
func (h *held) place(index int) int {
	if index < len(h.front) {
		return h.front[index]
	}
	return h.from + index - len(h.front)
}

// mark is what a compaction leaves in the history that is held.
func (h *held) mark(history []canister.Canister, command Compact) mark {
	m := mark{Through: command.Through, Trim: command.Trim, Tokens: command.After}
	if command.Trim > 0 {
		return m
	}
	m.Place, m.Instructions = h.place(command.cut-1), []int{}
	for i, c := range history[:command.cut] {
		if c.Kind() == canister.KindSupervisor {
			m.Instructions = append(m.Instructions, h.place(i))
		}
	}
	return m
}

// takeUp reads a conversation from its end, as far back as its next turn can need:
// to the turn that the newest summary stands in. If there is none, or one that does
// not say where it stands, it reads all.
func takeUp(ctx context.Context, log history.Log, conversation string) (held, []canister.Canister, error) {
	place, canisters, err := history.Tail(ctx, log, conversation, func(place int, canisters []canister.Canister) bool {
		_, _, ok := needed(place, canisters)
		return ok
	})
	if err != nil || place == 0 {
		return held{}, canisters, err
	}
	start, summary, _ := needed(place, canisters)
	h := held{from: place + start}
	before, _ := slices.BinarySearch(summary.Instructions, h.from)
	h.front = summary.Instructions[:before]
	front, err := instructions(ctx, log, conversation, h.front)
	if err != nil {
		return held{}, nil, err
	}
	if len(front) < before { // the log was changed
		all, err := history.From(ctx, log, conversation, 0)
		return held{}, all, err
	}
	return h, append(front, canisters[start:]...), nil
}

// needed finds in the end of a history, which begins at a place of the log, the
// first canister that the next turn can need, and the summary behind it.
func needed(place int, end []canister.Canister) (start int, summary mark, ok bool) {
	for i, c := range slices.Backward(end) {
		m, is := markOf(c)
		if !is || m.Trim > 0 {
			continue
		}
		through, user := marks{}.resolve(end[:i], m), lastUser(end[:i])
		if through < 0 || user < 0 || m.Instructions == nil || m.Place != place+through {
			return 0, mark{}, false
		}
		for start = through; start > 0 && !opens(end[start]); {
			start--
		}
		return min(start, user), m, opens(end[start])
	}
	return 0, mark{}, false
}

// near is how many canisters are rather read and passed over than left out: to begin
// to read costs about as much.
const near = 32

// instructions returns the Supervisors that stand at some places of a conversation,
// as far as they do.
func instructions(ctx context.Context, log history.Log, conversation string, places []int) ([]canister.Canister, error) {
	var found []canister.Canister
	for len(found) < len(places) {
		before, place := len(found), places[len(found)]
		for c, err := range log.Read(ctx, conversation, place) {
			if err != nil {
				return nil, err
			}
			if place == places[len(found)] {
				if c.Kind() != canister.KindSupervisor {
					return found, nil
				}
				if found = append(found, c); len(found) == len(places) || places[len(found)]-place > near {
					break
				}
			}
			place++
		}
		if len(found) == before { // there is no such place
			break
		}
	}
	return found, nil
}

// clashes says which of the canisters has the identity of one that the log has and
// the history does not hold.
func (t *turn) clashes(canisters []canister.Canister) error {
	named := map[string]bool{}
	for _, c := range canisters {
		if id := c.Header().ID; id != "" {
			named[id] = true
		}
	}
	if t.held.from == len(t.held.front) || len(named) == 0 {
		return nil
	}
	c, place, err := before(t.ctx, t.opts.Log, t.opts.ID, t.held.from, func(c canister.Canister) bool { return named[c.Header().ID] })
	if c != nil {
		return fmt.Errorf("converse: the canisters do not fit the history: canister %d of the log has the identity %s", place, textcut.Bytes(c.Header().ID, maxQuoted))
	}
	return err
}

// before returns the first canister before a place of a log that is wanted, and its
// place; nil if there is none.
func before(ctx context.Context, log history.Log, conversation string, end int, wanted func(canister.Canister) bool) (canister.Canister, int, error) {
	place := 0
	for c, err := range log.Read(ctx, conversation, 0) {
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("converse: the log cannot be read: %w", err)
		case place == end:
			return nil, 0, nil
		case wanted(c):
			return c, place, nil
		}
		place++
	}
	return nil, 0, nil
}
