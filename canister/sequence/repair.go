// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/consort-go/consort/canister"
)

// Action names a way in which [Repair] changes a history.
type Action string

// The actions.
const (
	ActionDropped Action = "dropped" // the canister was removed
	ActionAdded   Action = "added"   // the canister was added
	ActionMoved   Action = "moved"   // the canister follows a different one than before
	ActionChanged Action = "changed" // an ID or a reference of the canister was changed
)

// Change is one change that [Repair] made.
type Change struct {
	Action Action
	// Before is the index of the canister in the original history, or -1 if it was
	// added.
	Before int
	// After is the index of the canister in the repaired history, or -1 if it was
	// dropped.
	After int
	ID    string // of the canister in the repaired history, or of the dropped canister
	Text  string // the change and its reason, in a sentence for people
}

// String returns the action, the ID and the text.
func (c Change) String() string { return fmt.Sprintf("%s %s: %s", c.Action, quoted(c.ID), c.Text) }

// The text and code of the Results that Repair adds; the code is one of the
// failure codes of the invoker package.
const (
	interrupted = "The call was interrupted. It may or may not have taken effect."
	canceled    = "CANCELED"
)

// Repair returns a history in which [Check] finds no problem, and the changes
// that were needed: first the dropped canisters, then the rest in the order of
// the repaired history. A history without problems is returned as it is, without
// changes. The result depends only on the history, not on the clock or on chance,
// and history itself is not changed.
//
//   - A canister that is nil or of a foreign type is dropped, and so is one that
//     equals an earlier one in its ID and every other member.
//   - A Result whose Invocation is not in the history is dropped, and so is
//     a second Result for one Invocation.
//   - The same applies to an Intent or a Wait whose Invocation is not in the
//     history, an Answer whose Wait is not in it, and a second Answer.
//   - The same applies to an Invocation whose Parent is not an Invocation that
//     the model made.
//   - An Invocation whose Assistant is not in the history gets an Assistant
//     without content.
//   - Invocations of the model move behind their Assistant, followed by the others
//     with a Parent, and by the Intents, Waits and Answers that belong to them, each before
//     the Result of its Invocation and of the Parent. Nothing else moves.
//   - An Invocation without a Result, including an open one at the end of the
//     history, gets a Result with the code CANCELED, which tells the model that
//     the call was interrupted and may or may not have taken effect. To carry out
//     open calls instead, use [canister.Pending] before Repair.
//   - A canister whose ID is missing or taken gets a new one, derived from the old
//     ID or from its position; references to it are updated. The same applies to a
//     CallID within its message. If several canisters share an ID, a reference
//     means the nearest earlier Assistant, or the Invocations of that ID one after
//     another.
func Repair(history []canister.Canister) ([]canister.Canister, []Change) {
	r := repair{history: history}
	slots := r.keep()
	r.lay(r.link(slots))
	r.settle()
	repaired := make([]canister.Canister, len(r.out))
	for i, s := range r.out {
		repaired[i] = s.canister
	}
	return repaired, r.changes
}

// repair is the state of one [Repair].
type repair struct {
	history []canister.Canister
	changes []Change
	out     []*slot // the repaired history
}

// slot is a canister that moves from the original to the repaired history.
type slot struct {
	canister canister.Canister
	before   int     // index in the original history; -1 if added
	note     string  // why it was added, or an earlier change to it
	parent   *slot   // the Assistant of an Invocation, the Invocation of a Result, Intent, Wait or Answer
	message  *slot   // the Assistant whose calls an Intent, Wait or Answer follows; may be nil
	wait     *slot   // the Wait of an Answer
	late     *slot   // the Answer of a Wait that came before its Wait
	laid     bool    // whether it is in the repaired history
	calls    []*slot // the Invocations of an Assistant
	notes    []*slot // the canisters between those and their Results
	result   *slot   // the Result of an Invocation
	caller   *slot   // the Invocation that made an Invocation; may be nil
	made     []*slot // the Invocations that an Invocation made
	callIDs  *names  // the CallIDs of an Assistant, or of the Invocations that one made
}

func (r *repair) drop(index int, id, format string, args ...any) {
	r.changes = append(r.changes, Change{ActionDropped, index, -1, id, fmt.Sprintf(format, args...)})
}

