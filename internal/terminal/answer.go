// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"strings"
	"sync"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/rendering"
)

// answer is a message of the model that is rendered as it streams in. Finished lines
// are printed; the rest is shown above the lines about activity.
type answer struct {
	screen *Screen
	mu     sync.Mutex
	text   *rendering.Markdown
}

// newAnswer begins a message, which the caller must end.
func newAnswer(s *Screen) *answer {
	style := rendering.StyleFor(os.Getenv, s.width())
	style.Color = s.Results.On
	a := &answer{screen: s, text: rendering.NewMarkdown(style)}
	s.setTail(a.tail)
	return a
}

// tail returns the lines that are not finished.
func (a *answer) tail() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.Tail()
}

// write adds text without secrets: lines of the output could divide them.
func (a *answer) write(text string) {
	a.mu.Lock()
	lines := a.text.Write(text)
	a.mu.Unlock()
	a.print(lines)
}

func (a *answer) end() {
	a.screen.setTail(nil)
	a.mu.Lock()
	lines := a.text.Finish()
	a.mu.Unlock()
	a.print(lines)
}

func (a *answer) print(lines []string) {
	if len(lines) > 0 {
		a.screen.Print(strings.Join(lines, "\n") + "\n")
	}
}

// Rendered returns Markdown as text for standard output: rendered on a terminal, and
// otherwise as it is written. It removes secrets before markup can divide them.
func (s *Screen) Rendered(text string) string {
	if !s.Results.terminal {
		return display.Text(text)
	}
	style := rendering.StyleFor(os.Getenv, s.ResultColumns())
	style.Color = s.Results.On
	return strings.Join(rendering.RenderMarkdown(style, s.redacted(text)), "\n")
}
