// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package approve

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// reader reads a terminal and leaves nothing running.
type reader struct{}

// slice is how long the end of a context may remain unnoticed.
const slice = 50 * time.Millisecond

// read returns the next input. Its error is errQuiet if nothing is typed within
// patience (0: no limit), io.EOF at the end of the input, or the cause of ctx.
func (reader) read(ctx context.Context, file *os.File, patience time.Duration) ([]byte, error) {
	fd := int(file.Fd())
	if fd >= unix.FD_SETSIZE {
		return nil, errors.New("the descriptor of the terminal is too large")
	}
	for began := time.Now(); ; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var ready unix.FdSet
		ready.Set(fd)
		timeout := unix.NsecToTimeval(slice.Nanoseconds())
		n, err := unix.Select(fd+1, &ready, nil, nil, &timeout)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case n > 0:
			return readOnce(file)
		case patience > 0 && time.Since(began) >= patience:
			return nil, errQuiet
		}
	}
}

func readOnce(file *os.File) ([]byte, error) {
	typed := make([]byte, 4096)
	n, err := file.Read(typed)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return typed[:n], err
}

// interrupt does what Ctrl-C does.
func interrupt() error { return unix.Kill(unix.Getpid(), unix.SIGINT) }