// keep returns a slot for each canister, except invalid ones and exact
// duplicates.
func (r *repair) keep() []*slot {
	holders := map[string]int{}
	for _, given := range r.history {
		if c, _ := byValue(given); c != nil {
			holders[c.Header().ID]++
		}
	}
	lines := map[string]bool{}
	slots := make([]*slot, 0, len(r.history))
	for i, given := range r.history {
		c, already := byValue(given)
		if c == nil {
			r.drop(i, "", "%T is not one of the kinds, held by value", given)
			continue
		}
		s := &slot{canister: c, before: i}
		if id := c.Header().ID; id != "" && holders[id] > 1 {
			line, err := canister.Marshal(c)
			if err == nil && lines[string(line)] {
				r.drop(i, id, "the same canister occurs earlier in the history")
				continue
			}
			lines[string(line)] = true
		}
		if !already {
			s.note = "it was held by a pointer"
		}
		slots = append(slots, s)
	}
	return slots
}

// byValue returns c and true if c is one of the kinds by value; the canister that
// c points to, and false, if c is a non-nil pointer to one; and otherwise nil.
func byValue(c canister.Canister) (canister.Canister, bool) {
	switch c := c.(type) {
	case canister.User, canister.Assistant, canister.Supervisor, canister.Document, canister.Invocation, canister.Result, canister.Intent, canister.Wait, canister.Answer:
		return c, true
	case *canister.User:
		return held(c)
	case *canister.Assistant:
		return held(c)
	case *canister.Supervisor:
		return held(c)
	case *canister.Document:
		return held(c)
	case *canister.Invocation:
		return held(c)
	case *canister.Result:
		return held(c)
	case *canister.Intent:
		return held(c)
	case *canister.Wait:
		return held(c)
	case *canister.Answer:
		return held(c)
	}
	return nil, false
}

func held[T canister.Canister](c *T) (canister.Canister, bool) {
	if c == nil {
		return nil, false
	}
	return *c, false
}

// link connects canisters that refer to each other. It returns the slots that
// belong to no other slot, in their final order.
func (r *repair) link(slots []*slot) []*slot {
	first := map[string]*slot{} // Assistants by ID
	for _, s := range slots {
		if a, ok := s.canister.(canister.Assistant); ok && first[a.ID] == nil {
			first[a.ID] = s
		}
	}
	var top, results, notes, inner []*slot
	var block *slot               // the Assistant that the slot can follow
	nearest := map[string]*slot{} // Assistants before the slot
	calls := map[string][]*slot{} // Invocations by ID
	for _, s := range slots {
		switch c := s.canister.(type) {
		case canister.Assistant:
			nearest[c.ID] = s
			block = s
			top = append(top, s)
		case canister.Result:
			results = append(results, s)
		case canister.Intent, canister.Wait, canister.Answer:
			s.message = block
			notes = append(notes, s)
			top = append(top, s)
		case canister.Invocation:
			if c.Parent != "" {
				inner = append(inner, s)
				continue
			}
			s.parent = cmp.Or(nearest[c.Message], first[c.Message])
			if s.parent == nil {
				s.parent = &slot{
					canister: canister.Assistant{Head: canister.Head{ID: c.Message}},
					before:   -1,
					note:     "invocations refer to this message, which is not in the history",
				}
				nearest[c.Message] = s.parent
				top = append(top, s.parent)
			}
			s.parent.calls = append(s.parent.calls, s)
			calls[c.ID] = append(calls[c.ID], s)
		default:
			block = nil
			top = append(top, s)
		}
	}
	r.nest(inner, calls)
	gone := r.note(notes, calls)
	r.answer(results, calls)
	slices.SortStableFunc(r.changes, func(a, b Change) int { return cmp.Compare(a.Before, b.Before) })
	return slices.DeleteFunc(top, func(s *slot) bool { return gone[s] })
}

// nest connects each Invocation that another one made with that one and its message, or
// drops it.
func (r *repair) nest(inner []*slot, calls map[string][]*slot) {
	callers := maps.Clone(calls)
	for _, s := range inner {
		c := s.canister.(canister.Invocation)
		if len(callers[c.Parent]) == 0 {
			r.drop(s.before, c.ID, "the invocation that made it is not in the history")
			continue
		}
		s.caller = callers[c.Parent][0]
		s.parent = s.caller.parent
		s.caller.made = append(s.caller.made, s)
		calls[c.ID] = append(calls[c.ID], s)
	}
}

