// SPDX-License-Identifier: Apache-2.0

package historytest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/suite"
)

// Harness describes a store under test to the suite.
type Harness struct {
	// Open opens the store. Each call opens the same conversations, and the store is
	// empty at first. The suite closes the stores that it opens. If the store is
	// neither Durable nor Shared, Open may return the same one each time.
	Open func() (history.Store, error)
	// Durable says that conversations are still there when the store is opened again.
	Durable bool
	// Shared says that the store may be open several times at once, as in several
	// processes. The suite then opens a store again without closing the previous one,
	// as after a crash.
	Shared bool
	// Torn, if not nil, calls append, which appends to the store that was opened last,
	// and opens another store in the state after a crash in the middle of that append:
	// n, from 0 to 1, is the fraction that was written. The suite closes it.
	Torn func(append func(), n float64) (history.Store, error)
	// Patience is how long the suite waits for events that should happen soon; default
	// 30 s.
	Patience time.Duration
}

// TestStore runs the suite that every [history.Store] must pass. It creates a new
// harness for each case, or several at a time; newHarness must release its resources
// with t.Cleanup. Each case is a subtest that logs its rule when it fails. With -short
// the long conversation is a tenth as long; see also [HistoriesVariable].
func TestStore(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, c := range storeCases {
		t.Run(c.name, func(t *testing.T) {
			s := &storeSubject{T: t, Harness: newHarness(t), newHarness: newHarness}
			if c.needs == durable && !s.Durable || c.needs == shared && !s.Shared {
				t.Skipf("the store is not %s", c.needs)
			}
			s.Patience = cmp.Or(s.Patience, 30*time.Second)
			s.store = s.open()
			defer suite.Rule(t, c.rule)
			c.check(s)
		})
	}
}

// The guarantees that a case may require.
const (
	durable = "durable"
	shared  = "shared"
)

// storeCase is one rule and how it is checked.
type storeCase struct {
	name, needs, rule string
	check             func(*storeSubject)
}

// storeSubject is the store in a running case.
type storeSubject struct {
	*testing.T
	Harness
	newHarness func(t *testing.T) Harness
	store      history.Store
}

// open opens the store again.
func (s *storeSubject) open() history.Store {
	s.Helper()
	store, err := s.Open()
	if err != nil {
		s.Fatalf("Open: %v", err)
	}
	s.Cleanup(func() {
		if err := store.Close(); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
	return store
}

// reopen opens the store as after a crash, or, if the store does not allow that, after
// closing it.
func (s *storeSubject) reopen() {
	s.Helper()
	if !s.Shared {
		if err := s.store.Close(); err != nil {
			s.Fatalf("Close: %v", err)
		}
	}
	s.store = s.open()
}

// context returns a context that ends when the suite's patience does.
func (s *storeSubject) context() context.Context { return suite.Context(s.T, s.Patience) }

// says returns a canister of the user.
func says(id, text string) canister.Canister {
	return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
}

// replies returns a canister of the model.
func replies(id, text string) canister.Canister {
	return canister.Assistant{Head: canister.Head{ID: id}, Content: canister.Texts(text), Finish: canister.FinishStop}
}

// numbered returns canisters from..to-1 of a conversation whose canisters are named by
// their places.
func numbered(from, to int) []canister.Canister {
	list := make([]canister.Canister, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, says(fmt.Sprintf("c%d", i), fmt.Sprintf("this is number %d", i)))
	}
	return list
}

// append appends canisters, which must succeed.
func (s *storeSubject) append(conversation string, length int, canisters ...canister.Canister) {
	s.Helper()
	if err := s.store.Append(s.context(), conversation, length, canisters...); err != nil {
		s.Fatalf("Append to %s at %d: %v", suite.Quote(conversation), length, err)
	}
}

// read returns the canisters after a place.
func (s *storeSubject) read(conversation string, after int) []canister.Canister {
	s.Helper()
	list, err := suite.Collect(s.store.Read(s.context(), conversation, after))
	if err != nil {
		s.Fatalf("Read of %s after %d: %v", suite.Quote(conversation), after, err)
	}
	return list
}

// holds checks all the canisters of a conversation.
func (s *storeSubject) holds(conversation string, want ...canister.Canister) {
	s.Helper()
	s.equal(conversation, s.read(conversation, 0), want)
}

// equal checks that canisters are the same, to the byte of their JSON form.
func (s *storeSubject) equal(conversation string, got, want []canister.Canister) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("conversation %s has %d canisters, want %d: %s", suite.Quote(conversation), len(got), len(want), identities(got))
	}
	for i := range want {
		is, err := canister.Marshal(got[i])
		if err != nil {
			s.Fatalf("canister %d of %s: %v", i, suite.Quote(conversation), err)
		}
		was, err := canister.Marshal(want[i])
		if err != nil {
			s.Fatalf("canister %d of the suite: %v", i, err)
		}
		if !bytes.Equal(is, was) || !reflect.DeepEqual(got[i], want[i]) {
			s.Fatalf("canister %d of %s is %s, want %s", i, suite.Quote(conversation), suite.Quote(string(is)), suite.Quote(string(was)))
		}
	}
}

