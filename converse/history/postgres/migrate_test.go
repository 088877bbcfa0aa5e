// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/internal/testing/storetest"
	"github.com/jackc/pgx/v5"
)

// steps returns the first migrations, followed by another one.
func steps(t *testing.T, first int, next string) fstest.MapFS {
	t.Helper()
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) < first {
		t.Fatal(names, err)
	}
	all := fstest.MapFS{}
	for number := 1; number <= first; number++ {
		text, err := fs.ReadFile(migrations, step(number))
		if err != nil {
			t.Fatal(err)
		}
		all[step(number)] = &fstest.MapFile{Data: text}
	}
	if next != "" {
		all[step(first+1)] = &fstest.MapFile{Data: []byte(next)}
	}
	return all
}

func step(number int) string { return fmt.Sprintf("migrations/%d.sql", number) }

// newest is the version that this program makes.
func newest(t *testing.T) int {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	return len(names)
}

// columnsOf returns all columns and indexes of the schema.
func columnsOf(t *testing.T, s *Store) []string {
	t.Helper()
	found, err := s.pool.Query(t.Context(), `SELECT table_name || '.' || column_name || ' ' || data_type FROM information_schema.columns WHERE table_schema = $1
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = $1 ORDER BY 1`, s.name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// From each version, the tables become the newest.
func TestMigrationFromEachVersion(t *testing.T) {
	t.Parallel()
	want := columnsOf(t, open(t))
	for from := 1; from <= newest(t); from++ {
		dsn := pgtest.DSN(t)
		s := openAt(t, dsn, nil)
		harm(t, s, "DROP SCHEMA consort CASCADE")
		if err := s.migrate(t.Context(), steps(t, from, "")); err != nil {
			t.Fatal(err)
		}
		s = openAt(t, dsn, nil)
		storetest.Add(t, s, "talk", 0, "hello")
		if got := columnsOf(t, s); !slices.Equal(got, want) || value[int](t, s, "SELECT version FROM @.consort_layout") != newest(t) {
			t.Errorf("from version %d: %s", from, strings.Join(got, "\n"))
		}
	}
}

// A migration keeps what there is, and one that fails changes nothing.
func TestMigrationIsWholeOrNone(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := openAt(t, dsn, nil)
	storetest.Add(t, s, "talk", 0, "before")
	before := columnsOf(t, s)
	bad := steps(t, newest(t), "ALTER TABLE @.conversations ADD COLUMN x text; SELECT none FROM nowhere")
	if err := s.migrate(t.Context(), bad); err == nil || !strings.Contains(err.Error(), step(newest(t)+1)) {
		t.Error(err)
	}
	if after := columnsOf(t, s); !slices.Equal(after, before) {
		t.Errorf("a migration that failed left %s", strings.Join(after, "\n"))
	}
	if err := s.migrate(t.Context(), steps(t, newest(t), "ALTER TABLE @.conversations ADD COLUMN x text")); err != nil {
		t.Error(err)
	}
	if got := storetest.Texts(t, s, "talk"); !slices.Equal(got, []string{"before"}) {
		t.Errorf("there is %q", got)
	}
	// These tables are now of a newer program than this one.
	_, err := Open(t.Context(), dsn, nil)
	if !errors.Is(err, canister.ErrNewer) || !strings.Contains(err.Error(), `schema "consort" has version`) ||
		!strings.Contains(err.Error(), "use a program at least as new") {
		t.Error(err)
	}
}

// Many programs that open a new database at once all find it made.
func TestManyOpenAtOnce(t *testing.T) {
	dsn := pgtest.DSN(t)
	var wait sync.WaitGroup
	for range 12 {
		wait.Go(func() {
			s, err := Open(t.Context(), dsn, &Options{Connections: 1})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.Info(t.Context(), "none"); !errors.Is(err, history.ErrNotFound) {
				t.Error(err)
			}
			_ = s.Close()
		})
	}
	wait.Wait()
	s := openAt(t, dsn, nil)
	if n := count(t, s, "consort_layout"); n != 1 {
		t.Errorf("%d rows tell the version", n)
	}
}

// The tables of another program stay as they are, and a database that cannot
// hold every text is refused.
func TestADatabaseThatDoesNotFit(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := openAt(t, dsn, nil)
	harm(t, s, "CREATE TABLE public.songs (name text)")
	_, err := Open(t.Context(), dsn, &Options{Schema: "public"})
	if err == nil || !strings.Contains(err.Error(), "another program") || !strings.Contains(err.Error(), "Options.Schema") {
		t.Error(err)
	}
	if n := value[int](t, s, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); n != 1 {
		t.Errorf("there are %d tables of the other program", n)
	}
	name := value[string](t, s, "SELECT current_database()")
	harm(t, s, "CREATE DATABASE "+name+"_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	defer harm(t, s, "DROP DATABASE "+name+"_latin WITH (FORCE)")
	_, err = Open(t.Context(), strings.Replace(dsn, name, name+"_latin", 1), nil)
	if err == nil || !strings.Contains(err.Error(), "LATIN1") || !strings.Contains(err.Error(), "must have UTF8") {
		t.Error(err)
	}
	harm(t, s, "DELETE FROM @.consort_layout")
	if _, err := Open(t.Context(), dsn, nil); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Error(err)
	}
}
