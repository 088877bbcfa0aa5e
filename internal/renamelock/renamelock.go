// SPDX-License-Identifier: Apache-2.0

// Package renamelock locks files that another process may replace, or whose folder it may
// rename. Windows does not rename open files, so a process that renames closes its locked file
// before, and a second lock excludes the other processes meanwhile. On other systems the lock of
// the file itself lasts until the rename is done.
package renamelock

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/consort-go/consort/internal/filelock"
	"github.com/consort-go/consort/internal/writefile"
)

// Lock is the second lock.
type Lock struct {
	// Path is the path of the lock; its file has .lock added, see [writefile.Lock]. The file
	// stays, and must not be in a folder that is renamed.
	Path string
	Used bool // on Windows; otherwise Open locks only the file itself
}

// Open opens and locks the file at path: exclusively, or shared with other readers if flag is
// os.O_RDONLY. It waits until the file is locked or ctx ends.
func (l Lock) Open(ctx context.Context, path string, flag int) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, flag, 0o600)
		if err != nil {
			return nil, err
		}
		if err = filelock.Wait(ctx, file, flag != os.O_RDONLY); err != nil {
			_ = file.Close()
			return nil, err
		}
		// From now on, no process can begin to rename this file.
		isHeld, err := l.isHeld()
		if err == nil && !isHeld && IsAt(file, path) {
			return file, nil
		}
		_ = file.Close()
		if isHeld {
			err = l.wait(ctx)
		}
		if err != nil {
			return nil, err
		}
		// It was deleted or replaced during the wait.
	}
}

// Release makes a file of [Lock.Open], which was locked exclusively, ready to be renamed: it
// closes the file if the system needs that. No other process can lock the file until the caller
// has called done and closed the file, which may be closed.
func (l Lock) Release(ctx context.Context, file *os.File) (done func(), err error) {
	if !l.Used {
		return func() {}, nil
	}
	done, err = writefile.LockContext(ctx, l.Path)
	if err == nil {
		_ = file.Close()
	}
	return done, err
}

// isHeld reports whether a process renames at this moment.
func (l Lock) isHeld() (bool, error) {
	if !l.Used {
		return false, nil
	}
	file, err := os.Open(l.Path + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	free, err := filelock.Try(file, false)
	return !free, err
}

// wait waits until no process renames.
func (l Lock) wait(ctx context.Context) error {
	file, err := os.Open(l.Path + ".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return filelock.Wait(ctx, file, false)
}

// IsAt reports whether the path still names the file.
func IsAt(file *os.File, path string) bool {
	is, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(is, named)
}
