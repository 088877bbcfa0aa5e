// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/jackc/pgx/v5"
)

// A list with a limit is the beginning of the whole list, in whatever order conversations were
// created and changed, and however few of the new ones match.
func TestListsWithLimits(t *testing.T) {
	dsn := pgtest.DSN(t)
	store, err := postgres.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	for _, order := range []string{"-i", "i * 7919 % 3000", "i / 100"} {
		if _, err := db.Exec(t.Context(), `TRUNCATE consort.conversations`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(), `INSERT INTO consort.conversations (id, title, folded, tags, owner, created, changed, length, last, parent, parent_length)
			SELECT 'c' || i * 31 % 3001, '', '', CASE WHEN i % 500 = 0 THEN '{rare}'::text[] ELSE '{}' END, 'owner-' || (i / 1500)::int, now(),
			'2026-03-01'::timestamptz + (`+order+`) * interval '1 second', 1, CASE WHEN i % 3 = 0 THEN 'user' ELSE 'assistant' END, '', 0 FROM generate_series(1, 3000) i`); err != nil {
			t.Fatal(err)
		}
		march := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		for _, filter := range []history.Filter{{}, {Owner: "owner-0"}, {Owner: "owner-1", Open: true}, {Tags: []string{"rare"}},
			{Until: march.Add(20 * time.Minute)},
			{Since: march.Add(-10 * time.Minute), Until: march.Add(10 * time.Minute)}, {Owner: "nobody"}} {
			all := ids(t, store, filter)
			for _, limit := range []int{1, 52, 400, 5000} {
				filter.Limit = limit
				if got := ids(t, store, filter); !slices.Equal(got, all[:min(limit, len(all))]) {
					t.Errorf("order %s, %+v: %d conversations differ from the first of %d", order, filter, len(got), len(all))
				}
			}
		}
	}
}

func ids(t *testing.T, store history.Store, filter history.Filter) (all []string) {
	t.Helper()
	for info, err := range store.List(t.Context(), filter) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info.ID)
	}
	return all
}
