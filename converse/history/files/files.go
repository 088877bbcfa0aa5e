// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/foldername"
)

// Options change how a store works; the zero value, and nil, are good.
type Options struct {
	// Clock tells the time, for Created and Changed; default time.Now.
	Clock func() time.Time
}

// Store is a [history.Store] in a folder. All methods may be called
// concurrently.
type Store struct {
	dir   string
	clock func() time.Time
	step  func(string)                               // hears of each step of a write; for tests
	write func(*os.File, []byte, int64) (int, error) // writes; for tests
	sync  func(*os.File) error                       // syncs; for tests

	mu      sync.Mutex
	closed  bool
	under   sync.WaitGroup   // writes under way
	indexes map[string]index // by folder; any of them may be missing
	settled map[string]bool  // folders of which the names are known to be on the disk
	gates   map[string]*gate // of folders that are written to
	ledger  *ledger          // nil until somebody asks for it
}

// gate lets one goroutine at a time write to a conversation.
type gate struct {
	turn  chan struct{}
	users int
}

var _ history.Store = (*Store)(nil)

// Open opens the store in a folder, and makes the folder if there is none. A
// folder that can only be read is opened too: then all that writes is an error.
func Open(dir string, options *Options) (*Store, error) {
	if options == nil {
		options = &Options{}
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		_, err = os.ReadDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("files: open the store: %w", err)
	}
	s := &Store{
		dir:     dir,
		clock:   options.Clock,
		step:    func(string) {},
		write:   (*os.File).WriteAt,
		sync:    (*os.File).Sync,
		indexes: map[string]index{},
		settled: map[string]bool{},
		gates:   map[string]*gate{},
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.sweep()
	return s, nil
}

// Close implements [history.Store]. It waits for appends and other changes; a
// loop over what is read ends with ErrClosed at its next step.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.under.Wait()
	return nil
}

// usable says what is wrong before anything is done.
func (s *Store) usable(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return history.ErrClosed
	}
	return ctx.Err()
}

// begin is usable for a write, which ends with under.Done.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return history.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.under.Add(1)
	return nil
}

// enter waits for the turn to write to a folder; leave ends it.
func (s *Store) enter(ctx context.Context, folder string) (leave func(), err error) {
	s.mu.Lock()
	g := s.gates[folder]
	if g == nil {
		g = &gate{turn: make(chan struct{}, 1)}
		s.gates[folder] = g
	}
	g.users++
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(s.gates, folder)
		}
	}
	select {
	case g.turn <- struct{}{}:
		return func() { <-g.turn; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}

// The files of a conversation's folder.
func linesOf(folder string) string { return filepath.Join(folder, "history.jsonl") }
func infoOf(folder string) string  { return filepath.Join(folder, "info.json") }

// folder returns the path of a conversation's folder.
func (s *Store) folder(conversation string) (string, error) {
	if err := history.CheckID(conversation); err != nil {
		return "", err
	}
	return filepath.Join(s.dir, foldername.Of(conversation)), nil
}

// locked is a conversation while nobody else may write to it.
type locked struct {
	file   *os.File // history.jsonl
	folder string
	leave  func()
}

func (l *locked) unlock() {
	_ = l.file.Close() // whatever was written was synced
	l.leave()
}

// lock waits until nobody else writes to a conversation. The error is
// fs.ErrNotExist if there is none.
func (s *Store) lock(ctx context.Context, folder string) (*locked, error) {
	leave, err := s.enter(ctx, folder)
	if err != nil {
		return nil, err
	}
	for {
		file, err := os.OpenFile(linesOf(folder), os.O_RDWR, 0)
		if err != nil {
			leave()
			return nil, err
		}
		err = lock(ctx, file, true)
		if err == nil && isAt(file, linesOf(folder)) {
			return &locked{file, folder, leave}, nil
		}
		_ = file.Close()
		if err != nil {
			leave()
			return nil, err
		}
		// It was deleted, or replaced, while we waited.
	}
}

// isAt reports whether the file is still the one of the path.
func isAt(file *os.File, path string) bool {
	is, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(is, named)
}

// index returns the index of the lines as they are now.
func (s *Store) index(folder string, file *os.File) (index, error) {
	s.mu.Lock()
	known := s.indexes[folder]
	s.mu.Unlock()
	x, err := known.scan(file)
	if err != nil {
		return index{}, err
	}
	s.remember(folder, x)
	return x, nil
}

// remember keeps an index, and forgets some other if there are too many.
func (s *Store) remember(folder string, x index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.indexes {
		if len(s.indexes) < indexes {
			break
		}
		delete(s.indexes, other)
	}
	s.indexes[folder] = x
}

// forget drops all that is remembered of a folder.
func (s *Store) forget(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.indexes, folder)
	delete(s.settled, folder)
}

