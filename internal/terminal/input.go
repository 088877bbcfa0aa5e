// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/paste"
)

// ErrInterrupted says that the user pressed Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// maxLine bounds one line of input, and one message of several lines, in bytes.
const maxLine = 1 << 20

// errTooLong says that a line or a message exceeds maxLine. The rest of it is still to be read.
var errTooLong = errors.New("a line of input is longer than 1 MiB")

// input reads a file in such a way that a wait for input can be abandoned without losing
// later input. Only one goroutine may read at a time.
type input struct {
	interrupts <-chan os.Signal
	start      func() // starts to read the file; idempotent
	bytes      chan byte
	err        error // why bytes was closed
	paste      paste.State
	unread     []byte // to be read again, before bytes
}

// quiet is how long input must pause before the user is assumed to have stopped typing,
// and quietPaste before an unterminated paste is assumed to have ended. quiet is longer
// than the gaps within a paste, and shorter than a person takes to read a question.
const (
	quiet      = 200 * time.Millisecond
	quietPaste = 2 * time.Second
)

// discard drops pending input, and further input until it pauses: text typed or pasted
// before a question does not answer it.
func (in *input) discard(ctx context.Context) error {
	for {
		patience := quiet
		if in.paste.IsOpen() {
			patience = quietPaste
		}
		timeout, cancel := context.WithTimeoutCause(ctx, patience, errQuiet)
		b, err := in.next(timeout)
		cancel()
		switch {
		case errors.Is(err, errQuiet), errors.Is(err, io.EOF):
			in.paste = paste.State{}
			return nil
		case err != nil:
			return err
		case b == ctrlC && !in.paste.IsOpen():
			return ErrInterrupted
		}
	}
}

var errQuiet = errors.New("nothing has been typed for a while")

// newInput returns the input from file. The first wait for input starts to read it, on a
// goroutine that ends with the file or with the process: a read from a terminal cannot be
// interrupted.
func newInput(file io.Reader, interrupts <-chan os.Signal) *input {
	in := &input{interrupts: interrupts, bytes: make(chan byte)}
	in.start = sync.OnceFunc(func() { go in.read(file) })
	return in
}

func (in *input) read(file io.Reader) {
	defer close(in.bytes)
	buffer := make([]byte, 4096)
	for {
		n, err := file.Read(buffer)
		for _, b := range buffer[:n] {
			in.bytes <- b
		}
		if err != nil {
			in.err = err
			return
		}
	}
}

// next returns the next byte. Its error is the cause of ctx, ErrInterrupted, or the
// error that ended the file.
func (in *input) next(ctx context.Context) (byte, error) {
	in.start()
	if len(in.unread) > 0 {
		b := in.unread[0]
		in.unread = in.unread[1:]
		return b, nil
	}
	select {
	case b, ok := <-in.bytes:
		if !ok {
			return 0, in.err
		}
		in.paste.Next(b)
		return b, nil
	case <-in.interrupts:
		return 0, ErrInterrupted
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// message returns the next line that a person types on a terminal, together with the lines
// that follow without a pause: they were pasted. The sequences around a paste are not part of
// it.
func (in *input) message(ctx context.Context) (string, error) {
	var whole strings.Builder
	for {
		line, err := in.line(ctx)
		if err != nil {
			return "", err
		}
		whole.WriteString(line)
		if whole.Len() > maxLine {
			return "", errTooLong
		}
		more, err := in.follows(ctx)
		if err != nil {
			return "", err
		}
		if !more {
			return strings.NewReplacer(paste.Begins, "", paste.Ends, "").Replace(whole.String()), nil
		}
		whole.WriteByte('\n')
	}
}

// follows reports whether more input belongs to a paste, and waits a moment for it. Its error
// is ErrInterrupted or the cause of ctx; the next read reports all others.
func (in *input) follows(ctx context.Context) (bool, error) {
	if in.paste.IsOpen() {
		return true, nil
	}
	timeout, cancel := context.WithTimeoutCause(ctx, quiet, errQuiet)
	defer cancel()
	b, err := in.next(timeout)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.Is(err, ErrInterrupted):
		return false, err
	case err != nil:
		return false, nil
	}
	in.unread = append(in.unread, b)
	return true, nil
}

// line returns the next line without its newline. The last line need not have one.
func (in *input) line(ctx context.Context) (string, error) {
	var line []byte
	for {
		b, err := in.next(ctx)
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return string(line), nil
		case err != nil:
			return "", err
		case b == '\n':
			return string(line), nil
		case len(line) == maxLine:
			return "", errTooLong
		}
		line = append(line, b)
	}
}

// keys reads a terminal in raw mode, one byte for each Read, so that no input beyond the
// current line is consumed.
type keys struct {
	in  *input
	ctx context.Context
	err error // of the Read that failed
}

const ctrlC = 3

func (k *keys) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	b, err := k.in.next(k.ctx)
	if err == nil && b == ctrlC {
		err = ErrInterrupted
	}
	if err != nil {
		k.err = err
		return 0, err
	}
	p[0] = b
	return 1, nil
}
