// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/storetest"
)

// pragma changes the connection of the writer.
func pragma(t testing.TB, s *Store, text string) {
	t.Helper()
	if err := s.submit(t.Context(), func(w *writer) (verdict, err error) {
		_, err = w.conn.ExecContext(background, "PRAGMA "+text)
		return nil, err
	}); err != nil {
		t.Fatal(err)
	}
}

// All acknowledged data is stored, and appends that do not fit do not block others that
// do.
func TestADiskThatIsFull(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "small", 0, "a")
	pragma(t, s, "max_page_count = 40")
	kept := 0
	var err error
	for ; err == nil && kept < 1000; kept++ {
		err = s.Append(t.Context(), "talk", kept, storetest.Says(fmt.Sprint("c", kept), strings.Repeat("x", 1000)))
	}
	kept--
	if err == nil || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), s.path) {
		t.Errorf("a full disk is %v", err)
	}
	if got := storetest.Texts(t, s, "talk"); len(got) != kept {
		t.Errorf("%d canisters are there, %d were acknowledged", len(got), kept)
	}
	if info, err := s.Info(t.Context(), "talk"); err != nil || info.Length != kept {
		t.Errorf("%+v, %v", info, err)
	}
	pragma(t, s, "max_page_count = 100000")
	storetest.Add(t, s, "talk", kept, "there is room again")
}

func TestAFileThatMayOnlyBeRead(t *testing.T) {
	s := open(t)
	storetest.Add(t, s, "talk", 0, "before")
	pragma(t, s, "query_only = 1")
	err := s.Append(t.Context(), "talk", 1, storetest.Says("c1", "x"))
	if err == nil || !strings.Contains(err.Error(), "cannot be written") || !strings.Contains(err.Error(), s.path) {
		t.Error(err)
	}
	if got := storetest.Texts(t, s, "talk"); len(got) != 1 {
		t.Errorf("there is %q", got)
	}
}

// A list and a search need no write: they work while nothing can be written, also if the index
// of the order, or that of the words, lacks something.
func TestListsWhereNothingCanBeWritten(t *testing.T) {
	s := crowded(t, orderedFrom)
	storetest.Add(t, s, "late", 0, "unheard-of")
	pragma(t, s, "query_only = 1")
	if got := listed(t, s, history.Filter{Limit: 1}); !slices.Equal(got, []string{"late"}) {
		t.Errorf("listed are %q", got)
	}
	if got := listed(t, s, history.Filter{Text: "unheard-of"}); !slices.Equal(got, []string{"late"}) {
		t.Errorf("found are %q", got)
	}
}

