// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/consort-go/consort/canister"
)

const (
	stride  = 64  // canisters from one mark to the next
	indexes = 256 // conversations of which the index is remembered
	// maxLine is the longest line: that of a canister, and its sum.
	maxLine = canister.MaxLine + 64
)

// index says where in a history.jsonl the canisters are. It is a value that
// nobody changes: a longer file has another one.
type index struct {
	file   os.FileInfo
	length int    // canisters
	end    int64  // behind the last line of them
	lines  int    // in the file until there, blank ones too
	last   mark   // of the last canister
	tail   []byte // the bytes before end, to know the file again
	bare   bool   // the last line lacks its newline
	marks  []mark // of the canisters 0, stride, 2*stride...
}

// mark is the place of a line.
type mark struct {
	offset int64
	line   int // from 1
}

// fits reports whether the index is one of the beginning of the file.
func (x *index) fits(file *os.File, now os.FileInfo) bool {
	if x.file == nil || !os.SameFile(x.file, now) || now.Size() < x.end || x.bare {
		return false
	}
	if now.Size() == x.file.Size() && now.ModTime().Equal(x.file.ModTime()) {
		return true
	}
	tail := make([]byte, len(x.tail))
	_, err := file.ReadAt(tail, x.end-int64(len(tail)))
	return err == nil && bytes.Equal(tail, x.tail)
}

// scan returns the index of a file, of whose beginning x may be the index.
func (x index) scan(file *os.File) (index, error) {
	now, err := file.Stat()
	if err != nil {
		return index{}, err
	}
	if !x.fits(file, now) {
		x = index{}
	}
	x.file = now
	if x.end == now.Size() {
		return x, nil
	}
	x.marks = slices.Clip(x.marks) // others may have the index that this one goes on from
	waiting := x                   // what there is without the append at the end, if that is not whole
	lines := bufio.NewReaderSize(io.NewSectionReader(file, x.end, now.Size()-x.end), 64<<10)
	for offset := x.end; ; {
		line, err := readLine(lines)
		if err == io.EOF {
			break
		}
		if err != nil {
			return index{}, fmt.Errorf("line %d: %w", x.lines+1, err)
		}
		at := mark{offset, x.lines + 1}
		offset += int64(len(line))
		whole := line[len(line)-1] == '\n'
		if isBlank(line) {
			if whole && waiting.length == x.length {
				x.end, x.lines, x.tail = offset, x.lines+1, endOf(line)
				waiting = x
			} else {
				x.lines++
			}
			continue
		}
		if !whole && !readable(line) && !readable(line[:len(line)-1]) { // a damaged newline is no torn line
			break
		}
		if x.length%stride == 0 {
			x.marks = append(x.marks, at)
		}
		x.length, x.end, x.lines, x.last, x.bare = x.length+1, offset, x.lines+1, at, !whole
		x.tail = endOf(line)
		if !waits(line) {
			waiting = x
		}
	}
	return waiting, nil
}

// readable reports whether a line without its newline is all there.
func readable(line []byte) bool {
	form, _, err := splitLine(line)
	if err == nil {
		_, err = canister.Unmarshal(form)
	}
	return err == nil
}

// waits reports whether lines of the same append follow a line, without a look
// at its sum: damage is for who reads it.
func waits(line []byte) bool {
	line = bytes.TrimRight(line, " \t\r\n")
	if bytes.IndexByte(line[max(0, len(line)-maxDigits-3):], '+') < 0 {
		return false
	}
	for n := 1; n <= maxDigits; n++ {
		if differs(line, n) == 0 {
			return true
		}
	}
	return false
}

func endOf(line []byte) []byte { return bytes.Clone(line[max(0, len(line)-48):]) }

// readLine returns the next line, with its newline if it has one. What it
// returns is good until the next call, and io.EOF itself at the end.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err == nil || err == io.EOF && len(line) > 0 {
		return line, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	long := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.ReadSlice('\n')
		if long = append(long, line...); len(long) > maxLine {
			return nil, fmt.Errorf("the line is longer than %d bytes", maxLine)
		}
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	return long, nil
}
