// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/rendering"
)

// quiet is how long the keyboard must rest after a question appeared before a key answers
// it. It is longer than the gaps between the keys of a person who is typing something
// else, and shorter than it takes to read the question.
const quiet = 600 * time.Millisecond

// question is a question to the person. It is answered by a key of its own, or by a line
// of text.
type question struct {
	render  func(rendering.Style) []string // the rows of the question; all must have been on the screen before a choice allows
	choices []choice                       // empty if the answer is a line of text
	prompt  string                         // of the line
	answers chan reply

	rows  []string // rendered
	first int      // the first row on the screen
	page  int      // how many rows fit on the screen
	seen  int      // how many rows, from the top, have been on the screen
	open  bool     // keys count
	press int      // key presses before that
	paste bool     // a paste is going on
	line  *input   // the text of the answer; nil until it is needed
	why   *choice  // the choice whose reason is being typed
	hint  string
}

// choice is a key that answers a question.
type choice struct {
	key    string
	label  string
	allows bool   // it needs the whole question to have been seen
	reason string // the prompt for a text that belongs to the choice; empty if there is none
}

// reply is the answer to a question: the key of a choice, with or without a text, or a
// line of text. The error is io.EOF if the person gives no answer.
type reply struct {
	key, text string
	err       error
}

// rested says that no key was pressed for a while after so many others.
type rested struct {
	question *question
	press    int
}

// ask shows a question.
func (m *model) ask(q *question) tea.Cmd {
	m.question = q
	m.search, m.menu = nil, nil
	if len(q.choices) == 0 {
		prompt := q.prompt
		if columns(prompt) > m.columns()/2 { // it has its own lines
			question, text := q.render, prompt
			q.render = func(style rendering.Style) []string { return append(question(style), wrapAll(text, style.Width)...) }
			prompt = "  > "
		}
		q.line = newInput(prompt)
	}
	m.layOut(q)
	return q.rest()
}

// rest begins to wait for the keyboard to rest.
func (q *question) rest() tea.Cmd {
	press := q.press
	return tea.Tick(quiet, func(time.Time) tea.Msg { return rested{q, press} })
}

// layOut wraps the question for the screen. Rows that were seen in another width do
// not count, unless it was all of them.
func (m *model) layOut(q *question) {
	whole := q.seen > 0 && q.seen >= len(q.rows)
	q.rows = q.render(m.style)
	q.first, q.seen = 0, 0
	if whole {
		q.seen = len(q.rows)
	}
	if q.line != nil {
		q.line.resize(m.columns(), m.height/3)
	}
}

// view returns the rows of the question, and the place of the cursor in them if a line is
// being typed. Rows of the question count as seen if the whole view fits the window.
func (q *question) view(m *model) ([]string, *tea.Cursor) {
	below, cursor := q.keys(m)
	if q.hint != "" {
		below = append(below, wrap(m.paint.Bad("  "+q.hint), m.columns())...)
	}
	const others = 4 // a row above the question, its place, the status, and the window's last row
	q.page = max(1, m.height-others-len(below))
	q.first = max(0, min(q.first, len(q.rows)-q.page))
	end := min(q.first+q.page, len(q.rows))
	rows := append([]string{""}, q.rows[q.first:end]...)
	if q.first <= q.seen && len(below)+others < m.height {
		q.seen = max(q.seen, end)
	}
	if q.first > 0 || end < len(q.rows) {
		rows = append(rows, m.paint.Faint(fit(fmt.Sprintf("  rows %d to %d of %d: Space and PgDn show more, PgUp less", q.first+1, end, len(q.rows)), m.columns())))
	}
	if cursor != nil {
		cursor.Y += len(rows)
	}
	return append(rows, below...), cursor
}

// keys returns the rows with the ways to answer, and the place of the cursor in them.
func (q *question) keys(m *model) ([]string, *tea.Cursor) {
	switch {
	case !q.open: // keys do not count yet
		return []string{m.paint.Faint("  …")}, nil
	case q.line != nil:
		return q.line.rows()
	}
	return m.choicesOf(q), nil
}

