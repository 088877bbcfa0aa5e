// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/sqlite"
)

var update = flag.Bool("update", false, "write the statements of the newest schema in testdata again")

// golden are the canisters of every version of the form, and one that is long.
func golden(t *testing.T) []canister.Canister {
	t.Helper()
	list := []canister.Canister{canister.Document{Head: canister.Head{ID: "d1"}, Content: canister.Texts(strings.Repeat("Read this. ", 100))}}
	for version := 1; version <= 2; version++ {
		text, err := os.ReadFile(fmt.Sprintf("../historytest/golden/version%d.jsonl", version))
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range canister.Decode(bytes.NewReader(text)) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, c)
		}
	}
	return list
}

// A database written by any version stays readable, and its conversations are found and
// continued.
func TestGoldenDatabases(t *testing.T) {
	migrations, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	newest, list := len(migrations), golden(t)
	if *update {
		if err := os.WriteFile(fmt.Sprintf("testdata/schema%d.sql", newest), []byte(dump(t, writeGolden(t, list))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for schema := 1; schema <= newest; schema++ {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			statements, err := os.ReadFile(fmt.Sprintf("testdata/schema%d.sql", schema))
			if err != nil {
				t.Fatalf("%v; -update writes that of the newest schema, which then stays as it is", err)
			}
			path := restore(t, string(statements))
			if again := dump(t, path); again != string(statements) {
				t.Fatalf("the statements make another database than they say:\n%s", again)
			}
			readGolden(t, path, list[:cmp.Or(written[schema], len(list))])
		})
	}
}

// written is how many of the canisters the database of a schema has, where there
// are more of them by now.
var written = map[int]int{1: 31, 2: 31}

// writeGolden returns the path of a new database that has the canisters.
func writeGolden(t *testing.T, list []canister.Canister) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "talks.db")
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	title := "Plans"
	for _, err := range []error{
		s.Append(t.Context(), "Pläne", 0, list[0]),
		s.Append(t.Context(), "Pläne", 1, list[1:]...),
		s.Describe(t.Context(), "Pläne", history.Change{Title: &title, Tags: &[]string{"b", "a"}, Owner: &title}),
		s.Fork(t.Context(), "Pläne", len(list), "fork"),
		s.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func readGolden(t *testing.T, path string, list []canister.Canister) {
	t.Helper()
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, conversation := range []string{"Pläne", "fork"} {
		i := 0
		for c, err := range s.Read(t.Context(), conversation, 0) {
			if err != nil || !reflect.DeepEqual(c, list[i]) {
				t.Fatalf("canister %d is %v, %v; want %v", i, c, err, list[i])
			}
			i++
		}
		info, err := s.Info(t.Context(), conversation)
		if err != nil || i != len(list) || info.Title != "Plans" || !slices.Equal(info.Tags, []string{"a", "b"}) ||
			info.Owner != "Plans" || info.Length != i || info.Last != list[i-1].Kind() {
			t.Errorf("the info is %+v, %v", info, err)
		}
		if err := s.Append(t.Context(), conversation, len(list), canister.User{Content: canister.Texts("And then?")}); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Ledger().Balances(t.Context(), "all"); err != nil {
		t.Errorf("the accounts: %v", err)
	}
	found := 0
	for _, err := range s.List(t.Context(), history.Filter{Text: "read this then"}) {
		if found++; err != nil {
			t.Error(err)
		}
	}
	if found != 2 {
		t.Errorf("a search finds %d conversations, want 2", found)
	}
}
