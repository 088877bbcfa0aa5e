// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
)

var update = flag.Bool("update", false, "write the stores in testdata again")

func golden() []canister.Canister {
	return []canister.Canister{
		canister.User{Head: canister.Head{ID: "u1"}, Content: canister.Texts("Good morning.")},
		canister.Assistant{Head: canister.Head{ID: "a1"}, Content: canister.Texts("Let me look.")},
		canister.Invocation{Head: canister.Head{ID: "i1"}, Message: "a1", CallID: "call_1", Name: "local__read", Arguments: "{}"},
		canister.Result{Head: canister.Head{ID: "r1"}, Invocation: "i1", Content: canister.Texts(strings.Repeat("Read this. ", 100))},
	}
}

// A store that version 1 wrote is read for ever; its folders have the same
// names, and what is appended to it is written in the same way.
func TestGoldenStore(t *testing.T) {
	const source = "testdata/version1"
	title := "Plans"
	write := func(dir string) {
		now := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
		store, err := files.Open(dir, &files.Options{Clock: func() time.Time { now = now.Add(time.Second); return now }})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		list := golden()
		for _, err := range []error{
			store.Append(t.Context(), "Pläne", 0, list[0]),
			store.Append(t.Context(), "Pläne", 1, list[1:]...),
			store.Describe(t.Context(), "Pläne", history.Change{Title: &title, Tags: &[]string{"b", "a"}, Owner: &title}),
			store.Fork(t.Context(), "Pläne", 4, "fork"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if *update {
		if err := os.RemoveAll(source); err != nil {
			t.Fatal(err)
		}
		write(source)
	}
	dir := t.TempDir()
	write(dir)
	read := map[string]string{}
	for _, root := range []string{source, dir} {
		for _, pattern := range []string{"*/*", "*/contents/*"} {
			paths, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				name, _ := filepath.Rel(root, path)
				text, err := os.ReadFile(path)
				switch {
				case err != nil: // a folder
				case root == source:
					read[name] = string(text)
				case read[name] != string(text):
					t.Errorf("%s is now\n%s\nand was\n%s", name, text, read[name])
				}
			}
		}
	}
	if len(read) != 6 {
		t.Errorf("there are %d files", len(read))
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	store, err := files.Open(copied, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, conversation := range []string{"Pläne", "fork"} {
		i := 0
		for c, err := range store.Read(t.Context(), conversation, 0) {
			if err != nil || c.Header().ID != golden()[i].Header().ID || history.TextOf(c) != history.TextOf(golden()[i]) {
				t.Fatalf("canister %d is %v, %v", i, c, err)
			}
			i++
		}
		info, err := store.Info(t.Context(), conversation)
		if err != nil || i != 4 || info.Title != title || strings.Join(info.Tags, " ") != "a b" || info.Owner != title || info.Length != 4 || info.Last != canister.KindResult {
			t.Errorf("the info is %+v, %v", info, err)
		}
	}
}

// The line that the documentation shows is one.
func TestDocumentedLine(t *testing.T) {
	page, err := os.ReadFile("../../../docs/durability.md")
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