// A list does not wait for another program that writes.
func TestListWhileAnotherProgramWrites(t *testing.T) {
	s := crowded(t, orderedFrom)
	other, err := connect(s.path, 1, "synchronous(2)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil) // locks the file
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, err := range s.List(ctx, history.Filter{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("no database. "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":                                    "empty",
		folder:                                folder,
		filepath.Join(folder, "none", "t.db"): "no such file",
		text:                                  "not a database",
	} {
		before, _ := os.ReadFile(path)
		s, err := Open(path, nil)
		if err == nil {
			s.Close()
			t.Errorf("%q could be opened", path)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%q was changed", path)
		}
	}
	if _, err := Open(filepath.Join(folder, "x.db"), &Options{Group: -1}); err == nil || !strings.Contains(err.Error(), "Group") {
		t.Error(err)
	}
}

// Rows that were changed without the store are found and named.
func TestRowsThatWereChanged(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	for statement, where := range map[string]string{
		"UPDATE canisters SET line = replace(line, 'one', 'two') WHERE position = 1":                     "table canisters, conversation 1, position 1",
		"UPDATE canisters SET id = 'c9' WHERE position = 1":                                              "table canisters, conversation 1, position 1",
		"UPDATE canisters SET position = 3 - position WHERE position IN (1, 2) AND 0":                    "",
		"DELETE FROM canisters WHERE position = 1":                                                       "table canisters, conversation 1, position 1",
		"DELETE FROM canisters WHERE position = 3":                                                       "table conversations, key 1",
		"UPDATE conversations SET length = 2":                                                            "table conversations, key 1",
		"UPDATE conversations SET length = 9":                                                            "table conversations, key 1",
		"UPDATE contents SET body = replace(body, 'long', 'wrong')":                                      "table contents, key 1",
		"UPDATE contents SET hash = x'00'":                                                               "table contents, key 1",
		"DELETE FROM contents":                                                                           "table canisters, conversation 1, position 2",
		"DELETE FROM parts":                                                                              "table canisters, conversation 1, position 2",
		"UPDATE parts SET place = 1":                                                                     "table canisters, conversation 1, position 2",
		"INSERT INTO parts SELECT conversation, 0, 0, content FROM parts":                                "table canisters, conversation 1, position 0",
		"UPDATE canisters SET position = position + 9 WHERE position = 1":                                "table conversations, key 1",
		"UPDATE canisters SET position = -9 WHERE position = 1":                                          "table canisters, conversation 1, position 1",
		"UPDATE canisters SET line = (SELECT line FROM canisters WHERE position = 0) WHERE position = 1": "table canisters, conversation 1, position 1",
		"UPDATE canisters SET parts = 0 WHERE position = 2":                                              "",
	} {
		s := open(t)
		storetest.Add(t, s, "talk", 0, "zero", "one", long, "three")
		harm(t, s, statement)
		lines, err := storetest.Read(t.Context(), s, "talk", 0)
		if where == "" && err == nil {
			continue
		}
		corrupt, ok := errors.AsType[*history.CorruptError](err)
		if !ok || where != "" && !strings.Contains(corrupt.Location, where) || corrupt.Conversation != "talk" {
			t.Errorf("%s: %d canisters and %v", statement, len(lines), err)
		}
	}
}

// A damaged long content is repaired when the same content is appended again.
func TestADamagedContentIsWrittenAgain(t *testing.T) {
	s := open(t)
	long := strings.Repeat("long ", 1000)
	storetest.Add(t, s, "talk", 0, long)
	harm(t, s, "UPDATE contents SET body = 'x'")
	storetest.Add(t, s, "other", 0, long)
	if got := storetest.Texts(t, s, "talk"); len(got) != 1 || got[0] != long {
		t.Errorf("%d", len(got))
	}
}

// Of a file with one flipped bit, every reading is the right one or an error.
func TestFlippedBits(t *testing.T) {
	folder := t.TempDir()
	s, err := Open(filepath.Join(folder, "talks.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("long ", 300)
	storetest.Add(t, s, "talk", 0, "zero", "one", long, "three")
	storetest.Add(t, s, "talk", 4, "four", long, "six")
	want, err := storetest.Read(t.Context(), s, "talk", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	flips := 400
	if testing.Short() {
		flips = 40
	}
	random := rand.New(rand.NewPCG(6, 6))
	told := 0
	for range flips {
		at := random.IntN(len(file))
		// Most of the file is empty: the rest needs more tries.
		for range 20 {
			if file[at] != 0 {
				break
			}
			at = random.IntN(len(file))
		}
		bit := random.IntN(8)
		damaged := slices.Clone(file)
		damaged[at] ^= 1 << bit
		path := filepath.Join(folder, "damaged.db")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if tell(t, path, want) {
			told++
		}
		for _, beside := range []string{"", "-wal", "-shm", "-journal"} {
			os.Remove(path + beside)
		}
	}
	if told < flips/10 {
		t.Errorf("%d of %d flips were noticed", told, flips)
	}
}

// tell reads a file and reports whether it is told to be damaged.
func tell(t *testing.T, path string, want []string) bool {
	s, err := Open(path, nil)
	if err != nil {
		return true
	}
	defer s.Close()
	got, err := storetest.Read(t.Context(), s, "talk", 0)
	if _, ok := errors.AsType[*history.CorruptError](err); err != nil && !ok && !errors.Is(err, canister.ErrNewer) {
		t.Errorf("%v is no CorruptError", err)
	}
	if err == nil && !slices.Equal(got, want) && (len(got) > 0 || whole(t, s)) {
		t.Errorf("%d canisters are read, not what was written", len(got))
	}
	if err != nil && !slices.Equal(got, want[:min(len(got), len(want))]) {
		t.Errorf("before %v there are %d wrong canisters", err, len(got))
	}
	return err != nil
}

// whole reports whether SQLite finds nothing wrong. What it alone finds is an
// index that does not lead to a conversation.
func whole(t *testing.T, s *Store) bool {
	result := ""
	err := s.read.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result)
	return err == nil && result == "ok"
}

// Each method tells of a file that is damaged.
func TestPagesThatAreNoise(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "talks.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Repeat([]string{strings.Repeat("noise ", 100)}, 100)
	storetest.Add(t, s, "talk", 0, all...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(file); i++ {
		file[i] = byte(rand.IntN(256))
	}
	if err := os.WriteFile(s.path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := Open(s.path, nil)
	if err != nil {
		if _, ok := errors.AsType[*history.CorruptError](err); !ok {
			t.Error(err)
		}
		return
	}
	defer damaged.Close()
	ctx := t.Context()
	_, read := storetest.Read(ctx, damaged, "talk", 0)
	_, info := damaged.Info(ctx, "talk")
	for name, err := range map[string]error{
		"Append": damaged.Append(ctx, "talk", 100, storetest.Says("x", "y")), "Read": read, "Info": info,
		"Describe": damaged.Describe(ctx, "talk", history.Change{}), "Fork": damaged.Fork(ctx, "talk", 1, "other"),
		"Delete": damaged.Delete(ctx, "talk", history.AnyLength), "List": listError(ctx, damaged, ""), "Search": listError(ctx, damaged, "noise"),
	} {
		if _, ok := errors.AsType[*history.CorruptError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A conversation that is damaged does not hide the others from a list, and comes with its owner.
func TestListNextToDamage(t *testing.T) {
	for name, statement := range map[string]string{
		"tags":     "UPDATE conversations SET tags = 'x' WHERE id = 'bad'",
		"canister": "UPDATE canisters SET line = 'x' WHERE conversation = (SELECT key FROM conversations WHERE id = 'bad')",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(filepath.Join(t.TempDir(), "talks.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			owner := "ada"
			for _, id := range []string{"first", "bad", "last"} {
				storetest.Add(t, s, id, 0, "so it is")
				if err := s.Describe(t.Context(), id, history.Change{Owner: &owner}); err != nil {
					t.Fatal(err)
				}
			}
			harm(t, s, statement)
			var got []string
			for info, err := range s.List(t.Context(), history.Filter{Text: "so"}) { // short words are not in the index
				_, damaged := errors.AsType[*history.CorruptError](err)
				if err != nil && !damaged {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%s of %s %t", info.ID, info.Owner, damaged))
			}
			if want := []string{"last of ada false", "first of ada false", "bad of ada true"}; !slices.Equal(got, want) {
				t.Errorf("listed are %q, want %q", got, want)
			}
			for info, err := range s.List(t.Context(), history.Filter{Text: "so", Owner: "ben"}) {
				t.Errorf("listed for another owner: %s, %v", info.ID, err)
			}
		})
	}
}

func listError(ctx context.Context, s *Store, text string) error {
	for _, err := range s.List(ctx, history.Filter{Text: text}) {
		if err != nil {
			return err
		}
	}
	return nil
}
