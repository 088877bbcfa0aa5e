// SPDX-License-Identifier: Apache-2.0

package listpage_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/listpage"
)

// listed is a store with a list, which counts what is read of it.
type listed struct {
	history.Store
	all  []history.Info
	read int
}

var errDamaged = errors.New("damaged")

func (s *listed) List(_ context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	return func(yield func(history.Info, error) bool) {
		n := 0
		for _, info := range s.all {
			if filter.Limit > 0 && n == filter.Limit {
				return
			}
			if !filter.Match(info) {
				continue
			}
			s.read++
			n++
			if info.Title == "damaged" && !yield(info, errDamaged) || info.Title == "" && !yield(info, nil) {
				return
			}
		}
	}
}

// Pages have each conversation once and in order, also if many changed at the same time, and
// read little more than they show.
func TestRead(t *testing.T) {
	s := &listed{}
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range 1000 {
		s.all = append(s.all, history.Info{ID: fmt.Sprintf("c%04d", i), Changed: begin.Add(-time.Duration(i/40) * time.Second)})
	}
	for _, size := range []int{1, 7, 100, 2000} {
		at, n, isLast := listpage.Place{}, 0, false
		for !isLast {
			s.read = 0
			var page []history.Info
			var err error
			if page, isLast, err = listpage.Read(t.Context(), s, history.Filter{}, at, size, nil); err != nil {
				t.Fatal(err)
			}
			for _, info := range page {
				if info.ID != s.all[n].ID {
					t.Fatalf("pages of %d have %s at %d", size, info.ID, n)
				}
				n++
			}
			if s.read > 8*(size+42) {
				t.Errorf("a page of %d reads %d", size, s.read)
			}
			at = listpage.After(page[len(page)-1])
		}
		if n != len(s.all) {
			t.Errorf("pages of %d have %d conversations", size, n)
		}
	}
}

// A conversation that cannot be read is reported, and the others are listed.
func TestDamaged(t *testing.T) {
	s := &listed{all: []history.Info{{ID: "a"}, {ID: "b", Title: "damaged"}, {ID: "c"}}}
	page, isLast, err := listpage.Read(t.Context(), s, history.Filter{}, listpage.Place{}, 2, nil)
	if len(page) != 2 || !isLast || !errors.Is(err, errDamaged) {
		t.Errorf("got %v, %v, %v", page, isLast, err)
	}
}

// Conversations that are not shown do not end a page early.
func TestShows(t *testing.T) {
	s := &listed{}
	for i := range 100 {
		s.all = append(s.all, history.Info{ID: fmt.Sprintf("c%04d", i), Owner: []string{"ada", "ben"}[i/50]})
	}
	page, isLast, err := listpage.Read(t.Context(), s, history.Filter{}, listpage.Place{}, 3, func(info history.Info) bool { return info.Owner == "ben" })
	if len(page) != 3 || page[0].ID != "c0050" || isLast || err != nil {
		t.Errorf("got %v, %v, %v", page, isLast, err)
	}
}

// Damage of a conversation that is not shown is not reported.
func TestDamageIsHidden(t *testing.T) {
	s := &listed{all: []history.Info{{ID: "a", Owner: "ada"}, {ID: "b", Title: "damaged"}, {ID: "c", Title: "damaged", Owner: "ben"}}}
	for i := range s.all {
		s.all[i].Changed = time.Date(2026, 3, 1, 12-i, 0, 0, 0, time.UTC)
	}
	for owner, isReported := range map[string]bool{"ada": false, "ben": true} {
		_, isLast, err := listpage.Read(t.Context(), s, history.Filter{}, listpage.Place{}, 2, func(info history.Info) bool { return info.Owner == owner })
		if !isLast || errors.Is(err, errDamaged) != isReported {
			t.Errorf("%s: %v, %v", owner, isLast, err)
		}
	}
}

// deleting is a store that loses two conversations while the first list is read.
type deleting struct {
	*listed
	lists int
}

func (s *deleting) List(ctx context.Context, filter history.Filter) iter.Seq2[history.Info, error] {
	s.lists++
	return func(yield func(history.Info, error) bool) {
		for info, err := range s.listed.List(ctx, filter) {
			if s.lists == 1 && (info.ID == "c0001" || info.ID == "c0003") {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// A page is not the last one because conversations were deleted while it was read.
func TestDeletedMeanwhile(t *testing.T) {
	s := &deleting{listed: &listed{}}
	for i := range 9 {
		s.all = append(s.all, history.Info{ID: fmt.Sprintf("c%04d", i), Changed: time.Unix(int64(-i/3), 0)})
	}
	page, isLast, err := listpage.Read(t.Context(), s, history.Filter{}, listpage.Place{}, 5, nil)
	if len(page) != 5 || isLast || err != nil {
		t.Errorf("got %v, %v, %v", page, isLast, err)
	}
	rest, isLast, err := listpage.Read(t.Context(), s, history.Filter{}, listpage.After(page[len(page)-1]), 5, nil)
	if len(rest) != 2 || rest[1].ID != "c0008" || !isLast || err != nil {
		t.Errorf("then %v, %v, %v", rest, isLast, err)
	}
}
