// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"cmp"
	"fmt"
	"slices"
)

// Action names one way in which [Repair] changes a history.
type Action string

// The actions.
const (
	ActionDropped Action = "dropped" // the canister is gone
	ActionAdded   Action = "added"   // the canister is new
	ActionMoved   Action = "moved"   // the canister stands behind another one than before
	ActionChanged Action = "changed" // an identity or a reference of the canister is another
)

// Change is one thing that [Repair] did.
type Change struct {
	Action Action
	// Before is the index of the canister in the history given, -1 for one
	// that was added.
	Before int
	// After is the index of the canister in the repaired history, -1 for one
	// that was dropped.
	After int
	ID    string // of the canister in the repaired history, or of the dropped one
	Text  string // what was done and why, in a sentence for people
}

// String returns the action, the identity and the text.
func (c Change) String() string { return fmt.Sprintf("%s %s: %s", c.Action, clip(c.ID), c.Text) }

// What the results that Repair adds say; the code is one of the failure codes
// of the invoker package.
const (
	interrupted = "The call was interrupted. It may or may not have taken effect."
	canceled    = "CANCELED"
)

// Repair returns a history in which [Check] finds no problem, and what it did
// for that: first what it dropped, and then the rest in the order of the
// repaired history. A history without problems comes back as it is, without
// changes. The same history always gives the same result, since neither the
// clock nor chance takes part, and history itself is not changed.
//
//   - A canister that is nil or of a foreign type is dropped, and so is one that
//     repeats an earlier one of the same identity in every member.
//   - A Result whose Invocation the history does not have is dropped, and so is
//     a second Result for one Invocation.
//   - The same holds for an Intent or a Wait whose Invocation the history does
//     not have, an Answer whose Wait it does not have, and a second Answer.
//   - An Invocation whose Assistant the history does not have gets one without
//     content.
//   - Invocations move behind their Assistant, behind those the Intents, Waits
//     and Answers that belong to them, and then the Results. Nothing else moves.
//   - An Invocation without a Result, also an open one at the end of the
//     history, gets one with the code CANCELED, which tells the model that the
//     call was interrupted and may or may not have taken effect. Who would
//     rather carry out what is open asks [Pending] first.
//   - A canister whose identity is missing or taken gets a new one, derived from
//     the old or from its place; references to it follow. The same holds for a
//     CallID within its message. Where several canisters have one identity, a
//     reference means the nearest Assistant before, or the Invocations of that
//     identity one after another.
func Repair(history []Canister) ([]Canister, []Change) {
	r := repair{history: history}
	slots := r.keep()
	r.lay(r.link(slots))
	r.settle()
	repaired := make([]Canister, len(r.out))
	for i, s := range r.out {
		repaired[i] = s.canister
	}
	return repaired, r.changes
}

// repair is the work of one [Repair].
type repair struct {
	history []Canister
	changes []Change
	out     []*slot // the repaired history
}

// slot is a canister on its way from the one history to the other.
type slot struct {
	canister Canister
	before   int     // index in the history given; -1 if added
	note     string  // why it was added, or what was changed of it already
	parent   *slot   // the Assistant of an Invocation, the Invocation of a Result, Intent, Wait or Answer
	message  *slot   // the Assistant behind whose calls an Intent, Wait or Answer stands, if it does
	wait     *slot   // the Wait of an Answer
	late     *slot   // the Answer of a Wait that stood before it
	laid     bool    // it is in the repaired history
	calls    []*slot // the Invocations of an Assistant
	notes    []*slot // what stands between those and their Results
	result   *slot   // the Result of an Invocation
	callIDs  *names  // of an Assistant
}

func (r *repair) drop(index int, id, format string, args ...any) {
	r.changes = append(r.changes, Change{ActionDropped, index, -1, id, fmt.Sprintf(format, args...)})
}

