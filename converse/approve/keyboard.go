// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/consort-go/consort/internal/paste"
	"golang.org/x/term"
)

// keyboard is a terminal that a person types on. One goroutine may use it at a time.
type keyboard struct {
	file   *os.File
	reader reader
}

// quiet is how long a keyboard must be quiet before a question counts as seen. It is
// longer than the gaps within a paste. quietPaste is the same for a paste that has begun
// and not ended.
const (
	quiet      = 200 * time.Millisecond
	quietPaste = 2 * time.Second
)

// errQuiet says that nothing was typed in time.
var errQuiet = errors.New("nothing was typed")

const ctrlC = 3

// discard drops the typed input, until the keyboard is quiet. The terminal is in raw
// mode meanwhile, because the beginning of a line cannot be read otherwise.
func (k *keyboard) discard(ctx context.Context) error {
	fd := int(k.file.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	interrupted, err := k.drop(ctx)
	if err := errors.Join(err, term.Restore(fd, before)); err != nil || !interrupted {
		return err
	}
	return interrupt() // in raw mode, Ctrl-C sends no signal
}

// drop reads until the keyboard is quiet, or Ctrl-C is pressed.
func (k *keyboard) drop(ctx context.Context) (interrupted bool, err error) {
	var pasted paste.State
	for {
		patience := quiet
		if pasted.IsOpen() {
			patience = quietPaste
		}
		typed, err := k.reader.read(ctx, k.file, patience)
		if errors.Is(err, errQuiet) || errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for _, b := range typed {
			if b == ctrlC && !pasted.IsOpen() {
				return true, nil
			}
			pasted.Next(b)
		}
	}
}

// maxLine bounds an answer, in bytes.
const maxLine = 64 << 10

// line returns the next line without its end. Its error is io.EOF if the person ended the
// input instead.
func (k *keyboard) line(ctx context.Context) (string, error) {
	var line []byte
	for {
		typed, err := k.reader.read(ctx, k.file, 0)
		if err != nil {
			return "", err
		}
		line = append(line, typed...)
		if end := bytes.IndexAny(line, "\r\n"); end >= 0 {
			return string(line[:end]), nil
		}
		if len(line) > maxLine {
			return "", errors.New("the answer is too long")
		}
	}
}
