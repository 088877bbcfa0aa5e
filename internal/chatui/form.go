// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"
	"charm.land/lipgloss/v2"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/forms"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
)

// form is the form of a server's question. One field is on the screen at a time.
type form struct {
	entries []*entry
	at      int
	clean   func(text string) string // makes a text of the server one line without secrets

	complete bool // all fields have answers, which can be sent
}

// entry is a field of a form and its answer: a text, or the positions of choices.
type entry struct {
	forms.Field
	choices []string // labels; empty if the field is a text
	text    string
	// preset is the default as the control shows it, in one line. While text equals it, the person
	// has not changed the default, which is then sent unchanged.
	preset  string
	chosen  int // without a choice if it is len(choices)-1 and skips is set
	several []int
	skips   bool      // the last of the choices leaves the field out
	control huh.Field // for the width; nil until it is shown
	width   int
}

// newForm returns a form with the defaults entered. clean removes secrets from the texts
// of the server.
func newForm(fields []forms.Field, clean func(string) string) *form {
	f := &form{clean: func(text string) string { return display.Line(clean(text)) }}
	for _, field := range fields {
		f.entries = append(f.entries, newEntry(field, f.clean))
	}
	return f
}

func newEntry(field forms.Field, clean func(string) string) *entry {
	e := &entry{Field: field}
	given := field.Choices()
	for _, c := range given {
		e.choices = append(e.choices, clean(c.Label()))
	}
	if field.IsBoolean() {
		e.choices = []string{"yes", "no"}
	}
	if !field.Required && len(e.choices) > 0 && !field.IsList() {
		e.skips, e.choices = true, append(e.choices, "(no answer)")
		e.chosen = len(e.choices) - 1
	}
	switch value := field.Default.(type) {
	case nil:
	case bool:
		e.chosen = 1
		if value {
			e.chosen = 0
		}
	case []any:
		for i, c := range given {
			for _, one := range value {
				if one == c.Value {
					e.several = append(e.several, i)
				}
			}
		}
		if len(given) == 0 {
			e.text = forms.Text(value)
		}
	default:
		e.text = forms.Text(value)
		for i, c := range given {
			if value == c.Value {
				e.chosen = i
			}
		}
	}
	e.preset = e.text
	huh.NewInput().Value(&e.preset).Blur() // which sets the value
	e.text = e.preset
	return e
}

// fitControl makes the control that the person edits, for a width.
func (e *entry) fitControl(width int) {
	e.width = width
	keys := huh.NewDefaultKeyMap()
	keys.Select.Filter.Unbind() // letters and Esc have other meanings here
	keys.MultiSelect.Filter.Unbind()
	dress := func(control huh.Field) huh.Field {
		return control.WithTheme(huh.ThemeFunc(theme)).WithKeyMap(keys).WithWidth(width)
	}
	switch {
	case len(e.choices) == 0:
		example := e.Example()
		if e.IsList() {
			example = "several, with commas between them"
		}
		input := huh.NewInput().Placeholder(example)
		dress(input)
		e.control = input.Value(&e.text) // scrolls to the end of the text in this width
	case e.IsList():
		e.control = dress(huh.NewMultiSelect[int]().Options(e.options(width - 8)...).Value(&e.several))
	default:
		e.control = dress(huh.NewSelect[int]().Options(e.options(4 * width)...).Value(&e.chosen))
	}
}

// head returns the rows above the control: the label and the description, cut to at most
// most rows. The question shows both in full.
func (e *entry) head(m *model, clean func(string) string, most int) []string {
	title := m.paint.Bold(fit(clean(e.Label()), 2*m.columns()-20))
	if e.Required {
		title += m.paint.Bold(" (required)")
	}
	rows := hang("  ", title, m.columns())
	if e.Description == "" {
		return rows
	}
	about := hang("  ", m.paint.Faint(fit(clean(e.Description), 4*m.columns())), m.columns())
	if room := max(1, most-len(rows)); len(about) > room {
		about = append(about[:room-1], fit(about[room-1]+strings.Repeat(" ", m.columns()), m.columns()))
	}
	return append(rows, about...)
}

// view returns the rows of the control, at most most of them if it can be scrolled.
func (e *entry) view(most int) []string {
	switch {
	case len(e.choices) == 0:
	case e.IsList():
		// Without a height, huh v2.0.3 scrolls the current option out of view.
		e.control.WithHeight(min(len(e.choices), most))
	default:
		e.control.WithHeight(0)
		if strings.Count(e.control.View(), "\n") >= most {
			e.control.WithHeight(most)
		}
	}
	rows := wrapAll(strings.TrimRight(e.control.View(), "\n "), e.width)
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	return rows
}

// options returns the choices with labels of at most most columns. Labels are told apart,
// because huh identifies options by them.
func (e *entry) options(most int) []huh.Option[int] {
	var options []huh.Option[int]
	seen := map[string]bool{}
	for i, label := range e.choices {
		if label = fit(label, most); seen[label] {
			mark := fmt.Sprintf(" (%d)", i+1)
			label = fit(label, most-len(mark)) + mark
		}
		seen[label] = true
		options = append(options, huh.NewOption(label, i))
	}
	return options
}

