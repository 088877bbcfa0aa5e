// SPDX-License-Identifier: Apache-2.0

package sequence_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
)

func TestRepair(t *testing.T) {
	for _, test := range []struct{ history, want, changes string }{
		{"", "", ""},
		{"u1 a1 i1>a1 i2>a1 r1>i1 r2>i2 a2", "u1 a1 i1>a1 i2>a1 r1>i1 r2>i2 a2", ""},

		// invocations without a result
		{"a1 i1>a1", "a1 i1>a1 i1-result>i1", "added 2"},
		{"a1 i1>a1 i2>a1 r2>i2 u1", "a1 i1>a1 i2>a1 r2>i2 i1-result>i1 u1", "added 4"},
		{"a1 i1>a1 u1 u1-result a2", "a1 i1>a1 i1-result>i1 u1 u1-result a2", "added 2"},
		{"a1 i1>a1 ui1-result i1-result>a1", "a1 i1>a1 i1-result>a1 i1-result-2>i1 i1-result-result>i1-result ui1-result", "moved 2, added 3, added 4"},

		// results that answer nothing
		{"u1 r1>i1 a1", "u1 a1", "dropped 1"},
		{"a1 i1>a1 r1>i1 r2>i1 u1", "a1 i1>a1 r1>i1 u1", "dropped 3"},
		{"r1>i1 a1 i1>a1", "a1 i1>a1 r1>i1", "moved 2"},

		// places and order
		{"a1 i1>a1 i2>a1 r2>i2 r1>i1", "a1 i1>a1 i2>a1 r2>i2 r1>i1", ""},
		{"a1 i1>a1 u1 r1>i1", "a1 i1>a1 r1>i1 u1", "moved 2"},
		{"a1 i1>a1 r1>i1 i2>a1 r2>i2", "a1 i1>a1 i2>a1 r1>i1 r2>i2", "moved 2, moved 3, moved 4"},
		{"u1 i1>a1 r1>i1 a1 u2", "u1 a1 i1>a1 r1>i1 u2", "moved 2"},

		// intents, waits and answers
		{"a1 i1>a1 i2>a1 w1>i1 t2>i2 r2>i2 n1>w1 t1>i1 r1>i1", "a1 i1>a1 i2>a1 w1>i1 t2>i2 r2>i2 n1>w1 t1>i1 r1>i1", ""},
		{"a1 i1>a1 t1>i1", "a1 i1>a1 t1>i1 i1-result>i1", "added 3"},
		{"a1 i1>a1 r1>i1 t1>i1 u1", "a1 i1>a1 t1>i1 r1>i1 u1", "moved 2, moved 3"},
		{"a1 i1>a1 u1 w1>i1 n1>w1 r1>i1", "a1 i1>a1 w1>i1 r1>i1 u1 n1>w1", "moved 2, moved 3, moved 5"},
		{"u1 t1>i1 w1>i1 n1>w1 n2>w9 t2", "u1", "dropped 1, dropped 2, dropped 3, dropped 4, dropped 5"},
		{"u1 w1 n1>w1 n2>w1", "u1 w1 n1>w1", "dropped 3"},
		{"u1 n1>w1 w1", "u1 w1", "dropped 1"},
		{"a1 i1>a1 w! n1>w1", "a1 i1>a1 wait-3 i1-result>i1", "dropped 3, changed 2, added 3"},
		{"a1 i1>a1 w1>i1 t1>i1 r1>i1 n1>w1 u1 n2>w2 w3 a2 n3>w3", "a1 i1>a1 w1>i1 t1>i1 r1>i1 n1>w1 u1 w3 a2 n3>w3", "dropped 7"},
		{"a1 i1>a1 w1>i1 r1>i1 u1 n1>w1", "a1 i1>a1 w1>i1 r1>i1 u1 n1>w1", ""},
		{"w1>i1 n1>w1 a1 i1>a1", "a1 i1>a1 w1>i1 n1>w1 i1-result>i1", "moved 2, added 4"},
		{"a1 w1 i1>a1 n1>w1", "a1 i1>a1 w1 n1>w1 i1-result>i1", "moved 1, moved 2, moved 3, added 4"},
		{"u1 w1 w1 n1>w1", "u1 w1 n1>w1", "dropped 2"},

		// calls of calls
		{"a1 i1>a1 i2>a1@i1 t2>i2 r2>i2@i1 i3>a1@i1 r3>i3@i1 r1>i1 u1", "a1 i1>a1 i2>a1@i1 t2>i2 r2>i2@i1 i3>a1@i1 r3>i3@i1 r1>i1 u1", ""},
		{"a1 i1>a1 i2>a1@i1", "a1 i1>a1 i2>a1@i1 i2-result>i2@i1 i1-result>i1", "added 3, added 4"},
		{"a1 i1>a1 r1>i1 r2>i2@i1 i2>a1@i1", "a1 i1>a1 i2>a1@i1 r2>i2@i1 r1>i1", "moved 2, moved 3, moved 4"},
		{"a1 i1>a1 t2>i2 i2>a1@i1 r1>i1", "a1 i1>a1 i2>a1@i1 t2>i2 i2-result>i2@i1 r1>i1", "moved 2, moved 3, added 4, moved 5"},
		{"a1 i1>a1 r1>i1 u1 i2>a1@i1 t2>i2", "a1 i1>a1 i2>a1@i1 t2>i2 i2-result>i2@i1 r1>i1 u1", "moved 2, added 4, moved 5"},
		{"a1 i1>a1 i2>a9@i1 r2>i2@i9 r1>i1@i1", "a1 i1>a1 i2>a1@i1 r2>i2@i1 r1>i1", "changed 2, changed 3, changed 4"},
		{"a1 i1>a1 i2>a1@i1 i3>a1@i2 r3>i3@i2 r2>i2@i1 r1>i1", "a1 i1>a1 i2>a1@i1 r2>i2@i1 r1>i1", "dropped 3, dropped 4"},
		{"a1 i1>a1 i2>a1#x@i1 i3>a1#x@i1 r2>i2@i1 r3>i3@i1 r1>i1", "a1 i1>a1 i2>a1#x@i1 i3>a1#x-2@i1 r2>i2@i1 r3>i3@i1 r1>i1", "changed 3"},

		// an Assistant that is missing
		{"u1 i1>a9 i2>a9 r1>i1 r2>i2", "u1 a9 i1>a9 i2>a9 r1>i1 r2>i2", "added 1"},
		{"ua9 u1 i1>ua9 r1>i1", "ua9 u1 ua9-2 i1>ua9-2 r1>i1", "added 2, changed 3"},
		{"u1 i1> r1>i1", "u1 assistant-2 i1>assistant-2 r1>i1", "added 1, changed 2"},

		// identities
		{
			"u! a! i!> r!>", "user-1 assistant-2 invocation-3>assistant-2#c-i! result-4>invocation-3",
			"changed 0, changed 1, changed 2, changed 2, changed 3, changed 3",
		},
		{"u! u!", "user-1 user-2", "changed 0, changed 1"},
		{"u! user-1", "user-1-2 user-1", "changed 0"},
		{"u1 a1 i1>a1 r1>i1 u2 a1 i2>a1 r2>i2", "u1 a1 i1>a1 i2>a1 r1>i1 r2>i2 u2", "dropped 5, moved 3, moved 4, moved 5"},
		{"a1 i1>a1#x i1>a1#y r1>i1 r2>i1", "a1 i1>a1#x i1-2>a1#y r1>i1 r2>i1-2", "changed 2, changed 4"},
		{"a1 i1>a1#x i2>a1#x i3>a1#x-2 r1>i1 r2>i2 r3>i3", "a1 i1>a1#x i2>a1#x-3 i3>a1#x-2 r1>i1 r2>i2 r3>i3", "changed 2"},

		// repeats: the same again is dropped, another of the same name is not
		{"u1 u1 u1", "u1", "dropped 1, dropped 2"},
		{"u1 a1 i1>a1 r1>i1 u1 a1 i1>a1 r1>i1", "u1 a1 i1>a1 r1>i1", "dropped 4, dropped 5, dropped 6, dropped 7"},
		{"r1>i1 - u1", "u1", "dropped 0, dropped 1"},
		{"- u1 *u2 -", "u1 u2", "dropped 0, dropped 3, changed 1"},
	} {
		t.Run(test.history, func(t *testing.T) {
			given := history(test.history)
			repaired, changes := sequence.Repair(given)
			if got := notes(repaired); got != test.want {
				t.Errorf("repaired as %q, want %q", got, test.want)
			}
			var did []string
			for _, c := range changes {
				at := c.After
				if c.Action == sequence.ActionDropped {
					at = c.Before
				}
				did = append(did, fmt.Sprint(c.Action, " ", at))
			}
			if got := strings.Join(did, ", "); got != test.changes {
				t.Errorf("did %q, want %q\n%v", got, test.changes, changes)
			}
			checkRepair(t, given)
		})
	}
}