// identities returns the IDs of the first canisters.
func identities(list []canister.Canister) []string {
	var ids []string
	for _, c := range list[:min(len(list), 12)] {
		ids = append(ids, c.Header().ID)
	}
	return ids
}

// conflict checks that an append is refused because the conversation has length
// canisters.
func (s *storeSubject) conflict(conversation string, length, expected int, canisters ...canister.Canister) {
	s.Helper()
	err := s.store.Append(s.context(), conversation, expected, canisters...)
	var conflict *history.ConflictError
	if !errors.As(err, &conflict) {
		s.Fatalf("Append to %s at %d is %v, want a conflict", suite.Quote(conversation), expected, err)
	}
	if want := (history.ConflictError{Conversation: conversation, Expected: expected, Length: length}); *conflict != want {
		s.Errorf("the conflict is %+v, want %+v", *conflict, want)
	}
}

// info returns the metadata of an existing conversation.
func (s *storeSubject) info(conversation string) history.Info {
	s.Helper()
	info, err := s.store.Info(s.context(), conversation)
	if err != nil {
		s.Fatalf("Info of %s: %v", suite.Quote(conversation), err)
	}
	return info
}

// missing checks that a conversation does not exist.
func (s *storeSubject) missing(conversation string) {
	s.Helper()
	if info, err := s.store.Info(s.context(), conversation); !errors.Is(err, history.ErrNotFound) {
		s.Errorf("Info of %s, which does not exist, is %+v and %v, want ErrNotFound", suite.Quote(conversation), info, err)
	}
	s.holds(conversation)
}

// lists checks which conversations match a filter, and their order.
func (s *storeSubject) lists(filter history.Filter, want ...string) {
	s.Helper()
	infos, err := suite.Collect(s.store.List(s.context(), filter))
	if err != nil {
		s.Fatalf("List of %+v: %v", filter, err)
	}
	var got []string
	for _, info := range infos {
		got = append(got, info.ID)
		s.sameInfo(info, s.info(info.ID))
	}
	if !slices.Equal(got, want) {
		s.Errorf("List of %+v has %q, want %q", filter, got, want)
	}
}

// sameInfo checks that two Infos are equal.
func (s *storeSubject) sameInfo(got, want history.Info) {
	s.Helper()
	sameTimes := got.Created.Equal(want.Created) && got.Changed.Equal(want.Changed)
	got.Created, got.Changed = want.Created, want.Changed
	if len(got.Tags) == 0 && len(want.Tags) == 0 {
		got.Tags, want.Tags = nil, nil
	}
	if !sameTimes || !reflect.DeepEqual(got, want) {
		s.Errorf("the info is %+v, want %+v", got, want)
	}
}

// changed appends to a conversation until it is the one changed last, by the clock of
// the store.
func (s *storeSubject) changed(conversation string) history.Info {
	s.Helper()
	var latest time.Time
	infos, err := suite.Collect(s.store.List(s.context(), history.Filter{}))
	if err != nil {
		s.Fatalf("List: %v", err)
	}
	for _, info := range infos {
		if info.Changed.After(latest) {
			latest = info.Changed
		}
	}
	length := len(s.read(conversation, 0))
	for start := time.Now(); time.Since(start) < s.Patience; length++ {
		s.append(conversation, length, says(fmt.Sprintf("c%d", length), "on we go"))
		if info := s.info(conversation); info.Changed.After(latest) {
			return info
		}
	}
	s.Fatalf("%s received appends for %v, and is not listed as changed after the others", suite.Quote(conversation), s.Patience)
	return history.Info{}
}

// describe changes the metadata of a conversation.
func (s *storeSubject) describe(conversation string, change history.Change) {
	s.Helper()
	if err := s.store.Describe(s.context(), conversation, change); err != nil {
		s.Fatalf("Describe of %s: %v", suite.Quote(conversation), err)
	}
}

// fork forks a conversation.
func (s *storeSubject) fork(conversation string, length int, to string) {
	s.Helper()
	if err := s.store.Fork(s.context(), conversation, length, to); err != nil {
		s.Fatalf("Fork of %s at %d to %s: %v", suite.Quote(conversation), length, suite.Quote(to), err)
	}
}

// remove deletes a conversation of any length.
func (s *storeSubject) remove(conversation string) {
	s.Helper()
	if err := s.store.Delete(s.context(), conversation, history.AnyLength); err != nil {
		s.Fatalf("Delete of %s: %v", suite.Quote(conversation), err)
	}
}
