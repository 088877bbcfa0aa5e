// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/internal/fileurl"
	"github.com/consort-go/consort/internal/foldername"
	"github.com/consort-go/consort/internal/writefile"
)

// Folder stores spilled pieces as files in a folder that only the user of the
// process can access. Its methods may be called concurrently, also by several
// processes.
//
// The name of a file is derived from its content, so that conversations with the same
// piece share it. Each owner has an empty file owners/CONVERSATION/NAME in the folder.
// A file is removed with its last owner: see [Folder.Remove] and [Folder.Store].
type Folder struct {
	path string
	sync func(*os.File) error // syncs; for tests
}

// NewFolder returns a Folder at a path, where a folder is created with the first piece.
func NewFolder(folder string) *Folder { return &Folder{folder, (*os.File).Sync} }

// Keep is for Options.Spill of a conversation. It stores contents that have text or
// data, also for a conversation that is not in the store; only Remove deletes those. When it
// returns, they are on the disk.
func (f *Folder) Keep(_ context.Context, conversation string, whole canister.Content) (canister.LinkContent, error) {
	payload := canister.PayloadOf(whole)
	data, mimeType := payload.Bytes(), payload.MIME
	if data == nil {
		return canister.LinkContent{}, fmt.Errorf("%s has no data to store", bounds.Describe(whole))
	}
	folder, err := filepath.Abs(f.path)
	if err == nil {
		err = f.create(folder)
	}
	if err != nil {
		return canister.LinkContent{}, err
	}
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:16]) + extension(mimeType)
	// Own the file first, so that it is not deleted when another owner is removed.
	if _, err := f.own(conversation, name); err != nil {
		return canister.LinkContent{}, err
	}
	path := filepath.Join(folder, name)
	if err := errors.Join(f.write(path, data), f.syncPath(folder)); err != nil {
		return canister.LinkContent{}, err
	}
	// Remove may have run before there was a file to remove.
	if _, err := os.Lstat(filepath.Join(f.owners(conversation), name)); err != nil {
		return canister.LinkContent{}, errors.Join(errRemovedMeanwhile, ignoreAbsent(err), f.removeUnowned(name))
	}
	size := int64(len(data))
	return canister.LinkContent{URI: fileurl.Of(path), Name: name, Title: "the whole of it", MIME: mimeType, Size: &size}, nil
}

// create creates a folder and the missing ones above it, and syncs their names.
func (f *Folder) create(folder string) error {
	_, err := os.Lstat(folder)
	above := filepath.Dir(folder)
	if err == nil || above == folder {
		return err
	}
	if err = cmp.Or(f.create(above), os.MkdirAll(folder, 0o700)); err != nil {
		return err
	}
	return f.syncPath(above)
}

// write writes a file and syncs it. It only syncs a file that has the data already, unless
// removeUnowned has renamed it in between.
func (f *Folder) write(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		if err = f.syncPath(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err := writefile.Replace(path, &writefile.Options{Temporary: ".spill-*"}, func(file *os.File) error {
		_, err := file.Write(data)
		return cmp.Or(err, f.sync(file))
	})
	return err
}

// syncPath returns when a file, or the names in a folder, are on the disk.
func (f *Folder) syncPath(path string) error { return writefile.SyncPath(path, f.sync) }

var errRemovedMeanwhile = errors.New("the conversation was deleted meanwhile")

// owners returns the folder with the marks of a conversation's files.
func (f *Folder) owners(conversation string) string {
	return filepath.Join(f.path, "owners", foldername.Of(conversation))
}

// own makes a conversation an owner of files, and returns the names that it did not own before.
// The marks are on the disk then, unless Remove has removed them.
func (f *Folder) own(conversation string, names ...string) (fresh []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		added, err := f.mark(conversation, name)
		if added {
			fresh = append(fresh, name)
		}
		if err != nil {
			return fresh, err
		}
	}
	for _, folder := range []string{f.owners(conversation), filepath.Join(f.path, "owners"), f.path} {
		err = cmp.Or(err, ignoreAbsent(f.syncPath(folder)))
	}
	return fresh, err
}

