// SPDX-License-Identifier: Apache-2.0

package spill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/bundle"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/converse/spill"
)

// spillStores are stores in step with a folder of spilled results.
func spillStores(t *testing.T, do func(*testing.T, *spill.Folder, history.Store, string)) {
	database, err := sqlite.Open(filepath.Join(t.TempDir(), "h.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	folders, err := files.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]history.Store{"memory": history.NewMemory(), "sqlite": database, "files": folders} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spill")
			folder := spill.NewFolder(path)
			wrapped := folder.Store(store)
			defer wrapped.Close()
			do(t, folder, wrapped, path)
		})
	}
}

// turnWith appends a turn whose result has links to the spilled texts.
func turnWith(t *testing.T, folder *spill.Folder, store history.Store, conversation string, texts ...string) {
	t.Helper()
	var content []canister.Content
	for _, text := range texts {
		link, err := folder.Keep(t.Context(), conversation, canister.Text(text))
		if err != nil {
			t.Fatal(err)
		}
		content = append(content, link)
	}
	if err := store.Append(t.Context(), conversation, 0,
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Go.")},
		canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "big", Arguments: "{}"},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Content: content}); err != nil {
		t.Fatal(err)
	}
}

// wantSpilled checks which texts stand in the folder.
func wantSpilled(t *testing.T, path string, want ...string) {
	t.Helper()
	var got []string
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(path, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("spilled are %q, want %q", got, want)
	}
}

func remove(t *testing.T, store history.Store, conversation string) {
	t.Helper()
	if err := store.Delete(t.Context(), conversation, history.AnyLength); err != nil {
		t.Fatal(err)
	}
}

// Delete removes what only the conversation owns, and leaves no trace of it.
func TestDeleteRemovesWhatWasSpilled(t *testing.T) {
	spillStores(t, func(t *testing.T, folder *spill.Folder, store history.Store, path string) {
		turnWith(t, folder, store, "Ann's", "ann", "both")
		turnWith(t, folder, store, "bob", "bob", "both")
		wantSpilled(t, path, "ann", "bob", "both")
		remove(t, store, "Ann's")
		wantSpilled(t, path, "bob", "both")
		remove(t, store, "Ann's")
		remove(t, store, "bob")
		wantSpilled(t, path)
		if left, _ := os.ReadDir(filepath.Join(path, "owners")); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	})
}

