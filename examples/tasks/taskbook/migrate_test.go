// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// raw opens a database without the book.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := connect(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func run(t testing.TB, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// versionIn returns the version of the database in a file.
func versionIn(t testing.TB, path string) (version int) {
	t.Helper()
	if err := raw(t, path).QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

// The name of a migration begins with its number, and none is left out.
func TestMigrationsAreNumbered(t *testing.T) {
	steps, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(steps) < 2 {
		t.Fatalf("%q, %v", steps, err)
	}
	for i, step := range steps {
		if want := "000" + string(rune('1'+i)) + "_"; !strings.HasPrefix(filepath.Base(step), want) {
			t.Errorf("%s stands where %s… should", step, want)
		}
	}
}

func TestMigratingTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	var want []Task
	for range 3 {
		book, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, add(t, book, 1, "kept"))
		if got := list(t, book, 1); !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if err := book.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if v := versionIn(t, path); v != 2 {
		t.Errorf("version %d", v)
	}
}

func TestMigratingAnOlderDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first, err := migrations.ReadFile("migrations/0001_tasks.sql")
	if err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)
	run(t, db, string(first)+`; PRAGMA application_id = 128299020; PRAGMA user_version = 1;
		INSERT INTO tasks (user_id, title, created_at) VALUES (1, 'old', '2026-02-08T14:30:00Z')`)
	if got := list(t, openAt(t, path), 1); len(got) != 1 || got[0].Title != "old" || got[0].CreatedAt.Hour() != 14 {
		t.Errorf("it has %+v", got)
	}
	var indexes int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_schema WHERE name = 'tasks_of_user'").Scan(&indexes); err != nil || indexes != 1 {
		t.Errorf("%d indexes, %v", indexes, err)
	}
}

// A migration that fails leaves the database as it was.
func TestAMigrationThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	db := raw(t, path)
	run(t, db, `CREATE TABLE other (x); PRAGMA application_id = 128299020`) // no table of tasks: the second migration needs it
	run(t, db, `PRAGMA user_version = 1`)
	if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), "0002_tasks_of_user.sql") {
		t.Errorf("opened: %v", err)
	}
	if v := versionIn(t, path); v != 1 {
		t.Errorf("version %d", v)
	}
}

func TestMigratingAtTheSameTime(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "tasks.db")
		var group sync.WaitGroup
		for user := range int64(8) {
			group.Go(func() {
				book, err := Open(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				defer book.Close()
				if _, err := book.AddTask(as(t, user), NewTask{"mine"}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		book := openAt(t, path)
		for user := range int64(8) {
			if got := list(t, book, user); len(got) != 1 {
				t.Errorf("user %d has %+v", user, got)
			}
		}
	}
}

func TestFilesThatAreNoTaskBook(t *testing.T) {
	directory := t.TempDir()
	file := func(name string) string { return filepath.Join(directory, name) }
	run(t, raw(t, file("future")), `CREATE TABLE tasks (x); PRAGMA application_id = 128299020; PRAGMA user_version = 99`)
	run(t, raw(t, file("foreign")), `CREATE TABLE songs (x)`)
	run(t, raw(t, file("marked")), `PRAGMA application_id = 7; CREATE TABLE songs (x)`)
	if err := os.WriteFile(file("text"), []byte(strings.Repeat("This is not a database. ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for _, name := range []string{"future", "foreign", "marked", "text"} {
		content, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		before[name] = string(content)
	}
	for path, want := range map[string]string{
		"":                     "path of the database is empty",
		file("future"):         "version 99, but this program supports versions up to 2; use a newer program",
		file("foreign"):        "another program",
		file("marked"):         "another program",
		file("text"):           "not a database",
		directory:              "unable to open database file",
		file("missing/x.db"):   "no such file or directory",
		file("text/beneath"):   "not a directory",
		file("nul\x00in name"): "invalid argument",
	} {
		book, err := Open(t.Context(), path)
		if err == nil {
			book.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "taskbook: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	for name, content := range before {
		if now, err := os.ReadFile(file(name)); err != nil || string(now) != content {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
}

func TestPathsThatLookLikeAddresses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"a b.db", "100%25.db", "what?.db", "what?mode=memory", "c#.db", "ö.db", "file:x.db", "a&b=c.db", ":memory:"} {
		if runtime.GOOS == "windows" {
			t.Skip("not names of files there")
		}
		add(t, openAt(t, path), 1, "here")
		info, err := os.Stat(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the permissions %v", path, info.Mode())
		}
		if got := list(t, openAt(t, path), 1); len(got) != 1 {
			t.Errorf("%s has %+v", path, got)
		}
	}
}
