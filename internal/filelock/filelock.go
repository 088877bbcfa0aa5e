// SPDX-License-Identifier: Apache-2.0

// Package filelock locks files, so that processes exclude each other.
//
// A lock belongs to an open file: closing the file, or the end of the process, releases
// it. Two open files of one process exclude each other too. Only programs that ask for
// the lock notice it: reading and writing the file stays possible. [Supported] reports
// whether the system has such locks: Linux, macOS, the BSDs and Windows have them.
package filelock

import (
	"context"
	"os"
	"time"
)

// Try locks a file: exclusively, or shared with others that do the same. It does not
// wait, and reports whether the file is locked now. It must be called once for an open
// file.
func Try(file *os.File, exclusive bool) (bool, error) {
	locked, err := try(file, exclusive)
	if err != nil {
		return false, &os.PathError{Op: "lock", Path: file.Name(), Err: err}
	}
	return locked, nil
}

// Wait is like [Try], and waits until the file is locked or ctx ends. It polls, because a
// system call that waits could not be interrupted.
func Wait(ctx context.Context, file *os.File, exclusive bool) error {
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		if locked, err := Try(file, exclusive); locked || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}
