// SPDX-License-Identifier: Apache-2.0

package writefile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/filelock"
)

// patience bounds the wait for other processes: each holds the lock for as long as it
// takes to read and write a file, unless it was stopped, and they do not queue.
const patience = 10 * time.Second

// Lock prevents other processes from writing the file at path until unlock is called,
// or this process has ended. It locks a second file, path with .lock added, because the
// file itself is replaced. It waits up to 10 seconds.
func Lock(path string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience,
		fmt.Errorf("another process held the lock for %v", patience))
	defer cancel()
	return LockContext(ctx, path)
}

// LockContext is like [Lock], and waits until ctx ends. The error is the cause of that end
// then.
func LockContext(ctx context.Context, path string) (unlock func(), err error) {
	file, err := openLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	if err := filelock.Wait(ctx, file, true); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("locking %s: %w", file.Name(), context.Cause(ctx))
		}
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

// TryLock is like [Lock], and does not wait.
func TryLock(path string) (unlock func(), err error) {
	file, err := openLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	locked, err := filelock.Try(file, true)
	if err == nil && !locked {
		err = fmt.Errorf("locking %s: %w", file.Name(), errHeld)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return func() { file.Close() }, nil
}

var errHeld = errors.New("another process holds the lock")
