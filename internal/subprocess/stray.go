// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/textcut"
)

// Limits of the stdout lines that an error quotes because they are not messages.
const (
	maxStray     = 3
	maxStrayLine = 200 // bytes
)

// stray keeps the first lines of stdout that are not messages, for errors.
type stray struct {
	mu    sync.Mutex
	lines []string
	more  int
}

func (s *stray) add(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == maxStray {
		s.more++
		return
	}
	s.lines = append(s.lines, CleanLine(textcut.Bytes(string(line), maxStrayLine)))
}

// text returns the lines joined into one; empty if there are none.
func (s *stray) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.lines, " | ")
	if s.more > 0 {
		text += fmt.Sprintf(" | (%d more)", s.more)
	}
	return text
}

// A lineLimiter reports lines, at most maxLines per second.
type lineLimiter struct {
	report  func(line string)
	since   time.Time
	count   int // in the second that began at since
	skipped int
}

const maxLines = 10 // lines per second

func (m *lineLimiter) add(line []byte) {
	if m.report == nil {
		return
	}
	if now := time.Now(); now.Sub(m.since) >= time.Second {
		m.flush()
		m.since, m.count = now, 0
	}
	if m.count++; m.count > maxLines {
		m.skipped++
		return
	}
	m.report(CleanLine(textcut.Bytes(string(line), maxTextLine)))
}

// flush reports how many lines were left out.
func (m *lineLimiter) flush() {
	if m.skipped > 0 {
		m.report(fmt.Sprintf("(%d more lines)", m.skipped))
		m.skipped = 0
	}
}