// keep returns a slot for each canister but those that are none, or that
// repeat an earlier one.
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
			line, err := Marshal(c)
			if err == nil && lines[string(line)] {
				r.drop(i, id, "the same canister stands earlier in the history")
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

// byValue returns c, and true, if it is one of the six kinds by value; what c
// points at if it is a pointer to one; and otherwise nil.
func byValue(c Canister) (Canister, bool) {
	switch c := c.(type) {
	case User, Assistant, Supervisor, Document, Invocation, Result, Intent, Wait, Answer:
		return c, true
	case *User:
		return held(c)
	case *Assistant:
		return held(c)
	case *Supervisor:
		return held(c)
	case *Document:
		return held(c)
	case *Invocation:
		return held(c)
	case *Result:
		return held(c)
	case *Intent:
		return held(c)
	case *Wait:
		return held(c)
	case *Answer:
		return held(c)
	}
	return nil, false
}

func held[T Canister](c *T) (Canister, bool) {
	if c == nil {
		return nil, false
	}
	return *c, false
}

// link finds out what belongs to what, and returns the slots that belong to
// nothing, in the order in which they will stand.
func (r *repair) link(slots []*slot) []*slot {
	first := map[string]*slot{} // Assistants by identity
	for _, s := range slots {
		if a, ok := s.canister.(Assistant); ok && first[a.ID] == nil {
			first[a.ID] = s
		}
	}
	var top, results, notes []*slot
	var block *slot               // the Assistant that the slot may stand behind
	nearest := map[string]*slot{} // Assistants before the slot
	calls := map[string][]*slot{} // Invocations by identity
	for _, s := range slots {
		switch c := s.canister.(type) {
		case Assistant:
			nearest[c.ID] = s
			block = s
			top = append(top, s)
		case Result:
			results = append(results, s)
		case Intent, Wait, Answer:
			s.message = block
			notes = append(notes, s)
			top = append(top, s)
		case Invocation:
			s.parent = cmp.Or(nearest[c.Message], first[c.Message])
			if s.parent == nil {
				s.parent = &slot{
					canister: Assistant{Head: Head{ID: c.Message}},
					before:   -1,
					note:     "invocations name this message, which the history does not have",
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
	gone := r.note(notes, calls)
	r.answer(results, calls)
	slices.SortStableFunc(r.changes, func(a, b Change) int { return cmp.Compare(a.Before, b.Before) })
	return slices.DeleteFunc(top, func(s *slot) bool { return gone[s] })
}

// note gives each Intent, and each Wait of an Invocation, to the message of that,
// and each Answer to its Wait, and returns those that are not to stand for
// themselves. What belongs to nothing is dropped.
func (r *repair) note(notes []*slot, calls map[string][]*slot) map[*slot]bool {
	gone, waits := map[*slot]bool{}, map[string]*slot{}
	for _, s := range notes {
		var belongs bool
		switch c := s.canister.(type) {
		case Intent:
			belongs = r.attach(s, calls[c.Invocation])
		case Wait:
			if belongs = c.Invocation == "" || r.attach(s, calls[c.Invocation]); belongs && waits[c.ID] == nil {
				waits[c.ID] = s
			}
		case Answer:
			s.wait = waits[c.Wait]
			if belongs = s.wait != nil; belongs {
				delete(waits, c.Wait)
				s.parent = s.wait
			}
		}
		if !belongs {
			r.drop(s.before, s.canister.Header().ID, "what it belongs to is not in the history before it, or is answered already")
		}
		if gone[s] = !belongs || s.message != nil; belongs && s.message != nil {
			s.message.notes = append(s.message.notes, s)
		}
	}
	return gone
}

// attach gives s to an invocation and the message of that.
func (r *repair) attach(s *slot, asked []*slot) bool {
	if len(asked) == 0 {
		return false
	}
	s.parent, s.message = asked[0], asked[0].parent
	return true
}

// answer gives each Result to its Invocation, or drops it.
func (r *repair) answer(results []*slot, calls map[string][]*slot) {
	for _, s := range results {
		result := s.canister.(Result)
		waiting, known := calls[result.Invocation]
		switch {
		case !known:
			r.drop(s.before, result.ID, "it answers the invocation %s, which the history does not have", clip(result.Invocation))
		case len(waiting) == 0:
			r.drop(s.before, result.ID, "the invocation %s has a result already", clip(result.Invocation))
		default:
			s.parent = waiting[0]
			waiting[0].result = s
			calls[result.Invocation] = waiting[1:]
		}
	}
}

// lay puts the slots into the order of the repaired history, and adds the
// Results that are missing.
func (r *repair) lay(top []*slot) {
	for _, s := range top {
		r.put(s)
		for _, call := range s.calls {
			r.put(call)
		}
		for _, behind := range s.behind() {
			r.put(behind)
		}
		for _, call := range s.calls {
			if call.result == nil {
				call.result = &slot{
					canister: Result{Content: Texts(interrupted), Code: canceled},
					before:   -1,
					note:     "its invocation had no result",
					parent:   call,
				}
				r.put(call.result)
			}
		}
	}
}

// put puts a slot at the end; an Answer not before its Wait.
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

// behind returns what stands behind the Invocations of a message: the Results
// that the history had and the rest, in their order there, but for what belongs
// to an Invocation and stood behind its Result.
func (s *slot) behind() []*slot {
	place := func(s *slot) int {
		if s.parent != nil && s.parent.result != nil {
			return min(s.before, s.parent.result.before)
		}
		return s.before
	}
	behind := slices.Clone(s.notes)
	for _, call := range s.calls {
		if call.result != nil {
			behind = append(behind, call.result)
		}
	}
	slices.SortStableFunc(behind, func(a, b *slot) int { return cmp.Compare(place(a), place(b)) })
	return behind
}

// settle gives every canister its identity and its references, and writes
// down what became of it. Whatever a canister refers to stands before it.
func (r *repair) settle() {
	ids := newNames()
	for _, s := range r.out {
		if s.before >= 0 {
			ids.reserved[s.canister.Header().ID] = true
		}
	}
	follows := r.predecessors()
	previous := -1 // the last that was not added
	for i, s := range r.out {
		notes := s.identify(ids, i)
		notes = append(notes, s.refer()...)
		if s.before < 0 {
			r.change(ActionAdded, i, s.note)
			continue
		}
		if (s.parent != nil || s.message != nil) && follows[s.before] != previous {
			r.change(ActionMoved, i, "it belongs behind its message")
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

// predecessors returns, for each canister of the repaired history that was in
// the one given, the index there of the one before it that was kept as well.
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

// identify makes sure that the canister, at index in the repaired history, has
// an identity of its own, and says so if that is another than before.
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
	s.canister = WithHead(s.canister, head)
	if had == "" {
		return []string{fmt.Sprintf("it had no identity and is %s now", clip(head.ID))}
	}
	return []string{fmt.Sprintf("its identity %s was taken and is %s now", clip(had), clip(head.ID))}
}

// refer makes the canister refer to its parent, and gives an Invocation a
// CallID of its own. It says what of that is another than before.
func (s *slot) refer() []string {
	var notes []string
	set := func(field *string, name, now string) {
		if *field != now {
			notes = append(notes, fmt.Sprintf("its %s was %s and is %s now", name, clip(*field), clip(now)))
			*field = now
		}
	}
	switch c := s.canister.(type) {
	case Assistant:
		s.callIDs = newNames()
		for _, call := range s.calls {
			s.callIDs.reserved[call.canister.(Invocation).CallID] = true
		}
	case Invocation:
		set(&c.Message, "message", s.parent.canister.Header().ID)
		if !s.parent.callIDs.keep(c.CallID) {
			set(&c.CallID, "CallID", s.parent.callIDs.derive(cmp.Or(c.CallID, "call")))
		}
		s.canister = c
	case Result:
		set(&c.Invocation, "invocation", s.parent.canister.Header().ID)
		s.canister = c
	case Intent:
		set(&c.Invocation, "invocation", s.parent.canister.Header().ID)
		s.canister = c
	case Wait:
		if c.Invocation != "" {
			set(&c.Invocation, "invocation", s.parent.canister.Header().ID)
		}
		s.canister = c
	case Answer:
		set(&c.Wait, "wait", s.wait.canister.Header().ID)
		s.canister = c
	}
	return notes
}

// names keeps names apart: those that are given, and those that are reserved
// for the first that has them already.
type names struct {
	reserved, given map[string]bool
	next            map[string]int // the number to try next, by the name derived from
}

func newNames() *names {
	return &names{map[string]bool{}, map[string]bool{}, map[string]int{}}
}

// keep gives name to one that has it already, if it is the first.
func (n *names) keep(name string) bool {
	if name == "" || n.given[name] {
		return false
	}
	n.given[name] = true
	return true
}

// derive gives a new name: base itself or, if it is not free, base and the
// first number from 2 that is.
func (n *names) derive(base string) string {
	name := base
	for n.reserved[name] || n.given[name] {
		n.next[base]++
		name = fmt.Sprintf("%s-%d", base, n.next[base]+1)
	}
	n.given[name] = true
	return name
}