// note connects each Intent, and each Wait of an Invocation, with the message of
// that Invocation, and each Answer with its Wait. It drops those without a match,
// and returns the set of those that are not to be placed on their own.
func (r *repair) note(notes []*slot, calls map[string][]*slot) map[*slot]bool {
	gone, waits := map[*slot]bool{}, map[string]*slot{}
	for _, s := range notes {
		var belongs bool
		switch c := s.canister.(type) {
		case canister.Intent:
			belongs = r.attach(s, calls[c.Invocation])
		case canister.Wait:
			if belongs = c.Invocation == "" || r.attach(s, calls[c.Invocation]); belongs && waits[c.ID] == nil {
				waits[c.ID] = s
			}
		case canister.Answer:
			s.wait = waits[c.Wait]
			if belongs = s.wait != nil; belongs {
				delete(waits, c.Wait)
				s.parent = s.wait
			}
		}
		if !belongs {
			r.drop(s.before, s.canister.Header().ID, "the canister that it belongs to is not in the history before it, or is already answered")
		}
		if gone[s] = !belongs || s.message != nil; belongs && s.message != nil {
			s.message.notes = append(s.message.notes, s)
		}
	}
	return gone
}

// attach connects s with an invocation and the message of that invocation.
func (r *repair) attach(s *slot, asked []*slot) bool {
	if len(asked) == 0 {
		return false
	}
	s.parent, s.message = asked[0], asked[0].parent
	return true
}

// answer connects each Result with its Invocation, or drops it.
func (r *repair) answer(results []*slot, calls map[string][]*slot) {
	for _, s := range results {
		result := s.canister.(canister.Result)
		waiting, known := calls[result.Invocation]
		switch {
		case !known:
			r.drop(s.before, result.ID, "it answers the invocation %s, which is not in the history", quoted(result.Invocation))
		case len(waiting) == 0:
			r.drop(s.before, result.ID, "the invocation %s already has a result", quoted(result.Invocation))
		default:
			s.parent = waiting[0]
			waiting[0].result = s
			calls[result.Invocation] = waiting[1:]
		}
	}
}

// lay puts the slots into the order of the repaired history and adds missing
// Results.
func (r *repair) lay(top []*slot) {
	for _, s := range top {
		r.put(s)
		for _, call := range s.calls {
			r.put(call)
		}
		for _, behind := range s.behind() {
			r.put(behind)
		}
	}
}

// put appends a slot to the output. An Answer is held back until its Wait is
// placed.
func (r *repair) put(s *slot) {
	if s.wait != nil && !s.wait.laid {
		s.wait.late = s
		return
	}
	s.laid = true
	r.out = append(r.out, s)
	if s.late != nil {
		r.put(s.late)
	}
}

// behind returns the slots after the Invocations of a message, in their original
// order, except that everything about an Invocation moves between it and its Result. The
// Results that are missing are added.
func (s *slot) behind() []*slot {
	var made, inner, outer []*slot
	for _, call := range s.calls {
		made = append(made, call.made...)
		for _, m := range call.made {
			inner = append(inner, m.answered())
		}
		outer = append(outer, call.answered())
	}
	slices.SortStableFunc(made, func(a, b *slot) int { return cmp.Compare(a.before, b.before) })
	places := map[*slot]int{}
	for _, b := range slices.Concat(outer, inner, made, s.notes) {
		places[b] = b.place(places)
	}
	behind := slices.Concat(made, s.notes, inner, outer)
	slices.SortStableFunc(behind, func(a, b *slot) int { return cmp.Compare(places[a], places[b]) })
	return behind
}

// answered returns the Result of an Invocation, and adds it if it is missing.
func (s *slot) answered() *slot {
	if s.result == nil {
		s.result = &slot{canister: canister.Result{Content: canister.Texts(interrupted), Code: canceled}, before: -1, note: "its invocation had no result", parent: s}
	}
	return s.result
}

// place returns the place of a slot after the Invocations of a message, from the places of the
// Results that it must not come after, and of the Invocation that it must not come before.
func (s *slot) place(places map[*slot]int) int {
	place, call := s.before, s.parent
	if place < 0 {
		place = math.MaxInt
	}
	switch s.canister.(type) {
	case canister.Invocation:
		return min(place, places[s.result], places[s.caller.result])
	case canister.Result:
		if call.caller != nil {
			place = min(place, places[call.caller.result])
		}
		return place
	}
	if call == nil || call.result == nil {
		return place
	}
	if call.caller != nil {
		place = max(place, places[call])
	}
	return min(place, places[call.result])
}

// settle assigns the IDs and references of all canisters and records the changes.
// Every canister comes after those that it refers to.
func (r *repair) settle() {
	ids := newNames()
	for _, s := range r.out {
		if s.before >= 0 {
			ids.reserved[s.canister.Header().ID] = true
		}
	}
	follows := r.predecessors()
	previous := -1 // index of the last canister that was not added
	for i, s := range r.out {
		notes := s.identify(ids, i)
		notes = append(notes, s.refer()...)
		if s.before < 0 {
			r.change(ActionAdded, i, s.note)
			continue
		}
		if (s.parent != nil || s.message != nil) && follows[s.before] != previous {
			r.change(ActionMoved, i, "it must follow its message")
		}
		previous = s.before
		if s.note != "" {
			r.change(ActionChanged, i, s.note)
		}
		for _, note := range notes {
			r.change(ActionChanged, i, note)
		}
	}
}