func TestRepairOfDifferentAssistantsOfOneName(t *testing.T) {
	given := history("a1 i1>a1 r1>i1 u1 a1 i2>a1 r2>i2")
	given[4] = canister.Assistant{Head: canister.Head{ID: "a1"}, Content: canister.Texts("another")}
	repaired, changes := sequence.Repair(given)
	if got, want := notes(repaired), "a1 i1>a1 r1>i1 u1 a1-2 i2>a1-2 r2>i2"; got != want {
		t.Errorf("repaired as %q, want %q", got, want)
	}
	if len(changes) != 2 {
		t.Errorf("changes: %v", changes)
	}
	checkRepair(t, given)
}

func TestRepairSaysThatTheCallWasInterrupted(t *testing.T) {
	repaired, changes := sequence.Repair(history("a1 i1>a1"))
	want := canister.Result{
		Head:       canister.Head{ID: "i1-result"},
		Invocation: "i1",
		Content:    canister.Texts("The call was interrupted. It may or may not have taken effect."),
		Code:       "CANCELED",
	}
	if !reflect.DeepEqual(repaired[2], canister.Canister(want)) {
		t.Errorf("added %#v", repaired[2])
	}
	if len(changes) != 1 || changes[0].Before != -1 || changes[0].ID != "i1-result" || changes[0].Text == "" {
		t.Errorf("changes: %#v", changes)
	}
}

