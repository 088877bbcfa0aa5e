// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"fmt"
	"io"
	"slices"
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

// steady is how long something must stay on the screen until it counts as seen: rows of a
// question, and a choice before Enter confirms it. It is many frames, and longer than the
// gap between the last letter of a word and Enter.
const steady = 250 * time.Millisecond

// question is a question to the person. It is answered by a choice, which a key makes and
// Enter confirms.
type question struct {
	render  func(rendering.Style) []string // the rows of the question; all must have been on the screen before a choice allows
	ask     string                         // precedes the choices
	choices []choice
	form    *form // of a server; nil without one
	answers chan reply

	rows  []string // rendered
	first int      // the first row on the screen
	page  int      // how many rows fit on the screen
	end   int      // the row after the last one on the screen
	shown int      // how often other rows came on the screen
	whole bool     // the rows on the screen are whole
	timed int      // the value of shown for which look waits
	seen  int      // how many rows, from the top, have been on the screen
	open  bool     // keys count
	press int      // key presses before that
	paste bool     // a paste is going on
	pick  *choice  // the choice that Enter confirms
	ready bool     // pick was on the screen for long enough
	line  *input   // the reason of the answer; nil unless it is being typed
	why   *choice  // the choice whose reason it is
	fills bool     // the form is being filled in
	hint  string
}

// choice is an answer to a question.
type choice struct {
	key    string
	label  string
	allows bool   // it needs the whole question to have been seen
	reason string // the prompt for a text that belongs to the choice; empty if there is none
	fills  bool   // it opens the form instead of answering
}

// reply is the answer to a question: the key of a choice, with or without a text. The
// error is io.EOF if the person gives no answer.
type reply struct {
	key, text string
	err       error
}

// rested says that no key was pressed for a while after so many others.
type rested struct {
	question *question
	press    int
}

// looked says that the same rows were on the screen for a while.
type looked struct {
	question *question
	shown    int
}

// picked says that a choice was on the screen for a while.
type picked struct {
	question *question
	press    int
}

// begin shows a question.
func (q *question) begin(m *model) tea.Cmd {
	m.question = q
	m.search, m.menu = nil, nil
	q.layOut(m)
	return q.rest()
}

// rest makes keys no answer until the keyboard has rested, also after another program had
// the terminal. Without a question it does nothing.
func (q *question) rest() tea.Cmd {
	if q == nil {
		return nil
	}
	q.press++
	q.open, q.pick, q.hint = false, nil, ""
	press := q.press
	return tea.Tick(quiet, func(time.Time) tea.Msg { return rested{q, press} })
}

// layOut wraps the question for the screen. Rows that were seen in another width do
// not count, unless it was all of them.
func (q *question) layOut(m *model) {
	whole := q.seen > 0 && q.seen >= len(q.rows)
	q.rows = q.render(m.style)
	q.first, q.seen = 0, 0
	q.shown++
	if whole {
		q.seen = len(q.rows)
	}
	if q.line != nil {
		q.line.resize(m.columns(), m.height/3)
	}
}

// look counts the rows on the screen as seen after they have stayed there.
func (q *question) look() tea.Cmd {
	if q == nil || !q.whole || q.timed == q.shown || q.seen >= q.end {
		return nil
	}
	q.timed = q.shown
	shown := q.shown
	return tea.Tick(steady, func(time.Time) tea.Msg { return looked{q, shown} })
}

// looked counts rows as seen.
func (m *model) looked(msg looked) {
	if q := m.question; q == msg.question && q.shown == msg.shown && q.whole && q.first <= q.seen {
		q.seen = max(q.seen, q.end)
	}
}

// isSeen reports whether all of the question has been on the screen, which is still wide
// enough for it.
func (q *question) isSeen(m *model) bool {
	return q.seen >= len(q.rows) && m.columns() < m.width
}

// isShown reports whether all rows that were not seen yet are on the screen.
func (q *question) isShown() bool { return q.whole && q.first <= q.seen && q.end >= len(q.rows) }

// confirms reports whether Enter confirms the choice: it has been on the screen for long
// enough, and so has the question if the choice allows something.
func (q *question) confirms(m *model) bool { return q.ready && (!q.pick.allows || q.isSeen(m)) }

