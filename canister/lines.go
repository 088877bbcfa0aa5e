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

// MaxLine is the maximum length of a line that [Encode] writes and [Decode]
// reads: 64 MiB, without the newline.
const MaxLine = 64 << 20

// Encode writes the JSON form of each canister to w, followed by a newline. It
// returns the first error of [Marshal] or of w. The canisters before the error
// may have been written, but no part of a canister that does not marshal or is
// longer than [MaxLine].
//
// Calling Encode once for each canister, as a program that appends to a log does,
// writes the same bytes. With [io.Discard], Encode only checks the canisters, which is
// cheaper.
func Encode(w io.Writer, history ...Canister) error {
	const flushAt = 64 << 10
	form := forms.Get().(*[]byte)
	pending := (*form)[:0]
	defer func() {
		if cap(pending) <= maxForm {
			*form = pending
		}
		forms.Put(form)
	}()
	for i, c := range history {
		if w == io.Discard && isPlain(c) && isShort(c) {
			continue
		}
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

// Decode reads a history from r, one canister per line. It skips blank lines, and
// the last line need not end with a newline. The sequence ends with the first
// error: an error of [Unmarshal] or r, or a line longer than [MaxLine]. The error
// names the line, counted from 1.
//
// Decode reads ahead of the canisters that it yields. The sequence may be used
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

// readLine appends the next line to buffer, without its newline. At the end of r
// it returns io.EOF unwrapped.
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