func TestRepairOfMissingCallIDs(t *testing.T) {
	call := func(id string) canister.Canister {
		return canister.Invocation{Head: canister.Head{ID: id}, Message: "a1"}
	}
	given := append(history("a1"), call("i1"), call("i2"))
	repaired, _ := sequence.Repair(given)
	if got := notes(repaired[:3]); got != "a1 i1>a1#call i2>a1#call-2" {
		t.Errorf("repaired as %q", got)
	}
	checkRepair(t, given)
}

// checkRepair fails unless the repair of given keeps all that Repair promises.
func checkRepair(t *testing.T, given []canister.Canister) {
	t.Helper()
	before := slices.Clone(given)
	problems := sequence.Check(given)
	repaired, changes := sequence.Repair(given)
	if !reflect.DeepEqual(given, before) {
		t.Fatal("the history given was changed")
	}
	if left := sequence.Check(repaired); left != nil {
		t.Fatalf("problems are left: %v", left)
	}
	if (len(problems) == 0) != (len(changes) == 0) {
		t.Fatalf("problems %v, changes %v", problems, changes)
	}
	if len(problems) == 0 && len(given) > 0 && !reflect.DeepEqual(repaired, given) {
		t.Fatal("a history without problems was changed")
	}
	if pending := canister.Pending(repaired); pending != nil {
		t.Fatalf("pending: %v", pending)
	}
	account(t, given, repaired, changes)
	if again, more := sequence.Repair(repaired); more != nil || !bytes.Equal(lines(t, again), lines(t, repaired)) {
		t.Fatalf("a second repair changes more: %v", more)
	}
	if other, same := sequence.Repair(given); !bytes.Equal(lines(t, other), lines(t, repaired)) || !reflect.DeepEqual(same, changes) {
		t.Fatal("two repairs of one history differ")
	}
}

