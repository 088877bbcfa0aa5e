// SPDX-License-Identifier: Apache-2.0

package canister

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine is the length, in bytes and without the newline, of the longest line
// that [Encode] writes and [Decode] reads: 64 MiB.
const MaxLine = 64 << 20

// Encode writes the canisters to w, each in its JSON form and on a line of its
// own, ended by a newline. It returns the first error of [Marshal] or of w; the
// canisters before it may have been written then, and no part of the one that
// does not marshal or is longer than [MaxLine].
//
// A program that appends to a log calls Encode with one canister after another
// and gets the same bytes.
func Encode(w io.Writer, history ...Canister) error {
	const flushAt = 64 << 10
	var pending []byte
	for i, c := range history {
		start := len(pending)
		line, err := appendCanister(pending, c)
		if err == nil && len(line)-start > MaxLine {
			err = fmt.Errorf("the line has %d bytes, more than the %d that can be read", len(line)-start, MaxLine)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("canister: number %d: %w", i+1, err), flush(w, pending))
		}
		pending = append(line, '\n')
		if len(pending) >= flushAt {
			if err := flush(w, pending); err != nil {
				return err
			}
			pending = pending[:0]
		}
	}
	return flush(w, pending)
}

func flush(w io.Writer, lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if _, err := w.Write(lines); err != nil {
		return fmt.Errorf("canister: write: %w", err)
	}
	return nil
}

// Decode reads a history from r, one canister from each line; blank lines are
// passed over, and the last line need not end with a newline. The first error
// ends the sequence: one of [Unmarshal], a line longer than [MaxLine], or one
// of r. It names the line, counted from 1.
//
// Decode reads ahead of the canisters that it yields. It may be ranged over
// once, by one goroutine.
func Decode(r io.Reader) iter.Seq2[Canister, error] {
	return func(yield func(Canister, error) bool) {
		lines := bufio.NewReaderSize(r, 64<<10)
		var buffer []byte
		for number := 1; ; number++ {
			line, err := readLine(lines, buffer[:0])
			if err == io.EOF {
				return
			}
			buffer = line
			if err == nil && len(bytes.Trim(line, " \t\r\n")) == 0 {
				continue
			}
			var c Canister
			if err == nil {
				c, err = readCanister(line)
			}
			if err != nil {
				yield(nil, fmt.Errorf("canister: line %d: %w", number, err))
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// readLine appends the next line to buffer, without its newline. At the end
// of r, when there is no line, it returns io.EOF itself.
func readLine(r *bufio.Reader, buffer []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if len(buffer)+len(part) > MaxLine {
			return nil, fmt.Errorf("the line is longer than %d bytes", MaxLine)
		}
		buffer = append(buffer, part...)
		switch {
		case ended, err == io.EOF && len(buffer) > 0:
			return buffer, nil
		case err == io.EOF:
			return nil, io.EOF
		case err != bufio.ErrBufferFull:
			return nil, fmt.Errorf("read: %w", err)
		}
	}
}
