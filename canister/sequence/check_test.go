// SPDX-License-Identifier: Apache-2.0

package sequence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
)

// history makes a history from a line of notes such as
//
//	u1 a1 i1>a1 i2>a1#x r1>i1 r2>i2
//
// Each is an ID whose first letter is that of the kind (t for an Intent, n
// for an Answer); > names what an Invocation, a Result, an Intent, a Wait or an
// Answer belongs to, # gives a CallID, which otherwise is made
// from the note, and @ the Parent. The ID u! is empty, *u1 is held by a pointer, - is nil.
func history(notes string) []canister.Canister {
	var made []canister.Canister
	for note := range strings.FieldsSeq(notes) {
		if note == "-" {
			made = append(made, nil)
			continue
		}
		name, pointer := strings.CutPrefix(note, "*")
		name, parent, _ := strings.Cut(name, "@")
		name, callID, _ := strings.Cut(name, "#")
		name, ref, _ := strings.Cut(name, ">")
		head := canister.Head{ID: name}
		if strings.HasSuffix(name, "!") {
			head.ID = ""
		}
		if callID == "" {
			callID = "c-" + name
		}
		var c canister.Canister
		switch name[0] {
		case 'u':
			c = canister.User{Head: head}
			if pointer {
				c = &canister.User{Head: head}
			}
		case 'a':
			c = canister.Assistant{Head: head}
		case 's':
			c = canister.Supervisor{Head: head}
		case 'd':
			c = canister.Document{Head: head}
		case 'i':
			c = canister.Invocation{Head: head, Message: ref, CallID: callID, Parent: parent}
		case 'r':
			c = canister.Result{Head: head, Invocation: ref, Parent: parent}
		case 't':
			c = canister.Intent{Head: head, Invocation: ref}
		case 'w':
			c = canister.Wait{Head: head, Invocation: ref}
		case 'n':
			c = canister.Answer{Head: head, Wait: ref}
		default:
			panic("a note of no kind: " + note)
		}
		made = append(made, c)
	}
	return made
}

// notes is the other way round. It writes a CallID only where it is not the
// one that history would make.
func notes(history []canister.Canister) string {
	var all []string
	for _, c := range history {
		note := c.Header().ID
		switch c := c.(type) {
		case canister.Invocation:
			note += ">" + c.Message
			if c.CallID != "c-"+c.ID {
				note += "#" + c.CallID
			}
			note += parentNote(c.Parent)
		case canister.Result:
			note += ">" + c.Invocation + parentNote(c.Parent)
		case canister.Intent:
			note += ">" + c.Invocation
		case canister.Wait:
			if c.Invocation != "" {
				note += ">" + c.Invocation
			}
		case canister.Answer:
			note += ">" + c.Wait
		}
		all = append(all, note)
	}
	return strings.Join(all, " ")
}

func parentNote(parent string) string {
	if parent == "" {
		return ""
	}
	return "@" + parent
}

