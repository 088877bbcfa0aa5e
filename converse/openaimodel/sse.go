// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errEventTooLarge is returned for an event beyond the limit.
var errEventTooLarge = errors.New("an event of the stream is larger than MaxEventBytes")

// eventReader reads server-sent events (WHATWG HTML, section 9.2). It departs
// from the standard in one point: an event that the end of the stream cuts off
// from its blank line counts, as some servers end that way; whether the answer
// is whole is for its content to say.
type eventReader struct {
	in     io.Reader
	limit  int // bytes of one event's data, and of one line
	buf    []byte
	start  int  // of the line that is being read
	seen   int  // up to where that line holds no end
	skipLF bool // the line before ended with CR
	ended  bool
	begun  bool // a line has been read

	name string
	data []byte
}

func newEventReader(in io.Reader, limit int) *eventReader {
	return &eventReader{in: in, limit: limit, buf: make([]byte, 0, 4<<10)}
}

// peek returns the first byte that is neither space nor a byte order mark,
// without taking it: it tells an event stream from other things.
func (r *eventReader) peek() (byte, error) {
	for at := 0; ; at++ {
		for at >= len(r.buf) {
			if r.ended {
				return 0, io.EOF
			}
			if err := r.fill(); err != nil {
				return 0, err
			}
		}
		switch b := r.buf[at]; b {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
		default:
			return b, nil
		}
	}
}

// rest returns what has been read and not taken.
func (r *eventReader) rest() []byte {
	return bytes.TrimPrefix(r.buf[r.start:], []byte("\ufeff"))
}

// next returns the next event that has data: its name, mostly empty, and its
// data, good until the next call. The error is io.EOF at the end.
func (r *eventReader) next() (name string, data []byte, err error) {
	r.name, r.data = "", r.data[:0]
	has := false
	for {
		line, err := r.line()
		if err == io.EOF && has {
			return r.name, r.data, nil
		}
		if err != nil {
			return "", nil, err
		}
		if len(line) == 0 {
			if has {
				return r.name, r.data, nil
			}
			r.name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if len(r.data)+len(value) >= r.limit {
				return "", nil, fmt.Errorf("%w (%d)", errEventTooLarge, r.limit)
			}
			if has {
				r.data = append(r.data, '\n')
			}
			r.data, has = append(r.data, value...), true
		case "event":
			r.name = string(value)
		}
	}
}

// line returns the next line without its end, which is LF, CR or CRLF. The
// last one needs none.
func (r *eventReader) line() ([]byte, error) {
	for {
		if r.skipLF && r.start < len(r.buf) {
			if r.buf[r.start] == '\n' {
				r.start++
			}
			r.skipLF = false
		}
		r.seen = max(r.seen, r.start)
		if i := bytes.IndexAny(r.buf[r.seen:], "\r\n"); i >= 0 {
			end := r.seen + i
			line := r.buf[r.start:end]
			r.skipLF = r.buf[end] == '\r'
			r.start, r.seen = end+1, end+1
			return r.first(line), nil
		}
		r.seen = len(r.buf)
		if r.ended {
			if r.start == len(r.buf) {
				return nil, io.EOF
			}
			line := r.buf[r.start:]
			r.start = len(r.buf)
			return r.first(line), nil
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// first takes the byte order mark off the first line.
func (r *eventReader) first(line []byte) []byte {
	if !r.begun {
		r.begun = true
		return bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}

// fill reads more, making room for it first.
func (r *eventReader) fill() error {
	if r.start > 0 {
		n := copy(r.buf, r.buf[r.start:])
		r.buf, r.seen, r.start = r.buf[:n], r.seen-r.start, 0
	}
	if len(r.buf) == cap(r.buf) {
		if len(r.buf) > r.limit {
			return fmt.Errorf("%w (%d)", errEventTooLarge, r.limit)
		}
		r.buf = append(make([]byte, 0, 2*cap(r.buf)), r.buf...)
	}
	for range 100 { // as in bufio: a reader may return nothing for a while
		n, err := r.in.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if err == io.EOF {
			r.ended = true
			return nil
		}
		if n > 0 || err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
