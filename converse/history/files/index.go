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
	"sync"

	"github.com/consort-go/consort/canister"
)

const (
	stride  = 64  // canisters between two marks
	indexes = 256 // conversations whose index is remembered
	// maxLine is the length of the longest line: a canister and its sum.
	maxLine = canister.MaxLine + 64
	// pageSize divides the size of the pages that systems write.
	pageSize = 4096
)

// index records where the canisters are in a history.jsonl. It is immutable: a longer
// file has a new index.
type index struct {
	file   os.FileInfo
	length int    // number of canisters
	end    int64  // after the last line that belongs to a canister
	lines  int    // number of lines in the file up to end, including blank ones
	last   mark   // of the last canister
	tail   []byte // the bytes before end, to recognize the file
	bare   bool   // the last line lacks its newline
	marks  []mark // of the canisters 0, stride, 2*stride...
}

// mark is the place of a line.
type mark struct {
	offset int64
	line   int // from 1
}

// fits reports whether x is the index of the beginning of the file.
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

// scan returns the index of a file. It continues from x if x is the index of the file's
// beginning.
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
	x.marks = slices.Clip(x.marks) // others may share the marks of x
	waiting := x                   // the result without an incomplete append at the end
	var torn, ended bool           // whether a line after waiting is torn, and is followed by the last of its append
	lines := newLines(file, x.end, now.Size())
	defer lines.release()
	for offset := x.end; ; {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return index{}, fmt.Errorf("line %d: %w", x.lines+1, err)
		}
		if ended { // a crash tears only the last append: this is damage, which readers find
			waiting, torn, ended = x, false, false
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
		if !whole && !readable(line) && !readable(line[:len(line)-1]) { // a damaged newline does not make a line incomplete
			break
		}
		x.add(at, line)
		torn = torn || waiting.end > 0 && isTorn(line, at.offset) // the first append was on the disk before the folder had its name
		switch {
		case waits(line) || torn && waitsTorn(line):
		case torn:
			ended = true
		default:
			waiting = x
		}
	}
	return waiting, nil
}

// add adds a line with a canister. The index must not share its marks.
func (x *index) add(at mark, line []byte) {
	if x.length%stride == 0 {
		x.marks = append(x.marks, at)
	}
	x.length, x.lines, x.last = x.length+1, at.line, at
	x.end, x.bare = at.offset+int64(len(line)), line[len(line)-1] != '\n'
	x.tail = endOf(line)
}

// isTorn reports whether a line at an offset of the file has zeros where a disk has not written a
// page. They end with the page. No line is written with a zero, and a changed bit makes one of a
// space, but not several in a row, and not at the beginning.
func isTorn(line []byte, offset int64) bool {
	for end := int(pageSize - offset%pageSize); end < len(line); end += pageSize {
		if line[end] != 0 && line[end-1] == 0 && (end == 1 || line[end-2] == 0) {
			return true
		}
	}
	return false
}

// waitsTorn is waits for a line whose sum may be incomplete. If its plus is missing too, the
// line counts as the last of its append.
func waitsTorn(line []byte) bool {
	end, hasEnd := bytes.CutSuffix(bytes.TrimRight(line, " \t\r\n"), []byte(`"}`))
	rest := bytes.TrimRight(end, "0123456789")
	return hasEnd && len(rest) < len(end) && bytes.HasSuffix(rest, []byte("+"))
}

// readable reports whether a line without its newline is complete.
func readable(line []byte) bool {
	form, _, err := splitLine(line)
	if err == nil {
		_, err = canister.Unmarshal(form)
	}
	return err == nil
}

// waits reports whether lines of the same append follow a line. It does not verify the
// sum, because readers detect damage.
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

// grown returns the index after an append of lines, whose sizes are given, at its end. The
// index must not be bare. It still has the FileInfo of the shorter file: scan compares the
// tail.
func (x index) grown(lines []byte, sizes []int) index {
	x.marks = slices.Clip(x.marks) // others may share the marks of x
	for _, size := range sizes {
		x.last = mark{x.end, x.lines + 1}
		if x.length%stride == 0 {
			x.marks = append(x.marks, x.last)
		}
		x.length, x.lines, x.end = x.length+1, x.lines+1, x.end+int64(size)
	}
	x.tail = endOf(lines)
	return x
}

// lines reads the lines of a part of a file.
type lines struct{ buffer *bufio.Reader }

// buffers are used again, because most reads are of a few short lines.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// newLines returns the lines between two offsets. The caller must call release.
func newLines(file *os.File, from, to int64) lines {
	buffer := buffers.Get().(*bufio.Reader)
	buffer.Reset(io.NewSectionReader(file, from, to-from))
	return lines{buffer}
}

// release ends the use of the lines, also of the last one that next has returned.
func (l lines) release() {
	if l.buffer != nil {
		l.buffer.Reset(nil)
		buffers.Put(l.buffer)
	}
}

// next returns the next line, including its newline if it has one. The result is
// valid until the next call. At the end the error is io.EOF itself.
func (l lines) next() ([]byte, error) {
	r := l.buffer
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
