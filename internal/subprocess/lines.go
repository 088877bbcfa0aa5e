// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// A LineReader reads the messages of the stdio transport: one per line, without
// newlines inside (MCP 2025-11-25, basic/transports § stdio). It holds at most one line
// of max bytes, and less of a line that cannot be a message.
type LineReader struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// NewLineReader returns a reader of lines of at most max bytes.
func NewLineReader(r io.Reader, max int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// Next returns the next line that is not blank, trimmed; it is valid until the next
// call. For a line of more than max bytes that looks like a message, it returns
// ErrMessageTooLarge, because the answer to a call may have been lost with it; any
// other long line is truncated. If the output ends without a newline, it returns
// ErrHalfMessage if a message had begun, otherwise ErrStdoutClosed.
func (l *LineReader) Next() ([]byte, error) {
	for {
		err := l.fill()
		line := trim(l.buf)
		switch {
		case err == nil && len(line) == 0:
			continue
		case err == nil:
			return line, nil
		case err == ErrMessageTooLarge:
			return nil, fmt.Errorf("sent a line of more than %d bytes: %w", l.max, err)
		case LooksLikeMessage(line) && !json.Valid(line):
			return nil, ErrHalfMessage
		case len(line) > 0:
			return line, nil // the next call returns the error
		default:
			return nil, ErrStdoutClosed
		}
	}
}

// fill reads one line into buf.
func (l *LineReader) fill() error {
	l.buf = l.buf[:0]
	if cap(l.buf) > 1<<20 {
		l.buf = nil // do not keep the memory of one large message
	}
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case len(l.buf)+len(part) <= l.max:
			l.buf = append(l.buf, part...)
		case LooksLikeMessage(trim(l.buf)) || len(l.buf) == 0 && LooksLikeMessage(trim(part)):
			return ErrMessageTooLarge
		}
		if err != bufio.ErrBufferFull {
			return err
		}
		if !LooksLikeMessage(trim(l.buf)) {
			l.buf = l.buf[:min(len(l.buf), maxTextLine+1)] // one more than is shown, so that it is marked as cut
		}
	}
}

// LooksLikeMessage reports whether a trimmed line begins like an object or a batch of
// objects. Many log lines begin with a word or a time in brackets.
func LooksLikeMessage(line []byte) bool {
	if batch, found := bytes.CutPrefix(line, []byte("[")); found {
		line = bytes.TrimSpace(batch)
		return len(line) == 0 || line[0] == '{'
	}
	return len(line) > 0 && line[0] == '{'
}

// trim removes white space and the byte order mark that .NET programs write first.
func trim(line []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
}
