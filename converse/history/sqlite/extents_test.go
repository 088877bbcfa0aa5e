// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"fmt"
	"testing"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/internal/sqlstore"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// conflict returns the length in a conflict of an append, or -1 if err is none.
func conflict(err error) int {
	if c, ok := errors.AsType[*history.ConflictError](err); ok {
		return c.Length
	}
	return -1
}

// An append finds the conversation as another connection has left it, whatever the writer remembers.
func TestExtentsThatOthersChange(t *testing.T) {
	s := open(t)
	other := openAt(t, s.path, nil)
	storetest.Add(t, s, "talk", 0, "a", "b")
	storetest.Add(t, other, "talk", 2, "c")
	if err := s.Append(t.Context(), "talk", 2, storetest.Says("x", "text")); conflict(err) != 3 {
		t.Errorf("after an append of another store: %v", err)
	}
	storetest.Add(t, s, "talk", 3, "d")
	if err := other.Delete(t.Context(), "talk", 4); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "talk", 4, storetest.Says("x", "text")); conflict(err) != 0 {
		t.Errorf("after a deletion by another store: %v", err)
	}
	storetest.Add(t, s, "talk", 0, "e")
	if err := s.Delete(t.Context(), "talk", 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "talk", 1, storetest.Says("x", "text")); conflict(err) != 0 {
		t.Errorf("after a deletion by this store: %v", err)
	}
	storetest.Add(t, s, "talk", 0, "f")
	if got := storetest.Texts(t, s, "talk"); len(got) != 1 || got[0] != "f" {
		t.Errorf("there is %q", got)
	}
}

// What the writer remembers of a transaction that failed is forgotten.
func TestExtentsAfterARollback(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "talk", 0, "a")
	w := another(t, s)
	fault := errors.New("the database fails")
	row, err := sqlstore.RowOf(1, storetest.Says("c", "text"), []byte(`{"kind":"user","id":"c"}`))
	if err != nil {
		t.Fatal(err)
	}
	jobs := asked(t.Context(), 1, func(_ int, w *writer) (verdict, err error) {
		return nil, errors.Join(w.Insert(background, sqlstore.Extent{ID: "talk", Key: 1, Length: 1}, []sqlstore.Row{row}), fault)
	})
	w.serve(jobs)
	if err := <-jobs[0].done; !errors.Is(err, fault) {
		t.Error(err)
	}
	if e, ok := w.Known("talk"); ok {
		t.Errorf("the writer remembers %+v", e)
	}
}

// The writer remembers a limited number of conversations.
func TestExtentsAreBounded(t *testing.T) {
	x := extents{byID: map[string]sqlstore.Extent{}}
	for i := range 3 * maxExtents {
		x.add(sqlstore.Extent{ID: fmt.Sprint(i), Key: 1})
		if _, ok := x.byID[fmt.Sprint(i)]; !ok || len(x.byID) > maxExtents {
			t.Fatalf("%d are remembered after %d", len(x.byID), i+1)
		}
	}
}
