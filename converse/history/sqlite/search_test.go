// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// crowded returns a store with many conversations, whose texts the store has indexed except
// the last ones.
func crowded(t *testing.T, n int) *Store {
	t.Helper()
	s := open(t)
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for i := worker; i < n; i += 64 {
				words := fmt.Sprintf("number %d", i)
				for word, has := range map[string]bool{"often": i%2 == 0, "seldom": i%500 == 7, "early": i < 60} {
					if has {
						words += " " + word
					}
				}
				if err := s.Append(t.Context(), fmt.Sprintf("c%04d", i), 0, storetest.Says("u", words)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return s
}

// A list with a limit is the beginning of the list without one, and a list reads the
// conversations in its order instead of sorting them.
func TestLimitedLists(t *testing.T) {
	s := crowded(t, orderedFrom+50)
	everything := listed(t, s, history.Filter{})
	for _, text := range []string{"", "often", "seldom", "often number", "seldom number", "early", "early often", "often 7", "7", "absent", "number absent"} {
		for _, until := range []string{"", everything[10], everything[len(everything)-80]} {
			filter := history.Filter{Text: text}
			if until != "" {
				info, err := s.Info(t.Context(), until)
				if err != nil {
					t.Fatal(err)
				}
				filter.Until = info.Changed
			}
			want := listed(t, s, filter)
			for _, limit := range []int{1, 5, 50} {
				filter.Limit = limit
				if got := listed(t, s, filter); !slices.Equal(got, want[:min(limit, len(want))]) {
					t.Errorf("%+v lists %q, want the beginning of %q", filter, got, want)
				}
			}
		}
	}
	plan := ""
	statement, args := (&lookup{filter: history.Filter{Until: time.Now(), Owner: "o"}}).statement()
	rows, err := s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan += detail + "\n"
	}
	if !strings.Contains(plan, "conversations_changed") || strings.Contains(plan, "TEMP B-TREE") || rows.Err() != nil {
		t.Errorf("the plan is %s, %v", plan, rows.Err())
	}
}

func listed(t *testing.T, s *Store, filter history.Filter) (ids []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.ID)
	}
	return ids
}

// A conversation that is damaged does not hide the others from a search for a frequent word.
func TestFrequentWordNextToDamage(t *testing.T) {
	s := crowded(t, 2*maxKeys+200)
	everything := listed(t, s, history.Filter{Text: "often"})
	harm(t, s, "UPDATE canisters SET line = 'x' WHERE conversation = (SELECT key FROM conversations WHERE id = '"+everything[3]+"')")
	if got := listed(t, s, history.Filter{Text: "often", Limit: 10}); !slices.Equal(got, everything[:10]) {
		t.Errorf("found %q, want %q", got, everything[:10])
	}
}

// occupied makes the writer wait, so that it indexes nothing, until release is called.
func occupied(t *testing.T, s *Store) (release func()) {
	t.Helper()
	began, end := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- s.submit(t.Context(), func(*writer) (verdict, err error) {
			close(began)
			<-end
			return nil, nil
		})
	}()
	<-began
	return func() {
		close(end)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A search ends if the canisters that it waits for are deleted before they are indexed.
func TestSearchDuringDelete(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for try := 0; ; try++ {
		id := fmt.Sprint("talk", try)
		if err := s.Append(ctx, id, 0, storetest.Says("u", "text")); err != nil {
			t.Fatal(err)
		}
		release := occupied(t, s)
		searched, deleted := make(chan error, 1), make(chan error, 1)
		go func() { searched <- s.catchUp(ctx) }()
		select {
		case index := <-s.jobs:
			go func() { deleted <- s.Delete(ctx, id, history.AnyLength) }()
			deletion := <-s.jobs
			release()
			s.jobs <- deletion
			s.jobs <- index
			if err := errors.Join(<-deleted, <-searched); err != nil {
				t.Error(err)
			}
			return
		case err := <-searched: // the writer was idle for long enough to index the text
			if release(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