// theme is huh's base theme in the terms of the rest of the screen.
func theme(dark bool) *huh.Styles {
	styles := huh.ThemeBase(dark)
	for _, of := range []*huh.FieldStyles{&styles.Focused, &styles.Blurred} {
		of.Base = lipgloss.NewStyle().PaddingLeft(2)
		of.TextInput.Placeholder = lipgloss.NewStyle().Faint(true)
		of.SelectedPrefix = lipgloss.NewStyle().SetString("[x] ")
		of.ErrorIndicator = lipgloss.NewStyle()
	}
	return styles
}

// value returns the answer; nil leaves the field out.
func (e *entry) value() (any, error) {
	choices := e.Choices()
	switch {
	case e.IsList() && len(choices) > 0:
		list := []any{}
		for _, i := range e.several {
			list = append(list, choices[i].Value)
		}
		if len(list) == 0 && !e.Required {
			return nil, nil
		}
		return list, e.Check(list)
	case e.skips && e.chosen == len(e.choices)-1:
		return nil, nil
	case e.IsBoolean():
		return e.chosen == 0, nil
	case len(choices) > 0:
		return choices[e.chosen].Value, nil
	}
	switch text := strings.TrimSpace(e.text); {
	case e.Default != nil && e.text == e.preset:
		return e.Default, nil
	case text != "":
		return e.Parse(text)
	case e.Required:
		return nil, errors.New("this is required")
	}
	return nil, nil
}

// focus gives the keys to the current field, for a width.
func (f *form) focus(width int) tea.Cmd {
	e := f.entries[f.at]
	e.fitControl(width)
	return e.control.Focus()
}

// typed processes input. Done reports that the last field was filled in; err says what is
// wrong with the current one.
func (f *form) typed(msg tea.Msg) (cmd tea.Cmd, done bool, err error) {
	current := f.entries[f.at]
	key, _ := msg.(tea.KeyPressMsg)
	switch key.String() {
	case "enter", "tab":
		current.control.Blur()
		if _, err := current.value(); err != nil {
			return current.control.Focus(), false, err
		}
		if f.at == len(f.entries)-1 {
			f.at = 0
			return nil, true, nil
		}
		f.at++
		return f.focus(current.width), false, nil
	case "shift+tab":
		current.control.Blur()
		f.at = max(0, f.at-1)
		return f.focus(current.width), false, nil
	}
	_, cmd = current.control.Update(msg)
	return cmd, false, nil
}

// content returns the answers.
func (f *form) content() (map[string]any, error) {
	content := map[string]any{}
	for _, e := range f.entries {
		value, err := e.value()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.clean(e.Label()), err)
		}
		if value != nil {
			content[e.Name] = value
		}
	}
	return content, nil
}

// rows returns the rows of the current field, about most of them if it can be scrolled.
func (f *form) rows(m *model, most int) []string {
	e := f.entries[f.at]
	if e.width != m.columns() {
		e.fitControl(m.columns())
		e.control.Focus()
	}
	const least = 3 // rows of the control
	rows := e.head(m, f.clean, most-least)
	rows = append(rows, e.view(max(least, most-len(rows)))...)
	about := "Enter next"
	if e.IsList() && len(e.choices) > 0 {
		about = "Space selects, " + about
	}
	if f.at > 0 {
		about += ", Shift-Tab back"
	}
	if len(f.entries) > 1 {
		about = fmt.Sprintf("field %d of %d: ", f.at+1, len(f.entries)) + about
	}
	return append(rows, hang("  ", m.paint.Faint(about+", Esc leaves"), m.columns())...)
}

// overview returns the rows with all fields.
func (f *form) overview(style rendering.Style, paint terminal.Palette) []string {
	var rows []string
	for _, e := range f.entries {
		text := f.clean(e.Label())
		if e.Description != "" {
			text += ": " + f.clean(e.Description)
		}
		rows = append(rows, hang("  - ", paint.Faint(text), style.Width)...)
	}
	return rows
}

// summary returns the rows with all answers.
func (f *form) summary(style rendering.Style, paint terminal.Palette) []string {
	var rows []string
	for _, e := range f.entries {
		text := paint.Faint("(no answer)")
		if value, err := e.value(); err == nil && value != nil {
			text = display.Text(forms.Breaks.Replace(e.shown(value)))
		}
		rows = append(rows, hang("  ", paint.Bold(f.clean(e.Label()))+": "+text, style.Width)...)
	}
	return rows
}

// shown returns an answer as the person has seen it.
func (e *entry) shown(value any) string {
	switch {
	case len(e.choices) == 0 || e.IsBoolean():
		return forms.Text(value)
	case !e.IsList():
		return e.choices[e.chosen]
	}
	var labels []string
	for _, i := range e.several {
		labels = append(labels, e.choices[i])
	}
	return strings.Join(labels, ", ")
}
