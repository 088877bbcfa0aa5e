// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// readMessages passes the messages on stdout to Read, and after the last one drains
// stdout, so that a server that is asked to exit is not blocked.
func (p *process) readMessages() {
	p.readErr = p.handOver()
	close(p.stdoutDone)
	_, _ = io.Copy(io.Discard, p.stdout)
}

// handOver returns the reason why no more messages follow.
func (p *process) handOver() error {
	noise := &noiseMeter{report: p.noise}
	defer noise.flush()
	lines := newLineReader(p.stdout, p.maxMessage)
	for {
		line, err := lines.next()
		if err != nil {
			return err
		}
		messages, rest := decodeLine(line)
		if len(rest) > 0 {
			noise.add(rest)
			p.stray.add(rest)
			if answer := unreadableAnswer(rest); answer != nil {
				messages = append(messages, answer)
			}
		}
		for _, msg := range messages {
			select {
			case p.messages <- msg:
				p.delivered.Add(1)
			case <-p.lostCh:
				return nil
			}
		}
	}
}

// A lineReader reads the messages of the stdio transport: one per line, without
// newlines inside (MCP 2025-11-25, basic/transports § stdio). It holds at most one line
// of max bytes, and less of a line that cannot be a message.
type lineReader struct {
	r   *bufio.Reader
	max int
	buf []byte
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// next returns the next line that is not blank, trimmed; it is valid until the next
// call. For a line of more than max bytes that looks like a message, it returns
// errMessageTooLarge, because the answer to a call may have been lost with it; any
// other long line is truncated. If the output ends without a newline, it returns
// errHalfMessage if a message had begun, otherwise errStdoutClosed.
func (l *lineReader) next() ([]byte, error) {
	for {
		err := l.fill()
		line := wire.Trim(l.buf)
		switch {
		case err == nil && len(line) == 0:
			continue
		case err == nil:
			return line, nil
		case err == errMessageTooLarge:
			return nil, fmt.Errorf("sent a line of more than %d bytes: %w", l.max, err)
		case looksLikeMessage(line) && !json.Valid(line):
			return nil, errHalfMessage
		case len(line) > 0:
			return line, nil // the next call returns the error
		default:
			return nil, errStdoutClosed
		}
	}
}

// fill reads one line into buf.
func (l *lineReader) fill() error {
	l.buf = l.buf[:0]
	if cap(l.buf) > 1<<20 {
		l.buf = nil // do not keep the memory of one large message
	}
	for {
		part, err := l.r.ReadSlice('\n')
		switch {
		case len(l.buf)+len(part) <= l.max:
			l.buf = append(l.buf, part...)
		case looksLikeMessage(wire.Trim(l.buf)) || len(l.buf) == 0 && looksLikeMessage(wire.Trim(part)):
			return errMessageTooLarge
		}
		if err != bufio.ErrBufferFull {
			return err
		}
		if !looksLikeMessage(wire.Trim(l.buf)) {
			l.buf = l.buf[:min(len(l.buf), maxTextLine)]
		}
	}
}

// looksLikeMessage reports whether a trimmed line begins like an object or a batch.
func looksLikeMessage(line []byte) bool {
	return len(line) > 0 && (line[0] == '{' || line[0] == '[')
}

// decodeLine returns the messages in a line, and text in it that is not a message, such
// as a banner or a log record that another thread wrote into the same line.
func decodeLine(line []byte) (messages []jsonrpc.Message, noise []byte) {
	for rest := line; len(rest) > 0; {
		if !looksLikeMessage(rest) {
			return messages, rest
		}
		value, size := rest, len(rest)
		if !json.Valid(rest) { // the usual line with one value is not copied
			decoder := json.NewDecoder(bytes.NewReader(rest))
			if decoder.Decode((*json.RawMessage)(&value)) != nil {
				return messages, rest
			}
			size = int(decoder.InputOffset())
		}
		found := decodeValue(value)
		if found == nil {
			noise = value
		}
		messages = append(messages, found...)
		rest = wire.Trim(rest[size:])
	}
	return messages, noise
}

// decodeValue returns the message, the messages of a batch (MCP 2025-03-26, basic §
// Batching; its requests are answered one by one), or nil.
func decodeValue(value json.RawMessage) (messages []jsonrpc.Message) {
	parts := []json.RawMessage{value}
	if value[0] == '[' {
		parts = nil
		if json.Unmarshal(value, &parts) != nil {
			return nil
		}
	}
	for _, part := range parts {
		if msg, err := jsonrpc.DecodeMessage(part); err == nil {
			messages = append(messages, msg)
		}
	}
	return messages
}

// A noiseMeter reports skipped lines, at most maxNoise per second.
type noiseMeter struct {
	report  func(line string)
	since   time.Time
	count   int // in the second that began at since
	skipped int
}

const maxNoise = 10 // lines per second

func (m *noiseMeter) add(line []byte) {
	if m.report == nil {
		return
	}
	if now := time.Now(); now.Sub(m.since) >= time.Second {
		m.flush()
		m.since, m.count = now, 0
	}
	if m.count++; m.count > maxNoise {
		m.skipped++
		return
	}
	m.report(cleanLine(string(line[:min(len(line), maxTextLine)])))
}

// flush reports how many lines were left out.
func (m *noiseMeter) flush() {
	if m.skipped > 0 {
		m.report(fmt.Sprintf("(%d more lines)", m.skipped))
		m.skipped = 0
	}
}