func TestCheckAndPending(t *testing.T) {
	for _, test := range []struct{ history, want, pending string }{
		{"", "", ""},
		{"s1 d1 u1 a1 u2 a2", "", ""},
		{"a1", "", ""},
		{"u1 a1 i1>a1 i2>a1 r1>i1 r2>i2 a2 u2 a3 i3>a3 r3>i3", "", ""},
		{"u1 a1 i1>a1#x r1>i1 a2 i2>a2#x r2>i2", "", ""},

		// calls of calls
		{"u1 a1 i1>a1 i2>a1 t1>i1 i3>a1@i1 i4>a1@i1 t3>i3 r2>i2 r4>i4@i1 r3>i3@i1 i5>a1@i1 r5>i5@i1 r1>i1 a2", "", ""},
		{"a1 i1>a1 i2>a1 t1>i1 i3>a1@i1 i4>a1@i1 r3>i3@i1 i5>a1@i2", "1 open, 2 open, 5 open, 7 open", "i4 i1 i5 i2"},
		{"a1 i1>a1 i2>a1@i1 i3>a1@i2", "1 open, 2 open, 3 parent, 3 unanswered", "i2 i1"},
		{"a1 i1>a1 i2>a1@i9 r2>i2@i9 r1>i1", "2 parent, 3 place, 3 parent", ""},
		{"a1 i1>a1 r1>i1 i2>a1@i1 r2>i2@i1", "3 parent, 4 place, 4 parent", ""},
		{"a1 i1>a1 i2>a1@i1 r1>i1 r2>i2@i1", "3 parent", ""},
		{"a1 i1>a1 i2>a1@i1 r2>i2 r1>i1", "3 parent", ""},
		{"a1 i1>a1 r1>i1@i1", "2 parent", ""},
		{"a1 i1>a1 i2>a1#x@i1 i3>a1#x@i1 r2>i2@i1 r3>i3@i1 r1>i1", "3 call_id", ""},
		{"a1 i1>a1#x i2>a1#y i3>a1#x@i1 i4>a1#x@i2 r3>i3@i1 r4>i4@i2 r1>i1 r2>i2", "", ""},
		{"a1 i1>a1 r1>i1 a2 i2>a2 i3>a1@i2 r3>i3@i2 r2>i2", "5 parent, 6 place, 6 parent", ""},
		{"a1 i1>a1@i1 r1>i1@i1", "1 parent, 2 place, 2 parent", ""},

		{"u1 a1 i1>a1 i2>a1", "2 open, 3 open", "i1 i2"},
		{"u1 a1 i1>a1 i2>a1 i3>a1 r2>i2", "2 open, 4 open", "i1 i3"},
		{"u1 a1 i1>a1 i2>a1 r1>i1 r2>i2", "", ""},
		{"a1 i1>a1 r1>i1 a2 i2>a2", "4 open", "i2"},
		{"a1 i1>a1 i2>a1 r1>i1 u1", "2 unanswered", ""},
		{"a1 i1>a1 a2 i2>a2", "1 unanswered, 3 open", "i2"},
		{"a1 i1>a1 a2", "1 unanswered", ""},

		{"u1 - a1", "1 value", ""},
		{"*u1 a1", "0 value", ""},
		{"u! a1 u!", "0 missing_id, 2 missing_id", ""},
		{"u1 u2 u1 d1 a1 u1", "2 duplicate_id, 5 duplicate_id", ""},
		{"u1 a1 i1>a1 r1>i1 s1 u1 r1>i1", "5 duplicate_id, 6 repeated, 6 duplicate_id", ""},
		{"a! i1> r1>i1", "0 missing_id, 1 message, 2 place", ""},

		{"a1 i1>a1#x i2>a1#x r1>i1 r2>i2", "2 call_id", ""},
		{"a1 i1>a9 r1>i1", "1 message, 2 place", ""},
		{"a1 i1>a2 a2", "1 message, 1 unanswered", ""},
		{"u1 i1>u1", "1 message, 1 unanswered", ""},

		{"a1 u1 i1>a1 r1>i1", "2 place, 3 place", ""},
		{"a1 i1>a1 u1 i2>a1 r1>i1 r2>i2", "3 place, 4 place, 5 place", ""},
		{"a1 i1>a1 r1>i1 i2>a1 r2>i2", "3 place, 4 place", ""},
		{"a1 i1>a1 u1 r1>i1", "3 place", ""},
		{"a1 i1>a1 a2 i2>a2 r1>i1 r2>i2", "4 place", ""},
		{"a1 i1>a1 a2 i2>a1", "1 unanswered, 3 place, 3 unanswered", ""},
		{"a1 i1>a1 i2>a1 r2>i2 r1>i1", "", ""},
		{"a1 i1>a1 i2>a1 i3>a1 r3>i3 r1>i1 r2>i2", "", ""},

		{"a1 r1>i1 i1>a1", "1 orphan, 2 open", ""},
		{"u1 r1>i9", "1 orphan", ""},
		{"u1 r1>u1", "1 orphan", ""},
		{"a1 i1>a1 r1>i1 r2>i1", "3 repeated", ""},
		{"a1 i1>a1 r1>i1 u1 r2>i1", "4 repeated", ""},

		{"a1 i1>a1 i2>a1 t1>i1 t2>i2 r2>i2 r1>i1 u1", "", ""},
		{"a1 i1>a1 i2>a1 t2>i2 w1>i1 r2>i2 n1>w1 t1>i1", "1 open", "i1"},
		{"a1 i1>a1 t1>i1 w1>i1 n1>w1", "1 open", "i1"},
		{"u1 w1 n1>w1 a1 i1>a1 w2", "4 open", "i1"},
		{"a1 i1>a1 t1>i1 t2>i1 r1>i1 a2", "", ""},
		{"a1 i1>a1 r1>i1 t1>i1", "3 repeated", ""},
		{"a1 i1>a1 r1>i1 w1>i1", "3 repeated", ""},
		{"a1 i1>a1 t1>i1 i2>a1 t2>i2 r1>i1 r2>i2", "3 place, 4 place, 6 place", ""},
		{"a1 i1>a1 n1>w1 i2>a1", "1 open, 2 orphan, 3 place, 3 unanswered", ""},
		{"a1 w1 i1>a1 r1>i1", "2 place, 3 place", ""},
		{"a1 t1>i1 w1>i1", "1 orphan, 2 orphan", ""},
		{"a1 i1>a1 w1>i1 n1>w1 n2>w1 r1>i1", "4 repeated", ""},
		{"a1 i1>a1 u1 t1>i1", "1 unanswered, 3 place", ""},
		{"u1 n1>w1 w1 t1", "1 orphan, 3 orphan", ""},
	} {
		t.Run(test.history, func(t *testing.T) {
			given := history(test.history)
			var got []string
			for _, p := range sequence.Check(given) {
				got = append(got, fmt.Sprint(p.Index, " ", p.Rule))
				if c := given[p.Index]; c != nil && p.Rule != sequence.RuleValue && p.ID != c.Header().ID {
					t.Errorf("%v has the identity of another canister", p)
				}
				if p.Text == "" || !strings.Contains(p.String(), p.Text) {
					t.Errorf("%q says nothing", p.String())
				}
			}
			if found := strings.Join(got, ", "); found != test.want {
				t.Errorf("found %q, want %q", found, test.want)
			}
			var waiting []string
			for _, call := range canister.Pending(given) {
				waiting = append(waiting, call.ID)
			}
			if pending := strings.Join(waiting, " "); pending != test.pending {
				t.Errorf("pending %q, want %q", pending, test.pending)
			}
		})
	}
}

func TestCheckOfAMissingCallID(t *testing.T) {
	given := history("a1 i1>a1")
	given[1] = canister.Invocation{Head: canister.Head{ID: "i1"}, Message: "a1"}
	problems := sequence.Check(given)
	if len(problems) != 2 || problems[0].Rule != sequence.RuleCallID {
		t.Errorf("found %v", problems)
	}
}

// What is pending is what Check calls open, wherever a valid history is cut.
func TestPendingIsWhatIsOpen(t *testing.T) {
	whole := history("s1 u1 a1 i1>a1 i2>a1 i3>a1 r1>i1 r2>i2 r3>i3 a2 i4>a2 r4>i4 a3 u2")
	for end := range len(whole) + 1 {
		var open, pending []string
		for _, p := range sequence.Check(whole[:end]) {
			if p.Rule != sequence.RuleOpen {
				t.Errorf("cut at %d: %v", end, p)
			}
			open = append(open, p.ID)
		}
		for _, call := range canister.Pending(whole[:end]) {
			pending = append(pending, call.ID)
		}
		if !slices.Equal(open, pending) {
			t.Errorf("cut at %d: open %q, pending %q", end, open, pending)
		}
	}
}
