// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/foldername"
)

// disk is what has been synced: the texts of files, and the names in folders.
type disk struct {
	fail  error // of the next syncs
	count int   // of all syncs
	texts map[string]bool
	names map[string]bool
}

func (d *disk) sync(file *os.File) error {
	if d.count++; d.fail != nil {
		return d.fail
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := os.ReadDir(file.Name())
		for _, entry := range entries {
			d.names[filepath.Join(file.Name(), entry.Name())] = true
		}
		return err
	}
	text, err := io.ReadAll(io.NewSectionReader(file, 0, info.Size()))
	if err != nil { // it is only open for writing
		text, err = os.ReadFile(file.Name())
	}
	d.texts[string(text)] = true
	return err
}

// want checks that a piece and the mark of its owner have been synced.
func (d *disk) want(t *testing.T, path, conversation, name, text string) {
	t.Helper()
	owners := filepath.Join(path, "owners")
	mark := filepath.Join(owners, foldername.Of(conversation), name)
	for _, name := range []string{filepath.Join(path, name), owners, filepath.Dir(mark), mark} {
		if !d.names[name] {
			t.Errorf("%s: the name %s is not on the disk", conversation, name)
		}
	}
	if !d.texts[text] {
		t.Errorf("%s: the piece is not on the disk: %v", conversation, d.texts)
	}
}

// watched is a store that calls a function before each change.
type watched struct {
	history.Store
	before func(conversation string)
}

func (w watched) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	w.before(conversation)
	return w.Store.Append(ctx, conversation, length, canisters...)
}

func (w watched) Fork(ctx context.Context, conversation string, length int, to string) error {
	w.before(to)
	return w.Store.Fork(ctx, conversation, length, to)
}

// A canister that is on the disk links to a piece that is there too, with its owner.
func TestSynced(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "new", "er", "spill")
	folder := NewFolder(path)
	d := &disk{texts: map[string]bool{}, names: map[string]bool{}}
	folder.sync = d.sync
	link, err := folder.Keep(t.Context(), "a", canister.Text("piece"))
	if err != nil {
		t.Fatal(err)
	}
	d.want(t, path, "a", link.Name, "piece")
	for at := path; at != base; at = filepath.Dir(at) {
		if !d.names[at] {
			t.Errorf("the folder %s is not on the disk", at)
		}
	}
	store := folder.Store(watched{history.NewMemory(), func(conversation string) { d.want(t, path, conversation, link.Name, "piece") }})
	said := canister.User{Content: []canister.Content{link}}
	if err := errors.Join(store.Append(t.Context(), "a", 0, said), store.Fork(t.Context(), "a", 1, "fork"), store.Append(t.Context(), "import", 0, said)); err != nil {
		t.Fatal(err)
	}
	d.fail = errors.New("the disk is broken")
	for _, conversation := range []string{"a", "other"} {
		if _, err := folder.Keep(t.Context(), conversation, canister.Text("piece")); !errors.Is(err, d.fail) {
			t.Errorf("%s: %v", conversation, err)
		}
	}
}

// A piece that is there is not written again, but synced: the process that wrote it may have
// died before that. One with another content is damaged, and is written again.
func TestKeptOnce(t *testing.T) {
	path := t.TempDir()
	link, err := NewFolder(path).Keep(t.Context(), "a", canister.Text("piece"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"piece", "pie\x00e", "pie"} {
		if text != "piece" {
			if err := os.WriteFile(filepath.Join(path, link.Name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, err := os.Stat(filepath.Join(path, link.Name))
		if err != nil {
			t.Fatal(err)
		}
		folder := NewFolder(path)
		d := &disk{texts: map[string]bool{}, names: map[string]bool{}}
		folder.sync = d.sync
		if _, err := folder.Keep(t.Context(), "b", canister.Text("piece")); err != nil {
			t.Fatal(err)
		}
		d.want(t, path, "b", link.Name, "piece")
		after, err := os.Stat(filepath.Join(path, link.Name))
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(before, after) != (text == "piece") {
			t.Errorf("with %q there, it is written again, or not", text)
		}
		if got, _ := os.ReadFile(filepath.Join(path, link.Name)); string(got) != "piece" {
			t.Errorf("it is %q", got)
		}
	}
}

// A fork or an append syncs the folders once, and not for each piece.
func TestFoldersSyncedOnce(t *testing.T) {
	folder := NewFolder(filepath.Join(t.TempDir(), "spill"))
	var links []canister.Content
	for i := range 20 {
		link, err := folder.Keep(t.Context(), "a", canister.Text(fmt.Sprint(i%10)))
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, link)
	}
	d := &disk{texts: map[string]bool{}, names: map[string]bool{}}
	folder.sync = d.sync
	store := folder.Store(history.NewMemory())
	for i, step := range []struct {
		do   func() error
		most int
	}{
		{func() error { return store.Append(t.Context(), "a", 0, canister.User{Content: links}) }, 3},
		{func() error { return store.Append(t.Context(), "a", 1, canister.User{Content: canister.Texts("on")}) }, 0},
		{func() error { return store.Fork(t.Context(), "a", 2, "fork") }, 10 + 3}, // a mark for each piece
		{func() error { return store.Append(t.Context(), "import", 0, canister.User{Content: links}) }, 10 + 3},
	} {
		d.count = 0
		if err := step.do(); err != nil || d.count > step.most {
			t.Errorf("step %d syncs %d times, want %d; %v", i, d.count, step.most, err)
		}
	}
}
