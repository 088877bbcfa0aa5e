// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// FileOptions are the options of a [File]. The zero value is the default.
type FileOptions struct {
	// NoSync lets Record return once the operating system has the record, without
	// waiting for the disk: the record then survives any end of the process, but not
	// a crash of the machine.
	NoSync bool
}

// File is a [Sink] that appends each record to a file as one line of JSON, with
// one write(2). Records that wait for the disk at the same time share one
// fsync(2). Several processes may append to one file on a local disk.
//
// If the file was renamed or removed, the next record goes to a new file with the
// original name: log rotation needs no signal.
type File struct {
	opts FileOptions
	path string // absolute

	mu     sync.Mutex     // guards writing and the fields below
	now    *opened        // the file at path as of the last record
	closed bool           // no further records
	under  sync.WaitGroup // records in progress, and replaced files to close
	close  func() error
}

// opened is an open file. It is replaced when path refers to another file.
type opened struct {
	*os.File
	info    os.FileInfo    // identifies the file
	size    int64          // size after the last line, if that was complete and written by this process
	waiting *group         // records written since the last fsync began
	under   sync.WaitGroup // records in progress

	syncing chan struct{} // full during an fsync
	fsync   func() error
}

// group is a set of records that share an fsync.
type group struct {
	synced bool // guarded by opened.syncing, like err
	err    error
}

// ErrClosed is returned for a record after Close.
var ErrClosed = errors.New("audit: the file is closed")

// OpenFile opens a file for appending records, and creates it, accessible only to
// the owner of the process, if it does not exist; its folder must exist. If the
// last line is incomplete, because a process or a disk failed while writing it,
// the next record terminates it first: [Read] reports that line, and the records
// after it are complete. opts may be nil. OpenFile fails if path is not a
// writable regular file.
func OpenFile(path string, opts *FileOptions) (*File, error) {
	whole, err := filepath.Abs(path) // the process may change its directory
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	f := &File{path: whole}
	if opts != nil {
		f.opts = *opts
	}
	f.close = sync.OnceValue(f.shut)
	if f.now, err = open(path); err != nil {
		return nil, err
	}
	return f, nil
}

// open opens a file of records.
func open(path string) (*opened, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("audit: %s is not a regular file", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("audit: %w", err), file.Close())
	}
	return &opened{File: file, info: info, size: unknown, waiting: &group{}, syncing: make(chan struct{}, 1), fsync: file.Sync}, nil
}

// unknown is the size of a file whose last line may be incomplete.
const unknown = -1

// Record appends a record. When it returns nil, the record is in the file, and on
// the disk unless FileOptions.NoSync is set. It does not stop when ctx ends.
// After an error, such as a full disk, the record may be lost and the next one
// can succeed: an incomplete line is terminated first.
func (f *File) Record(_ context.Context, record *Record) error {
	line, err := record.MarshalJSON()
	if err != nil {
		return err
	}
	to, wrote, err := f.write(append(line, '\n'))
	if to == nil {
		return err
	}
	defer f.under.Done()
	defer to.under.Done()
	if err == nil && !f.opts.NoSync {
		err = f.sync(to, wrote)
	}
	if err != nil {
		return fmt.Errorf("audit: a record was not written: %w", err)
	}
	return nil
}

// write appends a line, and returns the file and the group of records that the
// line belongs to. The file is nil if nothing was attempted.
func (f *File) write(line []byte) (*opened, *group, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nil, ErrClosed
	}
	size, err := f.follow()
	if err != nil {
		return nil, nil, err
	}
	to := f.now
	f.under.Add(1)
	to.under.Add(1)
	torn, err := to.torn(size)
	if err != nil {
		return to, nil, err
	}
	if torn {
		line = append([]byte{'\n'}, line...)
	}
	to.size = unknown
	if _, err = to.Write(line); err == nil {
		to.size = size + int64(len(line))
	}
	return to, to.waiting, err
}

// follow opens the file at path if it is a different one now, and returns its
// size. If the path cannot be examined, the current file stays in use.
func (f *File) follow() (size int64, err error) {
	info, err := os.Stat(f.path)
	switch {
	case err == nil && os.SameFile(info, f.now.info):
		return info.Size(), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		info, err = f.now.Stat()
		if err != nil {
			return 0, fmt.Errorf("audit: %w", err)
		}
		return info.Size(), nil
	}
	next, err := open(f.path)
	if err != nil {
		return 0, err
	}
	left := f.now
	f.under.Go(func() { left.under.Wait(); _ = left.Close() }) // each record does its own fsync
	f.now = next
	return next.info.Size(), nil
}

// torn reports whether the last line of a file of this size is incomplete because
// a write of this or another process was cut short.
func (o *opened) torn(size int64) (bool, error) {
	if size == o.size || size == 0 {
		return false, nil
	}
	last := []byte{'\n'}
	if _, err := o.ReadAt(last, size-1); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return last[0] != '\n', nil
}

// sync returns when a group is on the disk. The first caller syncs for the whole
// group.
func (f *File) sync(o *opened, g *group) error {
	o.syncing <- struct{}{}
	defer func() { <-o.syncing }()
	if g.synced {
		return g.err
	}
	f.mu.Lock()
	o.waiting = &group{} // records from now on belong to the next group
	f.mu.Unlock()
	g.synced, g.err = true, o.fsync()
	return g.err
}

// Close waits for records in progress and closes the file. It may be called
// several times, and concurrently.
func (f *File) Close() error { return f.close() }

func (f *File) shut() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.under.Wait()
	return errors.Join(f.now.fsync(), f.now.Close())
}
