// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/terminal"
)

// Aside is a tool that is not offered.
type Aside struct {
	Ensemble string `json:"ensemble"`
	Tool     string `json:"tool"`
	Reason   string `json:"reason"`
}

// Away is an ensemble that could not be reached.
type Away struct {
	Ensemble string `json:"ensemble"`
	Error    string `json:"error"`
}

func asides(all []ensemble.Aside) []Aside {
	list := []Aside{}
	for _, a := range all {
		list = append(list, Aside(a))
	}
	return list
}

func aways(all []ensemble.Away) []Away {
	list := []Away{}
	for _, a := range all {
		list = append(list, Away{a.Ensemble, a.Err.Error()})
	}
	return list
}

// listing builds a list for people, with a section for each ensemble.
type listing struct {
	paint terminal.Palette
	text  strings.Builder
}

// add adds a section for an ensemble: its rows, and its items that were set aside.
func (l *listing) add(name string, rows [][]string, aside []Aside) {
	var lines []string
	for _, a := range aside {
		if a.Ensemble == name {
			lines = append(lines, l.paint.Faint(fmt.Sprintf("  %s set aside: %s", display.Line(a.Tool), display.Line(a.Reason))))
		}
	}
	if len(rows)+len(lines) == 0 {
		return
	}
	fmt.Fprintln(&l.text, l.paint.Bold(display.Text(name)))
	l.text.WriteString(terminal.Table(rows, namesFirst(l.paint)))
	for _, line := range lines {
		fmt.Fprintln(&l.text, line)
	}
}

// or returns the list, or nothing if the list is empty.
func (l *listing) or(nothing string) string {
	if l.text.Len() == 0 {
		return nothing
	}
	return l.text.String()
}

// NoteAway notes the servers that are away.
func NoteAway(screen *terminal.Screen, away []Away) {
	for _, a := range away {
		screen.Note("%s", screen.Notes.Bad("away: ")+display.Text(a.Error))
	}
}

// namesFirst paints the first column of a table as names.
func namesFirst(paint terminal.Palette) func(row, column int, cell string) string {
	return func(_, column int, cell string) string {
		if column == 0 {
			return paint.Name(cell)
		}
		return cell
	}
}