// account fails unless the changes explain the difference of the histories: each canister
// is dropped, or in the repaired history with its recorded change.
func account(t *testing.T, given, repaired []canister.Canister, changes []sequence.Change) {
	t.Helper()
	gone, added := map[int]bool{}, map[int]bool{}
	for _, c := range changes {
		switch c.Action {
		case sequence.ActionDropped:
			gone[c.Before] = true
		case sequence.ActionAdded:
			added[c.After] = true
		}
		if c.After >= 0 && repaired[c.After].Header().ID != c.ID {
			t.Fatalf("%v: is about %s", c, repaired[c.After].Header().ID)
		}
	}
	said := func(history []canister.Canister, but map[int]bool) []string {
		var all []string
		for i, c := range history {
			if !but[i] {
				all = append(all, fmt.Sprint(c.Kind(), " ", canister.TextOf(canister.ContentOf(c))))
			}
		}
		slices.Sort(all)
		return all
	}
	for i, c := range given {
		if p, ok := c.(*canister.User); ok && p != nil {
			given = slices.Clone(given)
			given[i] = *p
		}
	}
	if was, is := said(given, gone), said(repaired, added); !slices.Equal(was, is) {
		t.Fatalf("not accounted for:\nwas %q\nis %q", was, is)
	}
}

func lines(t *testing.T, history []canister.Canister) []byte {
	t.Helper()
	var lines bytes.Buffer
	if err := canister.Encode(&lines, history...); err != nil {
		t.Fatal(err)
	}
	return lines.Bytes()
}

// conversation makes a history without problems.
func conversation(r *rand.Rand, messages int) []canister.Canister {
	var history []canister.Canister
	head := func() canister.Head { return canister.Head{ID: fmt.Sprintf("c%d", len(history))} }
	say := func() []canister.Content { return canister.Texts(fmt.Sprintf("this is number %d", len(history))) }
	for range messages {
		switch r.IntN(6) {
		case 0:
			history = append(history, canister.Supervisor{Head: head(), Content: say()})
		case 1:
			history = append(history, canister.Document{Head: head(), Content: say()})
		case 2:
			history = append(history, canister.User{Head: head(), Content: say()})
		default:
			message := head()
			history = append(history, canister.Assistant{Head: message, Content: say()})
			first, calls := len(history), r.IntN(4)
			for i := range calls {
				history = append(history, canister.Invocation{Head: head(), Message: message.ID, CallID: fmt.Sprint(i)})
			}
			for _, i := range r.Perm(calls) {
				id := history[first+i].Header().ID
				for range r.IntN(3) {
					wait := head()
					history = append(history, canister.Wait{Head: wait, Invocation: []string{"", id}[r.IntN(2)]})
					history = append(history, canister.Intent{Head: head(), Invocation: id, Attempt: int64(len(history)), Wait: wait.ID})
					if r.IntN(2) == 0 {
						history = append(history, canister.Answer{Head: head(), Wait: wait.ID, Content: say()})
					}
				}
				history = append(history, callsWithin(r, len(history), message.ID, id)...)
				history = append(history, canister.Result{Head: head(), Content: say(), Invocation: id})
			}
		}
	}
	return history
}

// callsWithin makes some calls that an invocation made, which begin at an index.
func callsWithin(r *rand.Rand, index int, message, parent string) (made []canister.Canister) {
	head := func() canister.Head { return canister.Head{ID: fmt.Sprintf("c%d", index+len(made))} }
	for range r.IntN(3) {
		first, calls := len(made), 1+r.IntN(2)
		for range calls {
			made = append(made, canister.Invocation{Head: head(), Message: message, CallID: fmt.Sprint(len(made)), Parent: parent})
		}
		for _, i := range r.Perm(calls) {
			id := made[first+i].Header().ID
			if r.IntN(2) == 0 {
				made = append(made, canister.Intent{Head: head(), Invocation: id})
			}
			made = append(made, canister.Result{Head: head(), Invocation: id, Parent: parent})
		}
	}
	return made
}

