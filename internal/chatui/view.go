// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
)

// maxCalls bounds the lines about running calls.
const maxCalls = 6

// View implements [tea.Model].
func (m *model) View() tea.View {
	var view tea.View
	view.KeyboardEnhancements.ReportAlternateKeys = true // Ctrl-C is a key of any layout
	if m.height == 0 {
		return view
	}
	rows, cursor := m.visibleRows()
	for len(rows) < m.rows { // see clearScreen
		rows = append(rows, "")
	}
	m.rows = len(rows)
	view.Content = strings.Join(rows, "\n")
	// Each print makes another view, because the renderer leaves the cursor where rows were
	// printed if the view is that of the last frame. A color that is reset shows nothing.
	view.Content += fmt.Sprintf("\x1b[38;2;%d;%d;%dm\x1b[m", m.prints>>16&0xff, m.prints>>8&0xff, m.prints&0xff)
	view.Cursor = cursor
	return view
}

// visibleRows returns the rows that are redrawn, and the place of the cursor in them.
func (m *model) visibleRows() ([]string, *tea.Cursor) {
	if m.quitting { // the last rows stay on the screen
		return append(m.tail(m.room()), ""), nil
	}
	below, cursor := m.below()
	if more := len(below) - m.height; more > 0 {
		below = below[more:]
		if cursor != nil {
			cursor.Y = max(0, cursor.Y-more)
		}
	}
	above := m.tail(min(maxLive, m.height-1-len(below)))
	if cursor != nil {
		cursor.Y += len(above)
	}
	return append(above, below...), cursor
}

// tail returns the last rows of the transcript, with the answer that streams in. What follows
// an image waits until it is drawn: the image needs the room.
func (m *model) tail(most int) []string {
	if pictures := m.paper.pictures; len(pictures) > 0 {
		rows := m.paper.rows[:pictures[0].row+1]
		return slices.Clone(rows[max(0, len(rows)-max(0, most)):])
	}
	rows := slices.Clone(m.paper.rows)
	if m.paper.partial != "" {
		rows = append(rows, wrap(terminal.Visible(m.paper.partial), m.columns())...)
	}
	rows = append(rows, m.turn.rest...)
	return rows[max(0, len(rows)-max(0, most)):]
}

// room returns how many rows of the transcript fit on the screen.
func (m *model) room() int {
	if m.quitting {
		return max(1, m.height-2)
	}
	below, _ := m.below()
	return max(0, min(maxLive, m.height-1-len(below))-len(m.turn.rest))
}

// below returns the rows under the transcript: running calls, the question or the input,
// and the status.
func (m *model) below() ([]string, *tea.Cursor) {
	rows := m.running()
	if m.question != nil {
		asked, cursor := m.question.view(m)
		if cursor != nil {
			cursor.Y += len(rows)
		}
		return append(append(rows, asked...), m.statusLine()), cursor
	}
	rows = append(rows, "")
	if m.search != nil {
		typed, cursor := m.search.view(m)
		cursor.Y += len(rows)
		return append(rows, typed, m.statusLine()), cursor
	}
	m.input.prompt = "> "
	if !m.ready { // Enter does not send
		m.input.prompt = "· "
	}
	typed, cursor := m.input.rows()
	if cursor != nil {
		cursor.Y += len(rows)
	}
	rows = append(rows, typed...)
	rows = append(rows, m.menu.rows(m)...)
	if m.hint != "" {
		rows = append(rows, wrap(m.paint.Faint("  "+m.hint), m.columns())...)
	}
	return append(rows, m.statusLine()), cursor
}

// running returns the rows about current activity.
func (m *model) running() []string {
	now := m.now()
	var rows []string
	if m.question != nil {
		return rows
	}
	for i, c := range m.turn.calls {
		if i == maxCalls {
			rows = append(rows, m.paint.Faint(fmt.Sprintf("  … and %d more", len(m.turn.calls)-i)))
			break
		}
		rows = append(rows, rendering.RunningCall(m.style, c.invocation, m.frame, now.Sub(c.since), c.progress))
	}
	if t := m.turn.thinking; t != nil {
		return append(rows, rendering.Thinking(m.style, m.frame, now.Sub(t.since), t.text.String()))
	}
	if what, since := m.activity(); what != "" {
		rows = append(rows, m.paint.Faint(fit("  "+rendering.Spinner(m.style, m.frame)+" "+what+"  "+rendering.Elapsed(now.Sub(since)), m.columns())))
	}
	return rows
}

// statusLine returns the last row: the model, the tokens and the cost, and the
// servers that are starting or away.
func (m *model) statusLine() string {
	cost := ""
	if m.cost > 0 {
		cost = m.cost.String() + " " + m.status.Currency
	}
	return rendering.StatusLine(m.style, rendering.Status{
		Model: m.status.Model, Tokens: m.tokens, Cost: cost, Left: m.status.Budget,
		Starting: m.status.Starting, Away: m.status.Away,
	})
}

// columns returns how many columns a text takes.
func columns(text string) int { return ansi.StringWidthWc(text) }
