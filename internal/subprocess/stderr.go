// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bufio"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/consort-go/consort/internal/textcut"
)

const (
	maxTail     = 64 << 10 // bytes of stderr to keep
	maxTextLine = 4 << 10  // bytes of one line passed to a callback
)

// tail keeps the end of the text written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements [io.Writer]. To keep this cheap, it drops old text only when it holds
// twice the limit.
func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, text...)
	if over := len(t.kept) - maxTail; over > maxTail {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(text), nil
}

// text returns the end of the text, cleaned.
func (t *tail) text() string {
	t.mu.Lock()
	kept := string(t.kept[max(0, len(t.kept)-maxTail):])
	t.mu.Unlock()
	lines := strings.Split(strings.TrimRight(kept, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = CleanLine(line)
	}
	return strings.Join(lines, "\n")
}

// lastWords summarizes the text for an error, in one line.
func (t *tail) lastWords() string { return lastWords(t.text()) }

// readStderr drains stderr to its end, so that the server never blocks on it.
func (p *Process) readStderr() {
	defer close(p.stderrDone)
	r := bufio.NewReaderSize(io.TeeReader(p.errout, &p.tail), maxTextLine)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 && p.command.Stderr != nil {
			// A line that is too long gets the mark of a cut: package redact looks there for
			// pieces of secrets.
			p.command.Stderr(CleanLine(textcut.Bytes(strings.TrimRight(string(line), "\r\n"), maxTextLine-1)))
		}
		for err == bufio.ErrBufferFull { // the rest of a long line
			_, err = r.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

// escapes matches the sequences that programs use to colour their output (ECMA-48 CSI).
var escapes = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]")

// CleanLine makes foreign text fit for logs and errors: no colours, no control or
// invisible characters, valid UTF-8.
func CleanLine(line string) string {
	line = escapes.ReplaceAllString(strings.TrimRight(line, "\r\n"), "")
	line = strings.ToValidUTF8(line, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		default:
			return -1
		}
	}, line)
}