// When the results of an expired conversation cannot be removed, the error says that the conversation is
// deleted. Deleting it again removes them.
func TestExpiredWithoutItsResults(t *testing.T) {
	spillStores(t, func(t *testing.T, folder *spill.Folder, store history.Store, path string) {
		turnWith(t, folder, store, "talk", "text")
		owner := filepath.Join(path, "owners", "talk")
		if err := os.Rename(owner, owner+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(owner, nil, 0o600); err != nil { // it cannot be read as a folder, also by root
			t.Fatal(err)
		}
		var failed error
		for info, err := range (history.Retention{Keep: time.Hour, ExpireOpen: true}).Apply(t.Context(), store, time.Now().Add(2*time.Hour)) {
			if failed = errors.Join(failed, err); info.ID != "talk" {
				t.Errorf("the error is about %q: %v", info.ID, err)
			}
		}
		if failed == nil || !strings.Contains(failed.Error(), "is deleted, but its spilled results are not") || strings.Contains(failed.Error(), "was not deleted") {
			t.Errorf("it failed with %v", failed)
		}
		if err := errors.Join(os.Remove(owner), os.Rename(owner+".away", owner)); err != nil {
			t.Fatal(err)
		}
		remove(t, store, "talk")
		wantSpilled(t, path)
	})
}

// A fork owns the results that it links to, and none from after the cut.
func TestForkKeepsWhatWasSpilled(t *testing.T) {
	spillStores(t, func(t *testing.T, folder *spill.Folder, store history.Store, path string) {
		turnWith(t, folder, store, "a", "early")
		late, err := folder.Keep(t.Context(), "a", canister.Text("late"))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Append(t.Context(), "a", 4, canister.User{Content: []canister.Content{late}}); err != nil {
			t.Fatal(err)
		}
		if err := store.Fork(t.Context(), "a", 4, "fork"); err != nil {
			t.Fatal(err)
		}
		if err := store.Fork(t.Context(), "a", 5, "fork"); !errors.Is(err, history.ErrExists) {
			t.Errorf("the second fork: %v", err)
		}
		if err := store.Fork(t.Context(), "a", 9, "none"); !errors.Is(err, history.ErrNotFound) {
			t.Errorf("the fork of more than there is: %v", err)
		}
		wantSpilled(t, path, "early", "late")
		remove(t, store, "a")
		wantSpilled(t, path, "early")
		remove(t, store, "fork")
		wantSpilled(t, path)
	})
}

// A fork owns a result whatever the extension of its file is.
func TestForkKeepsFilesWithOddExtensions(t *testing.T) {
	for i, extension := range []string{".tar.gz", ".json-patch", ".h++", ".x_y", ".é"} {
		mimeType := fmt.Sprint("application/x-odd", i)
		if err := mime.AddExtensionType(extension, mimeType); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "spill")
		folder := spill.NewFolder(path)
		store := folder.Store(history.NewMemory())
		link, err := folder.Keep(t.Context(), "a", canister.ResourceContent{MIME: mimeType, Blob: []byte("odd")})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Append(t.Context(), "a", 0, canister.User{Content: []canister.Content{link}}); err != nil {
			t.Fatal(err)
		}
		if err := store.Fork(t.Context(), "a", 1, "fork"); err != nil {
			t.Fatal(err)
		}
		remove(t, store, "a")
		wantSpilled(t, path, "odd")
		remove(t, store, "fork")
		wantSpilled(t, path)
	}
}

