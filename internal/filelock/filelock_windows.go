// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// Supported reports whether the system has locks. Without them, every attempt to lock a
// file succeeds at once.
const Supported = true

// try uses LockFileEx. Windows refuses others to read and write the bytes that are locked,
// so try locks one byte that no file has. A lock may be beyond the end of a file.
func try(file *os.File, exclusive bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := &windows.Overlapped{Offset: math.MaxUint32 - 1, OffsetHigh: math.MaxInt32}
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, at)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return false, nil
	default:
		return false, err
	}
}
