// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
	"time"
)

// sseEvent is one server-sent event (WHATWG HTML, § 9.2.6).
type sseEvent struct {
	name, id string
	data     []byte
	retry    time.Duration // 0 when not said
}

// eventReader reads server-sent events, holding at most limit bytes of one.
type eventReader struct {
	r     *bufio.Reader
	limit int
}

// next returns the next event that holds anything. The end of the stream is
// io.EOF, with what there is of an event that it cuts off.
func (r *eventReader) next() (sseEvent, error) {
	var e sseEvent
	size, any := 0, false
	for {
		line, err := r.line(&size)
		if err != nil {
			e.set(line)
			return e, err
		}
		if len(line) == 0 {
			if any {
				e.data = bytes.TrimSuffix(e.data, []byte("\n"))
				return e, nil
			}
			size = 0
			continue
		}
		any = e.set(line) || any
	}
}

// line reads up to the end of a line, which it takes off. With an error it
// returns what there is of one.
func (r *eventReader) line(size *int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if *size += len(part); *size > r.limit {
			return nil, &tooLargeError{r.limit}
		}
		line = append(line, part...)
		if err == nil {
			return bytes.TrimRight(line, "\r\n"), nil
		}
		if err != bufio.ErrBufferFull {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

// set takes one field; false means that there is none that counts.
func (e *sseEvent) set(line []byte) bool {
	name, value, _ := strings.Cut(string(line), ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "event":
		e.name = value
	case "data":
		e.data = append(append(e.data, value...), '\n')
	case "id":
		e.id = value
	case "retry":
		ms, err := strconv.Atoi(value)
		if err != nil || ms < 0 || ms > int(time.Hour/time.Millisecond) {
			return false
		}
		e.retry = time.Duration(ms) * time.Millisecond
	default:
		return false // a comment, or a field of the future
	}
	return true
}