// view returns the rows of the question, and the place of the cursor in them if a line is
// being typed. The rows are whole if the view fits the window.
func (q *question) view(m *model) ([]string, *tea.Cursor) {
	below, cursor := q.keys(m)
	below = append(below, q.hints(m)...)
	others := 3 // a row above the question, the status, and the window's last row
	if len(q.rows)+others+len(below) > m.height {
		others += len(q.place(m, len(q.rows), len(q.rows), true))
	}
	q.page = max(1, m.height-others-len(below))
	first := max(0, min(q.first, len(q.rows)-q.page))
	end := min(first+q.page, len(q.rows))
	whole := q.page+len(below)+others <= m.height && m.columns() < m.width
	if first != q.first || end != q.end || whole != q.whole {
		q.first, q.end, q.whole = first, end, whole
		q.shown++
	}
	rows := append([]string{""}, q.rows[q.first:end]...)
	if q.first > 0 || end < len(q.rows) {
		rows = append(rows, q.place(m, q.first+1, end, q.seen >= end)...)
	}
	if cursor != nil {
		cursor.Y += len(rows)
	}
	return append(rows, below...), cursor
}

// place returns the rows that number the rows on the screen, and name the keys that scroll.
func (q *question) place(m *model, first, last int, moves bool) []string {
	text := fmt.Sprintf("rows %d to %d of %d", first, last, len(q.rows))
	switch {
	case !moves:
	case q.fills || q.line != nil:
		text += ": PgDn, PgUp scroll"
	default:
		text += ": Space shows more, PgUp less"
	}
	return hang("  ", m.paint.Faint(text), m.columns())
}

// hints returns the rows that explain why a key had no effect.
func (q *question) hints(m *model) []string {
	if q.hint == "" {
		return nil
	}
	return hang("  ", m.paint.Bad(q.hint), m.columns())
}

// keys returns the rows with the ways to answer, and the place of the cursor in them. While
// keys do not count, they are the text in the input.
func (q *question) keys(m *model) ([]string, *tea.Cursor) {
	switch {
	case !q.open:
		rows := []string{m.paint.Faint("  …")}
		if m.input.empty() {
			return rows, nil
		}
		m.input.prompt = "· "
		typed, cursor := m.input.rows()
		if cursor != nil {
			cursor.Y += len(rows)
		}
		return append(rows, typed...), cursor
	case q.line != nil:
		return q.line.rows()
	case q.fills:
		return q.form.rows(m, max(4, m.height/2-1-len(q.hints(m)))), nil
	}
	return q.choiceRows(m), nil
}

// choiceRows returns the rows with the keys that answer a question.
func (q *question) choiceRows(m *model) []string {
	rows := []string{"  " + q.ask}
	for _, c := range q.choices {
		text := "  " + c.key + " " + c.label
		if at := len(rows) - 1; columns(rows[at]+text) <= m.columns() {
			rows[at] += text
		} else {
			rows = append(rows, "  "+text)
		}
	}
	if q.pick != nil {
		text := q.pick.label
		if q.confirms(m) {
			text += ": Enter confirms, Esc takes it back"
		}
		rows = append(rows, hang("  → ", text, m.columns())...)
	}
	for i, row := range rows {
		rows[i] = m.paint.Bold(row)
	}
	return rows
}

// typed processes input while a question is there. Before it is open, all text goes to
// the input.
func (q *question) typed(m *model, msg tea.Msg) tea.Cmd {
	switch msg.(type) {
	case tea.PasteStartMsg:
		q.paste = true
	case tea.PasteEndMsg, tea.PasteMsg:
		q.paste = false
	}
	if !q.open {
		return tea.Batch(m.compose(msg), q.rest())
	}
	q.hint = ""
	if q.fills {
		return q.fill(m, msg)
	}
	switch msg := msg.(type) {
	case tea.PasteMsg:
		if q.line == nil {
			return tea.Batch(m.compose(msg), q.rest())
		}
		q.line.paste(msg.Content)
	case tea.KeyPressMsg:
		switch {
		case q.line != nil && q.scroll(msg.String()):
		case q.line != nil:
			return q.typeAnswer(m, msg)
		default:
			return q.choose(m, msg)
		}
	}
	return nil
}

// fill processes input for the form. After the last field, all answers are part of the
// question, which can be sent when they have been on the screen.
func (q *question) fill(m *model, msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyPressMsg); ok {
		switch name := key.String(); {
		case name == "esc":
			q.leaveForm(m, false)
			return nil
		case (name == "pgup" || name == "pgdown") && q.scroll(name):
			return nil
		}
	}
	cmd, done, err := q.form.typed(msg)
	if err != nil {
		q.hint = display.Line(err.Error())
	}
	if done {
		q.leaveForm(m, true)
	}
	return cmd
}