// damage breaks a history in as many ways as it takes turns.
func damage(r *rand.Rand, history []canister.Canister, turns int) []canister.Canister {
	for range turns {
		if len(history) == 0 {
			return history
		}
		i, j := r.IntN(len(history)), r.IntN(len(history))
		switch r.IntN(10) {
		case 0:
			r.Shuffle(len(history), func(i, j int) { history[i], history[j] = history[j], history[i] })
		case 1:
			history[i], history[j] = history[j], history[i]
		case 2, 3:
			history = slices.Delete(history, i, i+1)
		case 4:
			history = slices.Insert(history, j, history[i])
		case 5:
			history = history[:i]
		case 6:
			history = slices.Insert(history, i, []canister.Canister{nil, (*canister.Result)(nil), &canister.User{}}...)
		default:
			history[i] = confuse(r, history[i], history[j])
		}
	}
	return history
}

// confuse gives c a name or a reference that is wrong.
func confuse(r *rand.Rand, c, other canister.Canister) canister.Canister {
	if !held(c) || !held(other) {
		return c
	}
	id := ""
	if name := other.Header().ID; r.IntN(4) > 0 {
		id = name + []string{"", "-2", "-result"}[r.IntN(3)]
	}
	switch c := c.(type) {
	case canister.Invocation:
		switch r.IntN(3) {
		case 0:
			c.Message = id
			return c
		case 1:
			c.CallID = []string{"", "0", "1", "1-2", "call"}[r.IntN(5)]
			return c
		}
	case canister.Result:
		if r.IntN(2) == 0 {
			c.Invocation = id
			return c
		}
	case canister.Intent:
		c.Invocation = id
		return c
	case canister.Wait:
		if r.IntN(2) == 0 {
			c.Invocation = id
			return c
		}
	case canister.Answer:
		c.Wait = id
		return c
	}
	head := c.Header()
	head.ID = id
	return canister.WithHead(c, head)
}

// held says whether c is there, by value.
func held(c canister.Canister) bool { return c != nil && reflect.TypeOf(c).Kind() == reflect.Struct }

func FuzzRepair(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, uint8(seed%30), uint8(seed%17))
	}
	f.Fuzz(func(t *testing.T, seed uint64, messages, turns uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		valid := conversation(r, int(messages))
		if problems := sequence.Check(valid); problems != nil {
			t.Fatalf("a good history has problems: %v", problems)
		}
		checkRepair(t, damage(r, valid, int(turns)))
	})
}

// Many canisters of one name must not take time that grows with their square.
func TestRepairOfManyOfOneName(t *testing.T) {
	var given []canister.Canister
	for i := range 50_000 {
		extra := canister.Extra{Metadata: canister.Fields{"n": json.RawMessage(fmt.Sprint(i))}}
		given = append(given, canister.User{Head: canister.Head{ID: "u", Extra: extra}})
	}
	repaired, changes := sequence.Repair(given)
	if sequence.Check(repaired) != nil || len(repaired) != len(given) || len(changes) != len(given)-1 {
		t.Errorf("%d canisters, %d changes", len(repaired), len(changes))
	}
}

// foreign is a canister that another package has made.
type foreign struct{ canister.User }

func TestRepairTakesPointersForWhatTheyPointAt(t *testing.T) {
	user, assistant, supervisor, document := canister.User{Head: canister.Head{ID: "1"}},
		canister.Assistant{Head: canister.Head{ID: "2"}}, canister.Supervisor{Head: canister.Head{ID: "3"}}, canister.Document{Head: canister.Head{ID: "4"}}
	invocation := canister.Invocation{Head: canister.Head{ID: "5"}, Message: "2", CallID: "c"}
	result := canister.Result{Head: canister.Head{ID: "6"}, Invocation: "5"}
	given := []canister.Canister{&user, &supervisor, &document, &assistant, &invocation, &result, (*canister.Document)(nil), foreign{user}}
	want := []canister.Canister{user, supervisor, document, assistant, invocation, result}
	repaired, changes := sequence.Repair(given)
	if !reflect.DeepEqual(repaired, want) || len(changes) != 8 {
		t.Errorf("repaired as %#v\n%v", repaired, changes)
	}
}
