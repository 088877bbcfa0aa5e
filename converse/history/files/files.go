// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/filelock"
	"github.com/consort-go/consort/internal/foldername"
	"github.com/consort-go/consort/internal/renamelock"
	"github.com/consort-go/consort/internal/writefile"
)

// Options configure a store. Nil and the zero value use the defaults.
type Options struct {
	// Clock returns the time for Created and Changed; default time.Now.
	Clock func() time.Time
}

// Store is a [history.Store] in a folder. All methods may be called concurrently.
type Store struct {
	dir   string
	clock func() time.Time
	step  func(string)                               // called at each step of a write; for tests
	write func(*os.File, []byte, int64) (int, error) // writes; for tests
	sync  func(*os.File) error                       // syncs; for tests

	closes bool // files are closed before they, or their folders, are renamed

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup   // running writes
	indexes map[string]index // by folder; entries may be missing
	settled map[string]bool  // folders whose names are known to be on the disk
	gates   map[string]*gate // by folder that is being written to
	ledger  *ledger          // nil until first used
}

// gate lets one goroutine at a time write to a conversation.
type gate struct {
	turn  chan struct{}
	users int
}

var _ history.Store = (*Store)(nil)

// Open opens the store in a folder, and creates the folder if it does not exist. A
// read-only folder can be opened too; every write then fails.
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
		closes:  runtime.GOOS == "windows",
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

// Close implements [history.Store]. It waits for appends and other changes; a running
// Read or List ends with ErrClosed at its next step.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// usable returns the error of a closed store or an ended context.
func (s *Store) usable(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return history.ErrClosed
	}
	return ctx.Err()
}

// begin is like usable, for a write. The caller must call running.Done at the end.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return history.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.running.Add(1)
	return nil
}

// enter waits until the caller may write to a folder; the caller must call leave.
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

// locked is a conversation locked for writing.
type locked struct {
	file   *os.File // history.jsonl
	folder string
	leave  func()
}

func (l *locked) unlock() {
	_ = l.file.Close() // everything written was synced
	l.leave()
}

// lock waits for other writers of a conversation. The error is fs.ErrNotExist if the
// conversation does not exist.
func (s *Store) lock(ctx context.Context, folder string) (*locked, error) {
	leave, err := s.enter(ctx, folder)
	if err != nil {
		return nil, err
	}
	file, err := s.renames().Open(ctx, linesOf(folder), os.O_RDWR)
	if err != nil {
		leave()
		return nil, err
	}
	return &locked{file, folder, leave}, nil
}

// renames returns the lock that is held while the folder of a conversation or the file of the
// ledger is renamed, if the system needs it.
func (s *Store) renames() renamelock.Lock {
	return renamelock.Lock{Path: filepath.Join(s.dir, ".rename"), Used: s.closes}
}

// index returns the index of the current lines.
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

// remember stores an index, and drops another if there are too many.
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

// forget drops everything that is remembered of a folder.
func (s *Store) forget(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.indexes, folder)
	delete(s.settled, folder)
}

// settle returns when the names of a folder and of its files are on the disk: the
// process that created them may have crashed before it synced them.
func (s *Store) settle(folder string) error {
	s.mu.Lock()
	done := s.settled[folder]
	s.mu.Unlock()
	if done {
		return nil
	}
	if err := errors.Join(s.syncFolder(folder), s.syncFolder(s.dir)); err != nil {
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

// syncFolder returns when the names in a folder are on the disk.
func (s *Store) syncFolder(folder string) error { return writefile.SyncPath(folder, s.sync) }

// The prefixes of folders that are being created or removed.
const (
	making   = ".new-"
	removing = ".old-"
)

// openGuard opens the file that is locked while folders are created and removed.
func (s *Store) openGuard() (*os.File, error) {
	return os.OpenFile(filepath.Join(s.dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
}

// sweep removes folders whose creation or removal was interrupted by a crash, unless
// another process is creating or removing folders. It ignores errors, because errors
// that matter occur again elsewhere.
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
	if alone, err := filelock.Try(guard, true); !alone || err != nil {
		return
	}
	for _, folder := range left {
		_ = s.discard(folder)
	}
}

// make creates the folder of a conversation atomically; fill writes its contents. The
// error is history.ErrExists if the folder already exists.
func (s *Store) make(ctx context.Context, conversation, folder string, info history.Info, fill func(fresh string, lines *os.File) error) (err error) {
	guard, err := s.openGuard()
	if err != nil {
		return err
	}
	defer guard.Close()
	if err := filelock.Wait(ctx, guard, false); err != nil {
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
	if err := s.syncFolder(fresh); err != nil {
		return err
	}
	s.step("made")
	if err := os.Rename(fresh, folder); err != nil {
		if _, there := os.Lstat(linesOf(folder)); there == nil {
			err = fmt.Errorf("%w: %q", history.ErrExists, conversation)
		}
		return err // the folder in the way has no history.jsonl
	}
	s.step("named")
	s.forget(folder)
	return s.settle(folder)
}

// stamp sets the modification time of a file, with the precision of the file system. If
// it fails, the time of the write is used.
func (s *Store) stamp(path string, changed time.Time) { _ = os.Chtimes(path, changed, changed) }

// failed adds the operation to an error, unless the error is already specific.
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

// corrupt returns the error about damaged data in a file.
func corrupt(conversation, path string, line int, err error) error {
	place := path
	if line > 0 {
		place = fmt.Sprintf("%s: line %d", path, line)
	}
	if errors.Is(err, canister.ErrNewer) {
		return fmt.Errorf("files: conversation %q: %s: %w", conversation, place, err)
	}
	return &history.CorruptError{Conversation: conversation, Location: place, Err: err}
}
