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

// FileOptions are the choices of a [File]. The zero value is the default.
type FileOptions struct {
	// NoSync lets Record return when the operating system has the record,
	// without waiting for the disk: it then survives the end of the process,
	// however violent, but not that of the machine.
	NoSync bool
}

// File is a [Sink] that appends each record to a file as one line of JSON, with
// one write(2). Records that wait for the disk at the same time share one
// fsync(2). Several processes may append to one file on a local disk.
//
// A file that was renamed or removed is left, and one of the old name is made
// for the next record: log rotation needs no signal.
type File struct {
	opts FileOptions
	path string // absolute

	mu     sync.Mutex     // guards writing and what follows
	now    *opened        // what path named when the last record came
	closed bool           // no further records
	under  sync.WaitGroup // records under way, and files that are left
	close  func() error
}

// opened is a file until path names another one.
type opened struct {
	*os.File
	info    os.FileInfo    // says which file it is
	size    int64          // after the last line, if that was complete and ours
	waiting *group         // those that were written since the last fsync began
	under   sync.WaitGroup // records under way

	syncing chan struct{} // full during an fsync
	fsync   func() error
}

// group are records that share an fsync.
type group struct {
	synced bool // read and written while opened.syncing is full, like err
	err    error
}

// ErrClosed is the error of a record that comes after Close.
var ErrClosed = errors.New("audit: the file is closed")

// OpenFile opens a file to append records to, and makes it for the owner of the
// process alone if it is not there; its folder must be. If the last line is not
// complete, because a process or a disk failed while it was written, the next
// record ends it: [Read] will report it, and the records behind it are whole.
// Opts may be nil. It fails if path is no regular file that can be written.
func OpenFile(path string, opts *FileOptions) (*File, error) {
	whole, err := filepath.Abs(path) // the process may go elsewhere
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
		return nil, fmt.Errorf("audit: %s is no regular file", path)
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

// unknown is the size of a file whose last line may not be complete.
const unknown = -1

// Record appends a record. When it returns without an error the record is in
// the file, and on the disk unless FileOptions.NoSync is set; it does not give
// up when ctx ends. After an error, such as a full disk, the record may be lost
// and the next one can succeed: a line that was half written is ended first.
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
		return fmt.Errorf("audit: a record was not kept: %w", err)
	}
	return nil
}

// write appends a line, and returns the file and the group of records that it
// belongs to; nil if it was not let in.
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

// follow opens what path names now, if that is another file, and returns its
// size. A path that cannot be looked at leaves everything as it is.
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
	f.under.Go(func() { left.under.Wait(); _ = left.Close() }) // each record has seen to its own fsync
	f.now = next
	return next.info.Size(), nil
}

// torn reports whether the last line of a file of this size is not complete:
// a write of this process, or of another, was cut short.
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

// sync returns when a group is on the disk. Who comes first does it for all.
func (f *File) sync(o *opened, g *group) error {
	o.syncing <- struct{}{}
	defer func() { <-o.syncing }()
	if g.synced {
		return g.err
	}
	f.mu.Lock()
	o.waiting = &group{} // those that come from now on are not in this one
	f.mu.Unlock()
	g.synced, g.err = true, o.fsync()
	return g.err
}

// Close waits for the records under way and closes the file. It may be called
// twice, and concurrently.
func (f *File) Close() error { return f.close() }

func (f *File) shut() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.under.Wait()
	return errors.Join(f.now.fsync(), f.now.Close())
}