// settle returns when the names of a folder and of its files are on the disk:
// who made them may have crashed before it saw to that.
func (s *Store) settle(folder string) error {
	s.mu.Lock()
	done := s.settled[folder]
	s.mu.Unlock()
	if done {
		return nil
	}
	if err := errors.Join(syncFolder(folder), syncFolder(s.dir)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.settled) >= indexes {
		clear(s.settled)
	}
	s.settled[folder] = true
	return nil
}

// The folders that are not whole yet, or not any more.
const (
	making   = ".new-"
	removing = ".old-"
)

// openGuard opens the file by whose lock those that make and remove folders
// tell others that they are at work.
func (s *Store) openGuard() (*os.File, error) {
	return os.OpenFile(filepath.Join(s.dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
}

// sweep removes what a crash has left of folders that were being made or
// removed, unless somebody is at work. It only tidies: whatever fails, fails
// again where it matters.
func (s *Store) sweep() {
	entries, _ := os.ReadDir(s.dir)
	var left []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, making) || strings.HasPrefix(name, removing) {
			left = append(left, filepath.Join(s.dir, name))
		}
	}
	if len(left) == 0 {
		return
	}
	guard, err := s.openGuard()
	if err != nil {
		return
	}
	defer guard.Close()
	if alone, err := tryLock(guard, true); !alone || err != nil {
		return
	}
	for _, folder := range left {
		_ = os.RemoveAll(folder)
	}
}

// make makes the folder of a conversation, with all that is in it or not at
// all; fill writes it. The error is history.ErrExists if there is one already.
func (s *Store) make(ctx context.Context, conversation, folder string, info history.Info, fill func(fresh string, lines *os.File) error) (err error) {
	guard, err := s.openGuard()
	if err != nil {
		return err
	}
	defer guard.Close()
	if err := lock(ctx, guard, false); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(s.dir, making)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(fresh))
		}
	}()
	s.step("folder")
	if err := s.writeInfo(fresh, info, nil); err != nil {
		return err
	}
	lines, err := os.OpenFile(linesOf(fresh), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = fill(fresh, lines); err == nil {
		s.stamp(linesOf(fresh), info.Changed)
		err = s.sync(lines)
	}
	if err = errors.Join(err, lines.Close()); err != nil {
		return err
	}
	if err := syncFolder(fresh); err != nil {
		return err
	}
	s.step("made")
	if err := os.Rename(fresh, folder); err != nil {
		if _, there := os.Lstat(linesOf(folder)); there == nil {
			err = fmt.Errorf("%w: %q", history.ErrExists, conversation)
		}
		return err // what has no lines is in the way
	}
	s.step("named")
	s.forget(folder)
	return s.settle(folder)
}

// stamp makes a time that of the file's last change, as exactly as the file
// system can; without it, the time of the write has to do.
func (s *Store) stamp(path string, changed time.Time) { _ = os.Chtimes(path, changed, changed) }

// failed says what was being done when an error came up, unless it says so
// itself.
func failed(doing, conversation string, err error) error {
	var conflict *history.ConflictError
	var corrupt *history.CorruptError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &conflict), errors.As(err, &corrupt),
		errors.Is(err, history.ErrExists), errors.Is(err, history.ErrNotFound):
		return err
	case errors.Is(err, fs.ErrNotExist) && doing != "append":
		return fmt.Errorf("%w: %q", history.ErrNotFound, conversation)
	}
	return fmt.Errorf("files: conversation %q: %s: %w", conversation, doing, err)
}

// corrupt says what is wrong in a file, and where.
func corrupt(conversation, path string, line int, err error) error {
	place := path
	if line > 0 {
		place = fmt.Sprintf("%s: line %d", path, line)
	}
	if errors.Is(err, canister.ErrNewer) {
		return fmt.Errorf("files: conversation %q: %s: %w", conversation, place, err)
	}
	return &history.CorruptError{Conversation: conversation, Place: place, Err: err}
}
