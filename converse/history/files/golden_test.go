// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
)

var update = flag.Bool("update", false, "write the stores in testdata again")

// golden are the canisters of the store of a version of the form.
func golden(t *testing.T, version int) []canister.Canister {
	if version == 1 {
		return []canister.Canister{
			canister.User{Head: canister.Head{ID: "u1"}, Content: canister.Texts("Good morning.")},
			canister.Assistant{Head: canister.Head{ID: "a1"}, Content: canister.Texts("Let me look.")},
			canister.Invocation{Head: canister.Head{ID: "i1"}, Message: "a1", CallID: "call_1", Name: "local__read", Arguments: "{}"},
			canister.Result{Head: canister.Head{ID: "r1"}, Invocation: "i1", Content: canister.Texts(strings.Repeat("Read this. ", 100))},
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("../historytest/golden/version%d.jsonl", version))
	if err != nil {
		t.Fatal(err)
	}
	list := []canister.Canister{canister.Document{Head: canister.Head{ID: "d1"}, Content: canister.Texts(strings.Repeat("Read this. ", 100))}}
	for c, err := range canister.Decode(bytes.NewReader(text)) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

const title = "Plans"

// writeGolden writes the store of a list.
func writeGolden(t *testing.T, dir string, list []canister.Canister) {
	t.Helper()
	now, title := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), title
	store, err := files.Open(dir, &files.Options{Clock: func() time.Time { now = now.Add(time.Second); return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, err := range []error{
		store.Append(t.Context(), "Pläne", 0, list[0]),
		store.Append(t.Context(), "Pläne", 1, list[1:]...),
		store.Describe(t.Context(), "Pläne", history.Change{Title: &title, Tags: &[]string{"b", "a"}, Owner: &title}),
		store.Fork(t.Context(), "Pläne", len(list), "fork"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// filesOf returns the contents of the files of a store.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*/*.json*", "*/contents/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(dir, path)
			texts[name] = string(text)
		}
	}
	return texts
}

// A store written by any version stays readable; its folders have the same names, and
// appends to it use the same format.
func TestGoldenStore(t *testing.T) {
	versions, err := filepath.Glob("../historytest/golden/version*.jsonl")
	if err != nil || len(versions) < 2 {
		t.Fatal(versions, err)
	}
	for version := 1; version <= len(versions); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			source, list := fmt.Sprintf("testdata/version%d", version), golden(t, version)
			if *update {
				if err := os.RemoveAll(source); err != nil {
					t.Fatal(err)
				}
				writeGolden(t, source, list)
				_ = os.Remove(filepath.Join(source, ".lock"))
			}
			dir := t.TempDir()
			writeGolden(t, dir, list)
			was := filesOf(t, source)
			for name, text := range filesOf(t, dir) {
				if was[name] != text {
					t.Errorf("%s is now\n%s\nand was\n%s", name, text, was[name])
				}
				delete(was, name)
			}
			if len(was) > 0 {
				t.Errorf("there are no longer %q", slices.Sorted(maps.Keys(was)))
			}
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			readGolden(t, copied, list)
		})
	}
}

// readGolden checks the contents of a store of a list.
func readGolden(t *testing.T, dir string, list []canister.Canister) {
	t.Helper()
	store, err := files.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, conversation := range []string{"Pläne", "fork"} {
		i := 0
		for c, err := range store.Read(t.Context(), conversation, 0) {
			if err != nil || !reflect.DeepEqual(c, list[i]) {
				t.Fatalf("canister %d is %v, %v", i, c, err)
			}
			i++
		}
		info, err := store.Info(t.Context(), conversation)
		if err != nil || i != len(list) || info.Title != title || strings.Join(info.Tags, " ") != "a b" ||
			info.Owner != title || info.Length != i || info.Last != list[i-1].Kind() {
			t.Errorf("the info is %+v, %v", info, err)
		}
	}
}

// The line that the documentation shows is one.
func TestDocumentedLine(t *testing.T) {
	page, err := os.ReadFile("../../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	line, _, _ := strings.Cut(rest, "\n")
	dir := t.TempDir()
	store, err := files.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	say := func(id, text string) canister.Canister {
		return canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(text)}
	}
	if err := store.Append(t.Context(), "talk", 0, say("c1", "Good morning."), say("c2", "And?")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "talk", "history.jsonl"))
	if err != nil || !strings.HasPrefix(string(text), line+"\n") {
		t.Errorf("the line is %s, %v; the page has %s", text, err, line)
	}
}
