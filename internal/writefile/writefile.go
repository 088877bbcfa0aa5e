// SPDX-License-Identifier: Apache-2.0

// Package writefile writes files that are either complete or unchanged.
//
// Replace is the only function in this module that renames a file over a path that a
// user can specify: a plain rename would replace a device, a pipe or a symbolic link
// with a regular file.
package writefile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Options configure Replace; nil is the zero value.
type Options struct {
	// Mode holds the permissions of a new file; default 0600.
	Mode fs.FileMode
	// KeepMode gives the new file the permissions of the file it replaces.
	KeepMode bool
	// Temporary is the name of the temporary file. A star is replaced with a random
	// string. Without a star, an existing file with the name is removed first, and the
	// caller must exclude other writers. Default ".new-*".
	Temporary string
	// Sync makes Replace wait until the data and the name are on the disk.
	Sync bool
	// Wait is how long Replace waits where Windows refuses to replace the file because it is
	// open; default 2 s.
	Wait time.Duration
}

// Replace writes the file at path with write, and returns the resulting file info.
//
// If path is a regular file or does not exist, write gets a temporary file in the same
// folder, which is renamed over the path on success and removed otherwise. If path is a
// symbolic link, its target is replaced and the link stays. Anything else, such as a
// device, a pipe or a descriptor of this process (/dev/stdout, /proc/self/fd/N), is
// opened and written to; data written before an error stays there.
func Replace(path string, options *Options, write func(*os.File) error) (fs.FileInfo, error) {
	var o Options
	if options != nil {
		o = *options
	}
	target, err := Target(path)
	if err != nil {
		return nil, err
	}
	if fd, ok := descriptor(target); ok {
		file, err := duplicate(fd, path)
		if err != nil {
			return nil, err
		}
		return finish(file, false, write)
	}
	old, err := os.Stat(target)
	switch {
	case err == nil && !old.Mode().IsRegular():
		file, err := os.OpenFile(target, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return finish(file, false, write)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return o.rename(target, old, write)
}

// rename writes a temporary file and renames it over target. old describes the current
// file, and is nil if the file does not exist.
func (o *Options) rename(target string, old fs.FileInfo, write func(*os.File) error) (info fs.FileInfo, err error) {
	file, err := o.temporary(filepath.Dir(target))
	if err != nil {
		return nil, err
	}
	name := file.Name()
	defer func() {
		if err != nil {
			if removing := os.Remove(name); !errors.Is(removing, fs.ErrNotExist) {
				err = errors.Join(err, removing)
			}
		}
	}()
	if o.KeepMode && old != nil {
		_ = file.Chmod(old.Mode().Perm()) // if this fails, the file keeps o.Mode
	}
	if info, err = finish(file, o.Sync, write); err != nil {
		return nil, err
	}
	wait := cmp.Or(o.Wait, moveTimeout)
	if old != nil && old.Mode().Perm()&0o200 == 0 {
		wait = 0 // Windows never replaces a read-only file
	}
	if err = move(name, target, wait); err == nil && o.Sync {
		err = SyncPath(filepath.Dir(target), syncFile)
	}
	return info, err
}

// moveTimeout is the default of Options.Wait.
const moveTimeout = 2 * time.Second

// renameFile and isInUse are variables for tests.
var renameFile, isInUse = os.Rename, isSharing

// move renames a file over target. Windows refuses that while another program, or another goroutine of this one,
// has target open, for example to read it; move then tries again, for as long as wait.
func move(name, target string, wait time.Duration) error {
	for pause, began := time.Millisecond, time.Now(); ; pause *= 2 {
		err := renameFile(name, target)
		if err == nil || !isInUse(err) || time.Since(began)+pause > wait {
			return err
		}
		time.Sleep(pause)
	}
}

// syncFile syncs a file or a folder. It is a variable for tests.
var syncFile = (*os.File).Sync

// SyncPath opens a file or a folder and calls sync, which is (*os.File).Sync except in tests. It
// returns when the data, or the names in the folder, are on the disk. If sync is not possible
// there, as for folders on Windows and on some file systems, it returns nil.
func SyncPath(path string, sync func(*os.File) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err = sync(file); runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) { // it has no such operation
		err = nil
	}
	return err
}

// temporary creates the temporary file in a folder.
func (o *Options) temporary(folder string) (*os.File, error) {
	pattern, mode := cmp.Or(o.Temporary, ".new-*"), cmp.Or(o.Mode, 0o600)
	if isFixed(pattern) {
		name := filepath.Join(folder, pattern)
		_ = os.Remove(name) // left by a writer that crashed; it may be read-only
		return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	}
	file, err := os.CreateTemp(folder, pattern)
	if err == nil && mode != 0o600 {
		err = file.Chmod(mode)
	}
	return file, err
}

// finish writes an open file and closes it.
func finish(file *os.File, sync bool, write func(*os.File) error) (info fs.FileInfo, err error) {
	defer func() { err = errors.Join(err, file.Close()) }()
	if err = write(file); err == nil && sync {
		err = syncFile(file)
	}
	if err != nil {
		return nil, err
	}
	return file.Stat()
}

// maxLinks bounds how many symbolic links are followed, as kernels do.
const maxLinks = 40

// Target returns the absolute path that path resolves to after following symbolic
// links. The file itself need not exist, but its folder must. A path to an open
// descriptor, such as /dev/stdout, resolves to the descriptor.
func Target(path string) (string, error) {
	given := path
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(folder, filepath.Base(path))
		if isDescriptor(path) {
			return path, nil
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil // opening the file reports any error
		}
		next, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if path = next; !filepath.IsAbs(next) {
			path = filepath.Join(folder, next)
		}
	}
	return "", fmt.Errorf("%s: too many symbolic links", given)
}