func (r *repair) change(action Action, after int, text string) {
	s := r.out[after]
	r.changes = append(r.changes, Change{action, s.before, after, s.canister.Header().ID, text})
}

// predecessors returns, for each kept canister by its index in the original
// history, the index of the kept canister before it, or -1.
func (r *repair) predecessors() map[int]int {
	var kept []int
	for _, s := range r.out {
		if s.before >= 0 {
			kept = append(kept, s.before)
		}
	}
	slices.Sort(kept)
	follows := make(map[int]int, len(kept))
	previous := -1
	for _, index := range kept {
		follows[index] = previous
		previous = index
	}
	return follows
}

// identify makes the ID of the canister, at index in the repaired history,
// unique, and describes the change if there was one.
func (s *slot) identify(ids *names, index int) []string {
	head := s.canister.Header()
	had := head.ID
	if s.before >= 0 && ids.keep(had) {
		return nil
	}
	base := fmt.Sprintf("%s-%d", s.canister.Kind(), index+1)
	if s.before < 0 && s.parent != nil {
		base = s.parent.canister.Header().ID + "-result"
	}
	head.ID = ids.derive(cmp.Or(had, base))
	s.canister = canister.WithHead(s.canister, head)
	if had == "" {
		return []string{fmt.Sprintf("it had no ID; its ID is now %s", quoted(head.ID))}
	}
	return []string{fmt.Sprintf("its ID %s was taken; it is now %s", quoted(had), quoted(head.ID))}
}

// refer makes the canister refer to its parent, and gives an Invocation a unique
// CallID. It describes the changes.
func (s *slot) refer() []string {
	var notes []string
	set := func(field *string, name, now string) {
		if *field != now {
			notes = append(notes, fmt.Sprintf("its %s was %s; it is now %s", name, quoted(*field), quoted(now)))
			*field = now
		}
	}
	switch c := s.canister.(type) {
	case canister.Assistant:
		s.callIDs = reservedBy(s.calls)
	case canister.Invocation:
		set(&c.Message, "message", s.parent.canister.Header().ID)
		taken := s.parent.callIDs
		if s.caller != nil {
			set(&c.Parent, "parent", s.caller.canister.Header().ID)
			taken = s.caller.callIDs
		}
		s.callIDs = reservedBy(s.made)
		if !taken.keep(c.CallID) {
			set(&c.CallID, "CallID", taken.derive(cmp.Or(c.CallID, "call")))
		}
		s.canister = c
	case canister.Result:
		set(&c.Invocation, "invocation", s.parent.canister.Header().ID)
		set(&c.Parent, "parent", s.parent.canister.(canister.Invocation).Parent)
		s.canister = c
	case canister.Intent:
		set(&c.Invocation, "invocation", s.parent.canister.Header().ID)
		s.canister = c
	case canister.Wait:
		if c.Invocation != "" {
			set(&c.Invocation, "invocation", s.parent.canister.Header().ID)
		}
		s.canister = c
	case canister.Answer:
		set(&c.Wait, "wait", s.wait.canister.Header().ID)
		s.canister = c
	case canister.User, canister.Supervisor, canister.Document: // they name no other canister
	}
	return notes
}

// reservedBy returns the names that keep the CallIDs of invocations unique.
func reservedBy(calls []*slot) *names {
	ids := newNames()
	for _, call := range calls {
		ids.reserved[call.canister.(canister.Invocation).CallID] = true
	}
	return ids
}

// names keeps names unique. A reserved name can only be claimed by a canister
// that already has it.
type names struct {
	reserved, given map[string]bool
	next            map[string]int // the number to try next, by base name
}

func newNames() *names {
	return &names{map[string]bool{}, map[string]bool{}, map[string]int{}}
}

// keep claims name for a canister that already has it, and reports whether it was
// free.
func (n *names) keep(name string) bool {
	if name == "" || n.given[name] {
		return false
	}
	n.given[name] = true
	return true
}

// derive claims a new name: base if that is free, and otherwise base with the
// first free number from 2.
func (n *names) derive(base string) string {
	name := base
	for n.reserved[name] || n.given[name] {
		n.next[base]++
		name = fmt.Sprintf("%s-%d", base, n.next[base]+1)
	}
	n.given[name] = true
	return name
}