// choicesOf returns the rows with the keys that answer a question.
func (m *model) choicesOf(q *question) []string {
	rows := []string{"  run it?"}
	for _, c := range q.choices {
		text := "  " + c.key + " " + c.label
		if at := len(rows) - 1; columns(rows[at]+text) <= m.columns() {
			rows[at] += text
		} else {
			rows = append(rows, "  "+text)
		}
	}
	for i, row := range rows {
		rows[i] = m.paint.Bold(row)
	}
	return rows
}

// onQuestion processes input while a question is open.
func (m *model) onQuestion(msg tea.Msg) tea.Cmd {
	q := m.question
	if !q.open {
		switch msg.(type) {
		case tea.PasteStartMsg:
			q.paste = true
		case tea.PasteEndMsg, tea.PasteMsg:
			q.paste = false
		}
		q.press++
		return q.rest()
	}
	q.hint = ""
	switch msg := msg.(type) {
	case tea.PasteMsg:
		if q.line != nil {
			q.line.paste(msg.Content)
		} else {
			q.hint = "A paste does not answer this."
		}
	case tea.KeyPressMsg:
		switch {
		case q.scroll(msg.String()):
		case q.line != nil:
			return m.typeAnswer(q, msg)
		default:
			m.choose(q, msg.String())
		}
	}
	return nil
}

// scroll moves the part of a question that is on the screen, and reports whether the key
// does so. While a line is typed, only the keys for pages do.
func (q *question) scroll(key string) bool {
	switch {
	case key == "pgdown", q.line == nil && (key == "space" || key == "ctrl+f"):
		q.first += q.page
	case key == "pgup", q.line == nil && (key == "b" || key == "ctrl+b"):
		q.first -= q.page
	case q.line == nil && (key == "down" || key == "enter"):
		q.first++
	case q.line == nil && key == "up":
		q.first--
	case q.line == nil && key == "home":
		q.first = 0
	default:
		return false
	}
	return true
}

// choose answers a question if the key does.
func (m *model) choose(q *question, key string) {
	for i, c := range q.choices {
		switch {
		case !strings.EqualFold(c.key, key):
		case c.allows && q.seen < len(q.rows):
			q.hint = "Only a part of this was on the screen: Space shows the rest."
			return
		case c.reason != "":
			q.why, q.line = &q.choices[i], newInput(c.reason)
			q.line.resize(m.columns(), m.height/3)
			return
		default:
			m.answer(reply{key: c.key})
			return
		}
	}
	if key == "ctrl+d" {
		m.answer(reply{err: io.EOF})
	}
}

// typeAnswer processes a key for the line of an answer.
func (m *model) typeAnswer(q *question, msg tea.KeyPressMsg) tea.Cmd {
	switch key := msg.String(); {
	case key == "esc" && q.why != nil:
		q.why, q.line = nil, nil
	case key == "ctrl+d" && q.line.empty():
		m.answer(reply{err: io.EOF})
	case key == "enter" && !q.line.continues():
		if q.seen < len(q.rows) && q.why == nil {
			q.hint = "Only a part of this was on the screen: PgDn shows the rest."
			break
		}
		given := reply{text: q.line.value()}
		if q.why != nil {
			given.key = q.why.key
		}
		m.answer(given)
	case key != "enter":
		return q.line.update(msg)
	}
	return nil
}

// answer ends the question, which stays in the transcript.
func (m *model) answer(given reply) {
	q := m.question
	m.question = nil
	said := given.text
	for _, c := range q.choices {
		if c.key == given.key {
			said = strings.TrimSpace(c.label + " " + given.text)
		}
	}
	if given.err != nil {
		said = "(no answer)"
	}
	m.keepQuestion(q, "→ "+display.Line(said))
	q.answers <- given
}

// withdraw removes a question that needs no answer any more.
func (m *model) withdraw(q *question) {
	if m.question == q {
		m.question = nil
		m.keepQuestion(q, "→ (withdrawn)")
	}
}

// keepQuestion adds a question and its answer to the transcript.
func (m *model) keepQuestion(q *question, answer string) {
	m.paper.endLine(m.columns())
	if len(q.rows) > 0 {
		m.paper.space()
		m.paper.rows = append(m.paper.rows, q.rows...)
	}
	m.say("  " + m.paint.Faint(strings.TrimSpace(strings.TrimSpace(q.prompt)+" "+answer)))
}
