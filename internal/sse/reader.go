// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"
)

// ErrTooLarge is wrapped by the error for an event that exceeds the limit of its
// reader.
var ErrTooLarge = errors.New("an event of the stream is too large")

// Event is one event of a stream.
type Event struct {
	// Name is the event's type; empty stands for "message".
	Name string
	// ID is the value that the client sends as Last-Event-ID when it reopens the
	// stream; empty if the event has none.
	ID string
	// Data is valid until the next call of [Reader.Next].
	Data []byte
	// Retry is how long the server asks the client to wait before it reopens the
	// stream; 0 if not given.
	Retry time.Duration
	// IsPartial is set if the stream ended before the event's blank line.
	IsPartial bool
}

// Reader reads the events of a stream. It is not safe for concurrent use.
type Reader struct {
	in     io.Reader
	limit  int // in bytes, for the data of one event and for one line
	buf    []byte
	start  int  // of the current line
	seen   int  // buf[start:seen] contains no line end
	skipLF bool // the previous line ended with CR
	begun  bool // a line has been read
	isCut  bool // the last line has no line end
	failed error

	data []byte
	name string // of the last event that had one
}

// The sizes of the buffers of a reader, in bytes.
const (
	firstBuffer = 4 << 10
	maxIdle     = 64 << 10 // how much a reader keeps while it waits for an event
)

// NewReader returns a reader that accepts at most limit bytes of data in one event,
// and in one line.
func NewReader(in io.Reader, limit int) *Reader {
	return &Reader{in: in, limit: limit, buf: buffers.Get().(*[firstBuffer]byte)[:0]}
}

// buffers has the first buffers of readers that were released.
var buffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

// Release ends the use of the reader, and of all that it has returned, so that another reader
// can have its buffer. It need not be called.
func (r *Reader) Release() {
	if cap(r.buf) == firstBuffer {
		buffers.Put((*[firstBuffer]byte)(r.buf[:firstBuffer]))
	}
	*r = Reader{}
}

// All reads the stream to its end, and returns the bytes that were not used for an event, of
// which there may be more than the limit. They are valid until Release.
func (r *Reader) All() ([]byte, error) {
	for r.failed == nil {
		r.buf = slices.Grow(r.buf, 1)
		n, err := r.in.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf, r.failed = r.buf[:len(r.buf)+n], err
	}
	if r.failed != io.EOF {
		return nil, r.failed
	}
	return r.Rest(), nil
}

// Peek returns the first byte of the stream that is neither white space nor part of a
// byte order mark, without consuming it. It helps to tell an event stream from other
// content.
func (r *Reader) Peek() (byte, error) {
	for at := 0; ; at++ {
		for at >= len(r.buf) {
			if r.failed != nil {
				return 0, r.failed
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

// Rest returns the bytes that the reader has read from the stream but not used for an
// event.
func (r *Reader) Rest() []byte {
	return bytes.TrimPrefix(r.buf[r.start:], []byte("\ufeff"))
}

// Next returns the next event that has data, an ID or a retry time. The error is io.EOF
// at the end of the stream, and otherwise the error of the stream or [ErrTooLarge]. If
// the stream ends within an event, Next returns the partial event before the error. At
// io.EOF it includes an unterminated last line; at another error it does not. An
// unterminated ID or retry time is left out, because it may be incomplete.
func (r *Reader) Next() (Event, error) {
	var e Event
	if r.data = r.data[:0]; cap(r.data) > maxIdle {
		r.data = nil
	}
	hasField, hasData := false, false
	for {
		line, err := r.line()
		switch {
		case errors.Is(err, ErrTooLarge):
			return Event{}, err
		case err != nil && !hasField:
			return Event{}, err
		case err != nil || len(line) == 0 && hasField:
			e.Data, e.IsPartial = r.data, err != nil
			return e, nil
		case len(line) == 0:
			e = Event{}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		if string(name) != "data" {
			hasField = r.set(&e, name, value) || hasField
			continue
		}
		if len(r.data)+len(value) >= r.limit {
			return Event{}, fmt.Errorf("%w (%d bytes are allowed)", ErrTooLarge, r.limit)
		}
		if hasData {
			r.data = append(r.data, '\n')
		}
		r.data, hasData, hasField = append(r.data, value...), true, true
	}
}

// set processes a field other than data, and reports whether it makes an event by
// itself.
func (r *Reader) set(e *Event, name, value []byte) bool {
	switch {
	case string(name) == "event":
		if string(value) != r.name { // most events have the name of the one before
			r.name = string(value)
		}
		e.Name = r.name
	case r.isCut:
	case string(name) == "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.ID = string(value)
			return len(value) > 0
		}
	case string(name) == "retry":
		ms, err := strconv.ParseUint(string(value), 10, 32)
		if e.Retry = time.Duration(ms) * time.Millisecond; err == nil && e.Retry <= time.Hour {
			return true
		}
		e.Retry = 0
	}
	return false // including comments and unknown fields
}

// line returns the next line without its end, which is LF, CR or CRLF.
func (r *Reader) line() ([]byte, error) {
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
		if r.failed == io.EOF && r.start < len(r.buf) {
			line := r.buf[r.start:]
			r.start, r.isCut = len(r.buf), true
			return r.first(line), nil
		}
		if r.failed != nil {
			return nil, r.failed
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// first removes the byte order mark from the first line.
func (r *Reader) first(line []byte) []byte {
	if !r.begun {
		r.begun = true
		return bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}

// fill reads more data, and stores the error of the stream in failed.
func (r *Reader) fill() error {
	if r.start == len(r.buf) && cap(r.buf) > maxIdle {
		r.buf, r.seen, r.start = make([]byte, 0, firstBuffer), 0, 0
	}
	if r.start > 0 {
		n := copy(r.buf, r.buf[r.start:])
		r.buf, r.seen, r.start = r.buf[:n], r.seen-r.start, 0
	}
	if len(r.buf) == cap(r.buf) {
		if len(r.buf) > r.limit {
			return fmt.Errorf("%w (%d bytes are allowed)", ErrTooLarge, r.limit)
		}
		r.buf = append(make([]byte, 0, 2*cap(r.buf)), r.buf...)
	}
	for range 100 { // as in bufio: a reader may return nothing several times
		n, err := r.in.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf = r.buf[:len(r.buf)+n]
		if r.failed = err; n > 0 || err != nil {
			return nil
		}
	}
	r.failed = io.ErrNoProgress
	return nil
}
