// SPDX-License-Identifier: Apache-2.0

package compaction

import (
	"slices"

	"github.com/consort-go/consort/canister"
)

// View is a growing history as a model receives it: [canister.Messages], shortened as
// the marks say. Each view is a prefix of the next one, until there is a new mark.
type View struct {
	seen int // how many canisters of the history it covers
	told []canister.Canister
}

// Of returns the view of a history without open invocations. Instructions of servers
// that were added right after a message of the user are placed before it, so that the
// model answers the message. The cost depends on the canisters added since the last
// call, or on the whole view after a new mark.
func (v *View) Of(history []canister.Canister) []canister.Canister {
	if v.seen > len(history) {
		*v = View{}
	}
	m := Marks{Summary: -1, Through: -1, User: -1, trim: -1}
	for _, c := range history[v.seen:] {
		if _, marked := MarkOf(c); marked {
			m = ReadMarks(history)
			v.seen, v.told = m.Through+1, m.front(history)
			break
		}
	}
	added := make([]canister.Canister, 0, len(history)-v.seen)
	for i, c := range history[v.seen:] {
		if i == 0 && IsInstructions(c) { // they may be placed before the last message of the view
			if last := len(v.told) - 1; last >= 0 && v.told[last].Kind() == canister.KindUser {
				v.told, added = slices.Clone(v.told[:last]), append(added, v.told[last])
			}
		}
		added = m.tell(added, v.seen+i, c)
		if last := len(added) - 1; last > 0 && IsInstructions(c) && added[last-1].Kind() == canister.KindUser {
			added[last-1], added[last] = added[last], added[last-1]
		}
	}
	v.told = append(v.told, canister.Messages(added)...)
	v.seen = len(history)
	return v.told[:len(v.told):len(v.told)]
}

// front returns the part of the view that replaces the summarised canisters: the
// instructions, which stay in front, the summary, and the user's message that the work
// is about.
func (m Marks) front(history []canister.Canister) []canister.Canister {
	if m.Summary < 0 {
		return nil
	}
	var told []canister.Canister
	for _, c := range history[:m.Through+1] {
		if supervisor, ok := c.(canister.Supervisor); ok {
			told = append(told, supervisor)
		}
	}
	told = append(told, history[m.Summary])
	if m.User >= 0 {
		told = append(told, history[m.User])
	}
	return told
}
