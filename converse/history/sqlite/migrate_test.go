// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// steps returns the existing migrations, followed by others.
func steps(t *testing.T, more map[string]string) (all fstest.MapFS, version int) {
	t.Helper()
	all = fstest.MapFS{}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	for name, text := range more {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all, len(names)
}

// schema returns all that a database is made of, and its version.
func schema(t *testing.T, path string) (statements []string, version int) {
	t.Helper()
	db, err := connect(path, 1, "query_only(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		statements = append(statements, text)
	}
	return statements, version
}

// From each version, a database becomes the newest.
func TestMigrationFromEachVersion(t *testing.T) {
	all, newest := steps(t, nil)
	fresh := open(t)
	want, _ := schema(t, fresh.path)
	for from := 0; from <= newest; from++ {
		path := filepath.Join(t.TempDir(), "talks.db")
		db, err := connect(path, 1, "synchronous(0)")
		if err != nil {
			t.Fatal(err)
		}
		older := fstest.MapFS{}
		names := slices.Sorted(maps.Keys(all))
		for _, name := range names[:from] {
			older[name] = all[name]
		}
		if err := migrate(t.Context(), db, older); err != nil {
			t.Fatal(err)
		}
		db.Close()
		s := openAt(t, path, nil)
		storetest.Add(t, s, "talk", 0, "hello")
		if got, version := schema(t, path); version != newest || !slices.Equal(got, want) {
			t.Errorf("from version %d: version %d, %s", from, version, strings.Join(got, "\n"))
		}
	}
}

// A migration keeps what there is, and one that fails changes nothing.
func TestMigrationIsWholeOrNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talks.db")
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Add(t, s, "talk", 0, "before")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, version := schema(t, path)
	db, err := connect(path, 1, "synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	next := fmt.Sprintf("migrations/%d.sql", version+1)
	bad, _ := steps(t, map[string]string{next: "ALTER TABLE conversations ADD COLUMN x TEXT; SELECT none FROM nowhere"})
	if err := migrate(t.Context(), db, bad); err == nil || !strings.Contains(err.Error(), next) {
		t.Error(err)
	}
	if after, is := schema(t, path); is != version || !slices.Equal(after, before) {
		t.Errorf("version %d: %s", is, after)
	}
	good, _ := steps(t, map[string]string{next: "ALTER TABLE conversations ADD COLUMN x TEXT"})
	if err := migrate(t.Context(), db, good); err != nil {
		t.Error(err)
	}
	text := ""
	if err := db.QueryRowContext(t.Context(), "SELECT line FROM canisters WHERE x IS NULL", 0).Scan(&text); err == nil {
		t.Error("canisters have the column of conversations")
	}
	if err := db.QueryRowContext(t.Context(),
		"SELECT line FROM canisters, conversations WHERE x IS NULL").Scan(&text); err != nil || !strings.Contains(text, "before") {
		t.Errorf("%q, %v", text, err)
	}
	// That database is now of a newer program than this one.
	_, err = Open(path, nil)
	if !errors.Is(err, canister.ErrNewer) || !strings.Contains(err.Error(), fmt.Sprint("version ", version+1)) ||
		!strings.Contains(err.Error(), fmt.Sprint("up to ", version)) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// The database of another program stays as it is.
func TestADatabaseOfAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := connect(path, 1, "synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE songs (name)"); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Error(err)
	}
	if after, _ := os.ReadFile(path); !slices.Equal(before, after) {
		t.Error("the file was changed")
	}
}

// A store that was closed leaves no goroutine, and one file.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	path := filepath.Join(t.TempDir(), "talks.db")
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Add(t, s, "talk", 0, "hello")
	storetest.Find(t, s, history.Filter{Text: "hello"})
	for range s.Read(t.Context(), "talk", 0) {
		break
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("goroutines are left: %s", stacks[:runtime.Stack(stacks, true)])
		}
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 1 {
		t.Errorf("there are %q", files)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
