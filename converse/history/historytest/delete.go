// SPDX-License-Identifier: Apache-2.0

package historytest

import (
	"errors"
	"fmt"
	"math"

	"github.com/consort-go/consort/converse/history"
)

// refused checks that a delete is refused because the conversation has length
// canisters.
func (s *storeSubject) refused(conversation string, length, expected int) {
	s.Helper()
	err := s.store.Delete(s.context(), conversation, expected)
	want := history.ConflictError{Conversation: conversation, Expected: expected, Length: length}
	if conflict, ok := errors.AsType[*history.ConflictError](err); !ok || *conflict != want {
		s.Errorf("Delete of %s with %d canisters is %v, want %v", conversation, expected, err, &want)
	}
}

func deleteCompare(s *storeSubject) {
	s.append("talk", 0, numbered(0, 3)...)
	s.describe("talk", history.Change{Title: ptr("kept")})
	s.fork("talk", 0, "empty")
	for _, expected := range []int{0, 1, 2, 4, math.MaxInt} {
		s.refused("talk", 3, expected)
	}
	s.refused("empty", 0, 1)
	s.holds("talk", numbered(0, 3)...)
	if info := s.info("talk"); info.Title != "kept" || info.Length != 3 {
		s.Errorf("after deletes that were refused the info is %+v", info)
	}
	for conversation, length := range map[string]int{"talk": 3, "empty": 0, "nothing": 7} {
		for range 2 {
			if err := s.store.Delete(s.context(), conversation, length); err != nil {
				s.Errorf("Delete of %s: %v", conversation, err)
			}
		}
		s.missing(conversation)
	}
	s.append("talk", 0, numbered(0, 2)...)
	if err := s.store.Delete(s.context(), "talk", -2); err != nil {
		s.Errorf("Delete of any length: %v", err)
	}
	s.missing("talk")
}

// raceDeletes lets two stores delete a conversation while one of them appends to it.
// Each of the three operations begins first in turn.
func (s *storeSubject) raceDeletes(here, there history.Store) {
	ctx := s.context()
	landed := 0
	const rounds = 40
	for round := range rounds {
		s.append("talk", 0, numbered(0, 2)...)
		var appended error
		var deleted [2]error
		things := []func(){
			func() { appended = here.Append(ctx, "talk", 2, numbered(2, 4)...) },
			func() { deleted[0] = here.Delete(ctx, "talk", 2) },
			func() { deleted[1] = there.Delete(ctx, "talk", 2) },
		}
		s.each(len(things), func(i int) { things[(i+round)%len(things)]() })
		if appended == nil {
			landed++
			for _, err := range deleted {
				s.conflicted("a delete of 2 canisters, after an append succeeded,", err, 4)
			}
			s.holds("talk", numbered(0, 4)...)
			s.remove("talk")
		} else {
			s.conflicted("an append after 2 canisters, which did not succeed,", appended, 0)
			if err := errors.Join(deleted[:]...); err != nil { // the second one finds nothing
				s.Errorf("no append succeeded, and a delete of 2 canisters is %v", err)
			}
			s.missing("talk")
		}
		if s.Failed() {
			return
		}
	}
	s.Logf("%d of %d appends succeeded", landed, rounds)
}

// conflicted checks that an error says that the conversation talk has length canisters
// and not 2.
func (s *storeSubject) conflicted(what string, err error, length int) {
	s.Helper()
	want := history.ConflictError{Conversation: "talk", Expected: 2, Length: length}
	if conflict, ok := errors.AsType[*history.ConflictError](err); !ok || *conflict != want {
		s.Errorf("%s is %v, want %v", what, err, &want)
	}
}

// listDeleting lists conversations with all sorts of IDs while they are deleted.
func listDeleting(s *storeSubject) {
	const conversations = 100
	id := func(i int) string { return fmt.Sprintf("Ann's talk %d", i) }
	for i := range conversations {
		s.append(id(i), 0, says("c0", "x"))
	}
	ctx, deleted := s.context(), make(chan struct{})
	go func() {
		defer close(deleted)
		for i := range conversations {
			if err := s.store.Delete(ctx, id(i), history.AnyLength); err != nil {
				s.Errorf("Delete: %v", err)
			}
		}
	}()
	for isOver := false; !isOver; {
		select {
		case <-deleted:
			isOver = true // after one more list
		default:
		}
		for info, err := range s.store.List(ctx, history.Filter{}) {
			if err != nil {
				s.Errorf("List yields %+v, %v", info, err)
			}
		}
	}
	<-deleted
	s.lists(history.Filter{})
}
