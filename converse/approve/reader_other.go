// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package approve

import (
	"context"
	"errors"
	"os"
	"time"
)

// reader reads a terminal. A read cannot be interrupted here: one that is abandoned goes
// on, and the next caller gets its result.
type reader struct {
	pending chan result // of the abandoned read; nil if there is none
}

type result struct {
	typed []byte
	err   error
}

// read returns the next input. Its error is errQuiet if nothing is typed within
// patience (0: no limit), io.EOF at the end of the input, or the cause of ctx.
func (r *reader) read(ctx context.Context, file *os.File, patience time.Duration) ([]byte, error) {
	if r.pending == nil {
		pending := make(chan result, 1)
		r.pending = pending
		go func() {
			typed := make([]byte, 4096)
			n, err := file.Read(typed)
			pending <- result{typed[:n], err}
		}()
	}
	var quietly <-chan time.Time
	if patience > 0 {
		quietly = time.After(patience)
	}
	select {
	case read := <-r.pending:
		r.pending = nil
		if len(read.typed) > 0 {
			return read.typed, nil
		}
		return nil, read.err
	case <-quietly:
		return nil, errQuiet
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func interrupt() error { return errors.New("interrupted") }