// An imported conversation owns the results that it links to.
func TestImportKeepsWhatWasSpilled(t *testing.T) {
	spillStores(t, func(t *testing.T, folder *spill.Folder, store history.Store, path string) {
		turnWith(t, folder, store, "a", "text")
		var written bytes.Buffer
		if err := bundle.Export(t.Context(), &written, store, "a"); err != nil {
			t.Fatal(err)
		}
		named := func(string) string { return "b" }
		for _, err := range bundle.Import(t.Context(), store, &written, &bundle.ImportOptions{ID: named}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		remove(t, store, "a")
		wantSpilled(t, path, "text")
		remove(t, store, "b")
		wantSpilled(t, path)
	})
}

// Links to other places are never removed.
func TestLinksElsewhereAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spill")
	folder := spill.NewFolder(path)
	store := folder.Store(history.NewMemory())
	turnWith(t, folder, store, "a", "text")
	other := filepath.Join(path, "owners", "..", "precious.txt")
	if err := os.WriteFile(other, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, uri := range []string{
		"file://" + filepath.ToSlash(other), "file://" + path + "/owners/a", "file://%zz", "https://example.com/" + strings.Repeat("0", 32),
	} {
		if err := store.Append(t.Context(), "a", 4+i, canister.User{Content: []canister.Content{canister.LinkContent{URI: uri}}}); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, store, "a")
	wantSpilled(t, path, "precious")
}

// Conversations that share a piece come and go at the same time: while one owns it
// throughout it stays, and with the last owner it is gone.
func TestOwnersComeAndGoTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spill")
	folder := spill.NewFolder(path)
	for _, owned := range []bool{true, false} {
		if owned {
			turnWith(t, folder, folder.Store(history.NewMemory()), "owner", "shared")
		}
		var all sync.WaitGroup
		for _, conversation := range []string{"a", "b", "c", "d"} {
			all.Go(func() {
				for range 50 {
					link, err := folder.Keep(t.Context(), conversation, canister.Text("shared"))
					if err == nil && owned {
						_, err = os.Stat(filepath.Join(path, link.Name))
					}
					if err = errors.Join(err, folder.Remove(conversation)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if owned {
			wantSpilled(t, path, "shared")
		}
		if err := folder.Remove("owner"); err != nil {
			t.Error(err)
		}
		wantSpilled(t, path)
	}
}

// Keep and Remove of one conversation at the same time leave no file without an owner,
// and neither does a piece that goes from owner to owner.
func TestKeepAndRemoveTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spill")
	folder := spill.NewFolder(path)
	for range 100 {
		var keeping, removing sync.WaitGroup
		kept := make(chan struct{})
		for _, conversation := range []string{"a", "b"} {
			keeping.Go(func() { _, _ = folder.Keep(t.Context(), conversation, canister.Text("shared")) })
			removing.Go(func() {
				for more := true; more; {
					if err := folder.Remove(conversation); err != nil {
						t.Error(err)
					}
					select {
					case <-kept:
						more = false
					default:
					}
				}
			})
		}
		keeping.Wait()
		close(kept)
		removing.Wait()
		if err := errors.Join(folder.Remove("a"), folder.Remove("b")); err != nil {
			t.Fatal(err)
		}
		if wantSpilled(t, path); t.Failed() {
			return
		}
	}
}

// unsure is a store that forks, and then says something else.
type unsure struct {
	history.Store
	says error
}

func (u unsure) Fork(ctx context.Context, conversation string, length int, to string) error {
	return errors.Join(u.Store.Fork(ctx, conversation, length, to), u.says)
}

// A fork that is there owns its pieces, whatever the store said when it was made.
func TestForkOfUnknownOutcome(t *testing.T) {
	for _, says := range []error{errors.New("the connection was lost"), context.Canceled, history.ErrExists} {
		path := filepath.Join(t.TempDir(), "spill")
		folder := spill.NewFolder(path)
		store := folder.Store(unsure{history.NewMemory(), says})
		turnWith(t, folder, store, "a", "early")
		for range 2 { // the second time it exists
			if err := store.Fork(t.Context(), "a", 4, "fork"); !errors.Is(err, says) {
				t.Errorf("Fork: %v", err)
			}
		}
		remove(t, store, "a")
		wantSpilled(t, path, "early")
		remove(t, store, "fork")
		wantSpilled(t, path)
	}
}

// A turn that spills while its conversation is deleted leaves nothing behind: its append is
// a conflict.
func TestSpilledWhileDeleted(t *testing.T) {
	spillStores(t, func(t *testing.T, folder *spill.Folder, store history.Store, path string) {
		turnWith(t, folder, store, "talk", "early")
		turnWith(t, folder, store, "other", "shared")
		remove(t, store, "talk")
		var content []canister.Content
		for _, text := range []string{"late", "shared"} { // stored after the deletion
			link, err := folder.Keep(t.Context(), "talk", canister.Text(text))
			if err != nil {
				t.Fatal(err)
			}
			content = append(content, link)
		}
		err := store.Append(t.Context(), "talk", 4, canister.User{Content: content})
		if _, isConflict := errors.AsType[*history.ConflictError](err); !isConflict {
			t.Errorf("the append is %v", err)
		}
		wantSpilled(t, path, "shared")
		remove(t, store, "other")
		wantSpilled(t, path)
	})
}

// A conflict in a conversation that exists removes nothing: the other writer may have the
// same result.
func TestSpilledInAConflict(t *testing.T) {
	spillStores(t, func(t *testing.T, folder *spill.Folder, store history.Store, path string) {
		turnWith(t, folder, store, "talk", "early")
		link, err := folder.Keep(t.Context(), "talk", canister.Text("both"))
		if err != nil {
			t.Fatal(err)
		}
		result := canister.User{Content: []canister.Content{link}}
		if err := store.Append(t.Context(), "talk", 3, result); err == nil {
			t.Error("there is no conflict")
		}
		wantSpilled(t, path, "both", "early")
	})
}