// leaveForm shows the choices again. The answers can be sent once the last field was
// filled in, and as long as all of them are valid.
func (q *question) leaveForm(m *model, done bool) {
	_, err := q.form.content()
	q.fills = false
	q.form.complete = (done || q.form.complete) && err == nil
	q.ask, q.choices = "answer it?", unfilled
	if q.form.complete {
		q.ask, q.choices = "send it?", filled
	}
	if done && err != nil {
		q.hint = display.Line(err.Error())
	}
	q.seen = 0
	q.layOut(m)
}

// compose changes the text in the input, which is not sent while there is a question.
func (m *model) compose(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		m.input.paste(msg.Content)
	case tea.KeyPressMsg:
		if msg.String() == "enter" {
			m.input.continues()
			return nil
		}
		return m.input.update(msg)
	}
	return nil
}

// scroll moves the part of a question that is on the screen, and reports whether the key
// does so. It moves down over rows that were seen only. While a line is typed, only the
// keys for pages do.
func (q *question) scroll(key string) bool {
	switch {
	case key == "pgdown", q.line == nil && (key == "space" || key == "ctrl+f"):
		q.first += q.page
	case key == "pgup", q.line == nil && key == "ctrl+b":
		q.first -= q.page
	case q.line == nil && key == "down":
		q.first++
	case q.line == nil && key == "up":
		q.first--
	case q.line == nil && key == "home":
		q.first = 0
	default:
		return false
	}
	q.first = max(0, min(q.first, q.seen, len(q.rows)-q.page))
	return true
}

// choose processes a key for the choices. A key that is neither a choice nor a command is
// a text for the input: with the choice before it, it goes to the
// input, and the keyboard has to rest again.
func (q *question) choose(m *model, msg tea.KeyPressMsg) tea.Cmd {
	key, chosen := msg.String(), q.pick
	switch {
	case key == "enter" && chosen != nil:
		if q.confirms(m) {
			q.answer(m, reply{key: chosen.key})
		}
		return nil
	case chosen == nil && q.scroll(key), key == "enter":
		return nil
	case key == "esc":
		q.pick = nil
		return nil
	case key == "ctrl+d":
		q.answer(m, reply{err: io.EOF})
		return nil
	case chosen == nil:
		if i := slices.IndexFunc(q.choices, func(c choice) bool { return strings.EqualFold(c.key, key) }); i >= 0 {
			return q.take(m, &q.choices[i])
		}
	}
	if msg.Text == "" {
		return nil
	}
	if chosen != nil {
		m.input.paste(chosen.key)
	}
	return tea.Batch(m.compose(msg), q.rest())
}

// take makes a choice, which Enter confirms, or begins to ask for its reason.
func (q *question) take(m *model, c *choice) tea.Cmd {
	switch {
	case c.allows && m.columns() >= m.width:
		q.hint = "The window is too narrow to show this."
	case c.allows && !q.isSeen(m) && !q.isShown():
		q.hint = "Only a part of this was on the screen: Space shows the rest."
	case c.fills:
		q.fills = true
		return q.form.focus(m.columns())
	case c.reason != "":
		q.why, q.line = c, newInput(c.reason)
		q.line.resize(m.columns(), m.height/3)
	default:
		q.press++
		q.pick, q.ready = c, false
		press := q.press
		return tea.Tick(steady, func(time.Time) tea.Msg { return picked{q, press} })
	}
	return nil
}

// typeAnswer processes a key for the reason of an answer.
func (q *question) typeAnswer(m *model, msg tea.KeyPressMsg) tea.Cmd {
	switch key := msg.String(); {
	case key == "esc":
		q.why, q.line = nil, nil
	case key == "ctrl+d" && q.line.empty():
		q.answer(m, reply{err: io.EOF})
	case key == "enter" && !q.line.continues():
		q.answer(m, reply{key: q.why.key, text: q.line.value()})
	case key != "enter":
		return q.line.update(msg)
	}
	return nil
}

// answer ends the question, which stays in the transcript.
func (q *question) answer(m *model, given reply) {
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
	q.keep(m, "→ "+display.Line(said))
	q.answers <- given
}

// withdraw removes a question that needs no answer any more.
func (q *question) withdraw(m *model) {
	if m.question == q {
		m.question = nil
		q.keep(m, "→ (withdrawn)")
	}
}

// keep adds a question and its answer to the transcript.
func (q *question) keep(m *model, answer string) {
	m.paper.endLine(m.columns())
	if len(q.rows) > 0 {
		m.paper.space()
		m.paper.rows = append(m.paper.rows, q.rows...)
	}
	m.say("  " + m.paint.Faint(answer))
}
