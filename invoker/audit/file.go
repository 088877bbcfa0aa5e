// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
type File struct {
	opts FileOptions
	file *os.File

	mu      sync.Mutex     // guards writing and what follows
	torn    bool           // the last line is not complete
	waiting *group         // those that were written since the last fsync began
	closed  bool           // no further records
	under   sync.WaitGroup // records under way

	syncing chan struct{} // full during an fsync
	fsync   func() error  // of file
	close   func() error
}

// group are records that share an fsync.
type group struct {
	synced bool // read and written while File.syncing is full, like err
	err    error
}

// ErrClosed is the error of a record that comes after Close.
var ErrClosed = errors.New("audit: the file is closed")

// OpenFile opens a file to append records to, and makes it for the owner of the
// process alone if it is not there; its folder must be. If the last line is not
// complete, because a process or a disk failed while it was written, it is
// ended: [Read] will report it, and the records behind it are whole. Opts may
// be nil. It fails if path is no regular file that can be written.
func OpenFile(path string, opts *FileOptions) (*File, error) {
	f := &File{waiting: &group{}, syncing: make(chan struct{}, 1)}
	if opts != nil {
		f.opts = *opts
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("audit: %s is no regular file", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	f.file, f.fsync, f.close = file, file.Sync, sync.OnceValue(f.shut)
	if err := f.mend(); err != nil {
		return nil, errors.Join(fmt.Errorf("audit: %s cannot be taken up: %w", path, err), file.Close())
	}
	return f, nil
}

// mend ends the last line.
func (f *File) mend() error {
	info, err := f.file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.file.ReadAt(last, info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if last[0] != '\n' {
		_, err = f.file.WriteString("\n")
	}
	return err
}

// Record appends a record. When it returns without an error the record is in
// the file, and on the disk unless FileOptions.NoSync is set; it does not give
// up when ctx ends. After an error, such as a full disk, the record may be lost
// and the next one can succeed: a line that was half written is ended first.
func (f *File) Record(_ context.Context, record *Record) error {
	line, err := record.MarshalJSON()
	if err != nil {
		return err
	}
	wrote, err := f.write(append(line, '\n'))
	if wrote == nil {
		return err
	}
	defer f.under.Done()
	if err == nil && !f.opts.NoSync {
		err = f.sync(wrote)
	}
	if err != nil {
		return fmt.Errorf("audit: a record was not kept: %w", err)
	}
	return nil
}

// write appends a line, and returns the group of records that it belongs to;
// nil if it was not let in.
func (f *File) write(line []byte) (*group, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	f.under.Add(1)
	if f.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := f.file.Write(line)
	if n > 0 {
		f.torn = line[n-1] != '\n'
	}
	return f.waiting, err
}

// sync returns when a group is on the disk. Who comes first does it for all.
func (f *File) sync(g *group) error {
	f.syncing <- struct{}{}
	defer func() { <-f.syncing }()
	if g.synced {
		return g.err
	}
	f.mu.Lock()
	f.waiting = &group{} // those that come from now on are not in this one
	f.mu.Unlock()
	g.synced, g.err = true, f.fsync()
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
	return errors.Join(f.fsync(), f.file.Close())
}
