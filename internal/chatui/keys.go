// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
)

// typed processes a key press or a paste.
func (m *model) typed(msg tea.Msg) tea.Cmd {
	m.hint = ""
	key, pressed := msg.(tea.KeyPressMsg)
	if pressed {
		switch key.String() {
		case "ctrl+c":
			m.interrupt()
			return nil
		case "ctrl+z":
			return suspend(m.rows)
		}
	}
	if m.question != nil {
		return m.question.typed(m, msg)
	}
	if m.search != nil && m.search.typed(m, msg) {
		return nil
	}
	if paste, ok := msg.(tea.PasteMsg); ok {
		m.menu = nil
		m.input.paste(paste.Content)
		return nil
	}
	if !pressed {
		return nil
	}
	if m.chord {
		m.chord = false
		if name := key.String(); name == "ctrl+e" || name == "e" {
			return m.edit()
		}
	}
	return m.press(key)
}

// press processes a key for the input.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if name == "tab" || name == "shift+tab" {
		return m.tab(name == "tab")
	}
	m.menu = nil
	switch name {
	case "enter":
		return m.enter()
	case "ctrl+d":
		if m.input.empty() {
			m.leave()
			return nil
		}
	case "ctrl+x":
		m.chord = true
		m.hint = "Ctrl-X: Ctrl-E edits the text in an editor"
		return nil
	case "ctrl+r":
		m.search = &search{at: len(m.history.lines)}
		return nil
	case "ctrl+o":
		m.unfold()
		return nil
	case "up", "ctrl+p":
		if m.input.onFirstRow() {
			m.input.step(m.history.back(m.input.value()))
			return nil
		}
	case "down", "ctrl+n":
		if m.input.onLastRow() {
			m.input.step(m.history.forth())
			return nil
		}
	}
	return m.input.update(key)
}

// step shows another line of the history.
func (in *input) step(line string, ok bool) {
	if ok {
		in.set(line)
	}
}

// enter sends the text, if a message is waited for.
func (m *model) enter() tea.Cmd {
	if m.input.continues() {
		return nil
	}
	text := m.input.value()
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case !m.ready:
		m.hint = "Not sent yet: press Enter again when the answer is complete, or Ctrl-C to cancel it."
		return nil
	}
	select {
	case m.lines <- line{text: text}:
	default: // the message before was not taken yet
		return nil
	}
	m.ready = false
	m.input.set("")
	m.history.remember(text)
	m.history.rest()
	m.paper.endLine(m.columns())
	m.paper.space()
	m.paper.rows = append(m.paper.rows, m.echo(text)...)
	if said := strings.TrimSpace(text); !strings.HasPrefix(said, "/") || strings.HasPrefix(said, "//") { // no command
		m.turn.begin(m.now())
	}
	if path, text := m.history.path, m.clean(text); path != "" {
		return func() tea.Msg {
			if err := store(path, text); err != nil {
				return failure{"the line history cannot be written: " + err.Error()}
			}
			return nil
		}
	}
	return nil
}

// failure is a problem that the person should know.
type failure struct{ text string }

// leave ends the conversation, if a message is waited for.
func (m *model) leave() {
	if !m.ready {
		m.hint = "An answer is under way: Ctrl-C cancels it."
		return
	}
	select {
	case m.lines <- line{err: io.EOF}:
		m.ready = false
	default:
	}
}

// interrupt tells the conversation about Ctrl-C. At the input it also clears the text,
// which stays in the history of this process.
func (m *model) interrupt() {
	m.search, m.menu, m.chord = nil, nil, false
	if m.question == nil && m.ready && !m.input.empty() {
		m.history.remember(m.input.value())
		m.history.rest()
		m.input.set("")
		if m.options.Cleared != nil {
			m.options.Cleared()
		}
	}
	m.options.Interrupt()
}

// unfold prints the newest call or reasoning that was not unfolded yet.
func (m *model) unfold() {
	m.paper.endLine(m.columns())
	if t := m.turn.thinking; t != nil {
		m.paper.rows = append(m.paper.rows, rendering.Reasoning(m.style, t.text.String())...)
		return
	}
	f, ok := m.folds.unfold()
	switch {
	case !ok:
		m.hint = "There is nothing more to unfold; /history lists all."
	case f.call == nil:
		m.paper.rows = append(m.paper.rows, rendering.Reasoning(m.style, f.text)...)
	default:
		m.paper.rows = append(m.paper.rows, rendering.CallDetails(m.style, *f.call)...)
		for _, inner := range f.made {
			m.paper.rows = append(m.paper.rows, rendering.CallDetails(m.style, inner)...)
		}
	}
}

// typed processes input while the history is searched. It reports false if the search
// is over and the input goes on with the key.
func (s *search) typed(m *model, msg tea.Msg) bool {
	key, ok := msg.(tea.KeyPressMsg)
	if paste, pasted := msg.(tea.PasteMsg); pasted {
		s.text += strings.Join(strings.Fields(paste.Content), " ")
		m.history.find(s, len(m.history.lines)-1)
		return true
	}
	if !ok {
		return true
	}
	switch name := key.String(); {
	case name == "ctrl+r":
		if !m.history.find(s, s.at-1) {
			m.hint = "nothing older"
		}
	case name == "ctrl+g", name == "esc":
		m.search = nil
	case name == "backspace":
		if text := []rune(s.text); len(text) > 0 {
			s.text, s.at = string(text[:len(text)-1]), len(m.history.lines)
			m.history.find(s, len(m.history.lines)-1)
		}
	case key.Text != "":
		s.text += key.Text
		m.history.find(s, min(s.at, len(m.history.lines)-1))
	default:
		if s.at < len(m.history.lines) {
			m.input.set(m.history.lines[s.at])
		}
		m.search = nil
		return name == "enter"
	}
	return true
}

// view returns the row of a search, and the cursor in it.
func (s *search) view(m *model) (string, *tea.Cursor) {
	found := ""
	if s.at < len(m.history.lines) {
		found = terminal.Visible(strings.Join(strings.Fields(m.history.lines[s.at]), " "))
	}
	head := fit("search: "+terminal.Visible(s.text), m.columns()/2)
	row := fit(head+m.paint.Faint("  → "+found), m.columns())
	cursor := tea.NewCursor(columns(head), 0)
	cursor.Shape = tea.CursorBar
	return row, cursor
}