// mark creates the mark of an owner, and reports whether it is new.
func (f *Folder) mark(conversation, name string) (fresh bool, err error) {
	folder := f.owners(conversation)
	for range 10 { // Remove may delete the folder in between
		if err = os.MkdirAll(folder, 0o700); err != nil {
			return false, err
		}
		var mark *os.File
		mark, err = os.OpenFile(filepath.Join(folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case err == nil:
			return true, errors.Join(f.sync(mark), mark.Close())
		case errors.Is(err, fs.ErrExist):
			return false, nil
		case !errors.Is(err, fs.ErrNotExist):
			return false, err
		}
	}
	return false, err
}

// Remove removes the pieces that only the conversation owns. It is not an error if it
// owns none.
func (f *Folder) Remove(conversation string) error {
	folder := f.owners(conversation)
	marks, err := os.ReadDir(folder)
	if err != nil {
		return ignoreAbsent(err)
	}
	for _, mark := range marks {
		err = errors.Join(err, f.disown(conversation, strings.TrimSuffix(mark.Name(), leaving)))
	}
	if err != nil {
		return err
	}
	if err := os.Remove(folder); !errors.Is(err, fs.ErrExist) { // otherwise it owns something again
		return ignoreAbsent(err)
	}
	return nil
}

// extension returns the file extension for a media type, or "".
func extension(mimeType string) string {
	known := map[string]string{"text/plain": ".txt", "application/json": ".json"}
	ends, _ := mime.ExtensionsByType(mimeType)
	return cmp.Or(append([]string{known[mimeType]}, ends...)...)
}

// leaving is the suffix of the mark of an owner that is being removed and no longer
// counts. The mark stays until everything is done, so that the removal can be repeated
// after a crash.
const leaving = ".gone"

// disown removes a conversation from the owners of a file, and removes the file if it
// has no other owner.
func (f *Folder) disown(conversation, name string) error {
	mark := filepath.Join(f.owners(conversation), name)
	if err := os.Rename(mark, mark+leaving); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.removeUnowned(name); err != nil {
		return err
	}
	return ignoreAbsent(os.Remove(mark + leaving))
}

// removeUnowned removes a file unless it has an owner. The file is renamed before the
// second check: Keep owns before it writes, so an owner that is added after that check
// writes the file again. For an owner that is added between the two checks the file is
// missing for that moment; that owner may be gone again before the file is back, so the
// file is then checked again.
func (f *Folder) removeUnowned(name string) error {
	path, gone := filepath.Join(f.path, name), filepath.Join(f.path, ".gone-"+rand.Text())
	for {
		if owned, err := f.isOwned(name); err != nil || owned {
			return err
		}
		if err := os.Rename(path, gone); err != nil {
			return ignoreAbsent(err)
		}
		owned, err := f.isOwned(name)
		if err == nil && !owned {
			return os.Remove(gone)
		}
		if err = errors.Join(err, os.Rename(gone, path)); err != nil {
			return err
		}
	}
}

// ignoreAbsent returns err unless it says that a file does not exist.
func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isOwned reports whether a file has an owner.
func (f *Folder) isOwned(name string) (bool, error) {
	folders, err := os.ReadDir(filepath.Join(f.path, "owners"))
	if err != nil {
		return false, err
	}
	for _, folder := range folders {
		if _, err := os.Lstat(filepath.Join(f.path, "owners", folder.Name(), name)); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// spilled matches the names of files that Keep writes. The system's extensions for media
// types include .tar.gz, .json-patch and .h++.
var spilled = regexp.MustCompile(`^[0-9a-f]{32}(\.[^/\\]+)?$`)

// linked returns the names of the files that canisters link to.
func (f *Folder) linked(canisters ...canister.Canister) (names []string) {
	folder, err := filepath.Abs(f.path)
	if err != nil {
		return nil
	}
	for _, c := range canisters {
		for _, content := range canister.ContentOf(c) {
			link, _ := content.(canister.LinkContent)
			path := fileurl.Path(link.URI)
			if name := filepath.Base(path); filepath.Dir(path) == folder && spilled.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	return names
}
