// SPDX-License-Identifier: Apache-2.0

package pins

import (
	"context"
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

// File is a file of pinned tools. Its methods may be called concurrently, and see the
// changes that other processes have written.
type File struct {
	path string

	writing sync.Mutex // held by the goroutine that waits for the lock of the file, or has it

	mu      sync.Mutex
	entries []Entry     // sorted; never modified, only replaced
	info    os.FileInfo // the file that they come from; nil without a file
}

// Open reads the file at path. A file that does not exist is created when the first
// tool is pinned; its directory must exist.
func Open(path string) (*File, error) {
	if target, err := writefile.Target(path); err == nil {
		path = target // so that all users of the file share its lock
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

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Entries returns all entries, sorted by ensemble and tool. The caller may modify
// the slice.
func (f *File) Entries() ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return nil, f.wrap(err)
	}
	return slices.Clone(f.entries), nil
}

// Pending returns the entries with a pending definition: changed tools, and new ones.
func (f *File) Pending() ([]Entry, error) {
	entries, err := f.Entries()
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Pending == nil }), err
}

// Accept pins the pending definition of a tool; of all tools of the ensemble if tool is
// empty, and of all tools if both are empty. It returns copies of the accepted entries, made
// before the change; none, and no error, if nothing was pending.
//
// With a fingerprint, it pins only the definition that has it, such as the one that a person
// has seen ([Pending].Fingerprint). If the tool has no such pending definition, because its
// server has changed it again or it was accepted already, Accept returns an error and changes
// nothing.
func (f *File) Accept(ensemble, tool, fingerprint string) ([]Entry, error) {
	var accepted []Entry
	err := f.update(acceptPatience, func(entries []Entry) ([]Entry, bool) {
		accepted = nil
		next := slices.Clone(entries)
		for i, e := range next {
			if e.Pending == nil || ensemble != "" && e.Ensemble != ensemble || tool != "" && e.Tool != tool ||
				fingerprint != "" && e.Pending.Fingerprint != fingerprint {
				continue
			}
			accepted = append(accepted, e)
			next[i].Pinned, next[i].Pending = now(), nil
			next[i].Fingerprint, next[i].Definition = e.Pending.Fingerprint, e.Pending.Definition
		}
		return next, len(accepted) > 0
	})
	if err == nil && fingerprint != "" && len(accepted) == 0 {
		err = fmt.Errorf("the tool %q of %q has no pending definition with this fingerprint: it was accepted, or changed again; look at its definition once more", tool, ensemble)
	}
	if err != nil {
		return nil, f.wrap(err)
	}
	return accepted, nil
}

const (
	listPatience   = 2 * time.Second // shorter than a listing of tools may take
	acceptPatience = 10 * time.Second
)

// update replaces the entries with the result of change, if that reports a difference.
// It calls change again with the latest contents of the file before it writes. It waits up to
// patience for other processes that write the file. f.mu is not held meanwhile, so that readers
// are not delayed.
func (f *File) update(patience time.Duration, change func([]Entry) (next []Entry, changed bool)) error {
	if changed, err := f.differs(change); err != nil || !changed {
		return err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("the file of pins was in use for %v", patience))
	defer cancel()
	unlock, err := writefile.LockContext(ctx, f.path)
	if err != nil {
		return err
	}
	defer unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return err
	}
	next, changed := change(f.entries)
	if !changed {
		return nil
	}
	info, err := write(f.path, next)
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	f.entries, f.info = next, info
	return nil
}

// differs reports whether change would change the entries.
func (f *File) differs(change func([]Entry) ([]Entry, bool)) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(); err != nil {
		return false, err
	}
	_, changed := change(f.entries)
	return changed, nil
}

// refresh reads the file again if it has changed since the last read. f.mu is held.
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

// wrap adds the path of the file to an error, once.
func (f *File) wrap(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && err == error(path) {
		err = path.Err
	}
	return fmt.Errorf("pins in %s: %w", f.path, err)
}

// now returns the time in the form that the file stores.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
