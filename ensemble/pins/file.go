// SPDX-License-Identifier: Apache-2.0

package pins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/writefile"
)

// File is a file of pinned tools. Its methods may be called concurrently, and
// see what other processes have written.
type File struct {
	path string

	mu      sync.Mutex
	entries []Entry     // sorted; never changed, only replaced
	info    os.FileInfo // the file that they are from; nil if there is none
}

// Open reads the file at path. One that does not exist is made when the first
// tool is pinned; its directory must exist.
func Open(path string) (*File, error) {
	if target, err := writefile.Target(path); err == nil {
		path = target // so that all who name the file share its lock
	}
	f := &File{path: path}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, f.wrap(err)
	}
	if err := f.refresh(); err != nil {
		return nil, f.wrap(err)
	}
	return f, nil
}

// Path returns where the file is.
func (f *File) Path() string { return f.path }

// Entries returns all pinned tools, sorted by ensemble and tool. The slice is
// the caller's.
func (f *File) Entries() ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return nil, f.wrap(err)
	}
	return slices.Clone(f.entries), nil
}

// Pending returns those of the pinned tools that have changed.
func (f *File) Pending() ([]Entry, error) {
	entries, err := f.Entries()
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Pending == nil }), err
}

// Accept pins what is pending for a tool; for all tools of the ensemble if tool
// is empty, and for all if both are. It returns the entries that it changed, as
// they were before; none, and no error, if nothing was pending.
func (f *File) Accept(ensemble, tool string) ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var accepted []Entry
	err := f.update(func(entries []Entry) ([]Entry, bool) {
		accepted = nil
		next := slices.Clone(entries)
		for i, e := range next {
			if e.Pending == nil || ensemble != "" && e.Ensemble != ensemble || tool != "" && e.Tool != tool {
				continue
			}
			accepted = append(accepted, e)
			next[i].Pinned, next[i].Pending = now(), nil
			next[i].Fingerprint, next[i].Definition = e.Pending.Fingerprint, e.Pending.Definition
		}
		return next, len(accepted) > 0
	})
	if err != nil {
		return nil, f.wrap(err)
	}
	return accepted, nil
}

// update replaces the entries by what change makes of them, if it reports news.
// Change is called again, with what is in the file by then, before anything is
// written. f.mu is held.
func (f *File) update(change func([]Entry) (next []Entry, news bool)) error {
	if err := f.refresh(); err != nil {
		return err
	}
	if _, news := change(f.entries); !news {
		return nil
	}
	unlock, err := lock(f.path)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.refresh(); err != nil {
		return err
	}
	next, news := change(f.entries)
	if !news {
		return nil
	}
	info, err := write(f.path, next)
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	f.entries, f.info = next, info
	return nil
}

// refresh reads the file if it is not the one that was read last. f.mu is held.
func (f *File) refresh() error {
	info, err := os.Stat(f.path)
	if err == nil && f.info != nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size() {
		return nil
	}
	entries, info, err := read(f.path)
	if err != nil {
		return err
	}
	f.entries, f.info = entries, info
	return nil
}

// wrap says which file an error is about, once.
func (f *File) wrap(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && err == error(path) {
		err = path.Err
	}
	return fmt.Errorf("pins in %s: %w", f.path, err)
}

// now is the time as the file has it.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
