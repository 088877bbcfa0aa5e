// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/display"
)

// Thinking returns the line of a model that is reasoning: a frame of the spinner, how long
// it has been, and the end of the reasoning so far.
func Thinking(style Style, frame int, elapsed time.Duration, text string) string {
	head := fmt.Sprintf("  %s thinking  %s", Spinner(style, frame), Elapsed(elapsed))
	const most = 1 << 10
	last := display.Line(text[max(0, len(text)-most):])
	room := style.width() - columns(head) - 2
	if room < 8 || last == "" {
		return style.row(span{text: style.fit(head, style.width()), ink: faintInk})
	}
	if columns(last) > room {
		last = style.symbols().more + lastColumns(last, room-columns(style.symbols().more))
	}
	return style.row(span{text: head + "  ", ink: faintInk}, span{text: last, ink: ink{faint: true, italic: true}})
}

// lastColumns returns the end of a line, at most some columns of it.
func lastColumns(text string, most int) string {
	for text != "" && columns(text) > most {
		value, _ := cluster(text)
		text = text[len(value):]
	}
	return text
}

// FoldedReasoning returns the line that replaces reasoning that is complete. Number
// identifies it to the person; 0 shows none.
func FoldedReasoning(style Style, number int, elapsed time.Duration) string {
	mark := style.symbols().folded
	if number > 0 {
		mark += fmt.Sprint(" ", number)
	}
	return style.row(span{text: style.fit(fmt.Sprintf("  %s thought for %s", mark, Elapsed(elapsed)), style.width()), ink: faintInk})
}

// Reasoning returns the whole of a model's reasoning.
func Reasoning(style Style, text string) []string {
	lines := wrap([]span{plain(strings.TrimSpace(text), ink{faint: true, italic: true})}, style.width()-4)
	for i, line := range lines {
		lines[i] = append([]span{{text: "  " + style.symbols().bar + " ", ink: faintInk}}, line...)
	}
	return style.rows(lines)
}
