// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package writefile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// patience bounds the wait for another process: it holds the lock for as long as it
// takes to read and write a file, unless it was stopped.
const patience = 2 * time.Second

// Lock prevents other processes from writing the file at path until unlock is called,
// or this process has ended. It locks a second file, path with .lock added, because the
// file itself is replaced. It waits up to 2 seconds.
func Lock(path string) (unlock func(), err error) { return lock(path, patience) }

// TryLock is like [Lock], and does not wait.
func TryLock(path string) (unlock func(), err error) { return lock(path, 0) }

func lock(path string, patience time.Duration) (unlock func(), err error) {
	file, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { file.Close() }, nil
		case errors.Is(err, syscall.EWOULDBLOCK) && time.Now().After(deadline):
			err = fmt.Errorf("another process held the lock for %v", patience)
		case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
			continue
		}
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
	}
}
