// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"fmt"
	"strings"

	"github.com/consort-go/consort/internal/display"
)

// Status is the state of a conversation. Empty and zero fields are not shown.
type Status struct {
	Model          string
	Tokens         int64  // used so far
	Cost, Left     string // spent so far, and left of the budget, such as $0.12
	Starting, Away []string
}

// StatusLine returns the state as one line. With little room, first the names of servers
// become numbers, and then the tokens, a part of the model's name, the cost, and the
// servers that start are left out. Servers that are away, and the rest of the budget,
// stay.
func StatusLine(style Style, s Status) string {
	model := display.Line(s.Model)
	names := true
	var line []span
	for _, shorten := range []func(){
		func() {}, func() { names = false }, func() { s.Tokens = 0 }, func() { model = style.fit(model, 16) },
		func() { s.Cost = "" }, func() { s.Starting = nil }, func() { model = "" },
	} {
		shorten()
		line = style.status(s, model, names)
		if columnsOfSpans(line) <= style.width() {
			break
		}
	}
	return style.row(style.fitSpans(line)...)
}

// status returns the parts of a status line.
func (s Style) status(state Status, model string, names bool) []span {
	var line []span
	add := func(text string, with ink) {
		if text == "" {
			return
		}
		if len(line) > 0 {
			line = append(line, span{text: s.symbols().dot, ink: faintInk})
		}
		line = append(line, span{text: text, ink: with})
	}
	add(model, s.nameInk())
	if state.Tokens > 0 {
		add(Tokens(state.Tokens)+" tokens", faintInk)
	}
	add(display.Line(state.Cost), faintInk)
	if state.Left != "" {
		add(display.Line(state.Left)+" left", faintInk)
	}
	add(servers(state.Starting, "starting", names), s.codeInk())
	add(servers(state.Away, "away", names), s.badInk())
	return line
}

// servers describes servers, by name or by number.
func servers(all []string, what string, names bool) string {
	switch {
	case len(all) == 0:
		return ""
	case names:
		return display.Line(what + ": " + strings.Join(all, ", "))
	}
	return fmt.Sprintf("%d %s", len(all), what)
}

// Tokens returns a number of tokens, such as 950, 12.3k or 4.5M.
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// fitSpans returns spans cut to the width.
func (s Style) fitSpans(line []span) []span {
	room := s.width()
	var short []span
	for _, one := range line {
		if room <= 0 {
			break
		}
		one.text = s.fit(one.text, room)
		room -= columns(one.text)
		short = append(short, one)
	}
	return short
}
