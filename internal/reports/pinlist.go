// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/linediff"
	"github.com/consort-go/consort/internal/terminal"
)

// PinList is the JSON output of consort pins and consort pins accept.
type PinList struct {
	Pins []Pin `json:"pins"`
}

// Pin is one pinned tool, in the JSON form of the command pins.
type Pin struct {
	Ensemble    string       `json:"ensemble"`
	Tool        string       `json:"tool"`
	File        string       `json:"file"`
	Pinned      time.Time    `json:"pinned,omitzero"`       // zero for a new tool
	Fingerprint string       `json:"fingerprint,omitempty"` // empty for a new tool
	Seen        time.Time    `json:"seen,omitzero"`         // when the changed definition, or the new tool, was first seen
	Pending     string       `json:"pending,omitempty"`     // the fingerprint of that definition
	Changes     []changeJSON `json:"changes"`
}

// changeJSON is the JSON form of a [pins.Change].
type changeJSON struct {
	Part   string `json:"part"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Add adds the pins of a file.
func (l *PinList) Add(file string, entries []pins.Entry) {
	for _, e := range entries {
		pin := Pin{
			Ensemble: e.Ensemble, Tool: e.Tool, File: file, Pinned: e.Pinned,
			Fingerprint: e.Fingerprint, Changes: []changeJSON{},
		}
		if e.Pending != nil {
			pin.Seen, pin.Pending = e.Pending.Seen, e.Pending.Fingerprint
		}
		for _, c := range e.Changes() {
			pin.Changes = append(pin.Changes, changeJSON(c))
		}
		l.Pins = append(l.Pins, pin)
	}
}

// Text renders the list for people, grouped by ensemble, followed by the changes and the command that accepts
// them.
func (l *PinList) Text(paint terminal.Palette, accept string) string {
	if len(l.Pins) == 0 {
		return "nothing is pinned yet: tools are pinned when they are first listed, for example by consort tools\n"
	}
	var rows [][]string
	var changes strings.Builder
	for _, pin := range l.Pins {
		state := "as pinned on " + pin.Pinned.Local().Format(time.DateOnly)
		if len(pin.Changes) > 0 {
			what := "changed"
			state = "changed since " + pin.Pinned.Local().Format(time.DateOnly)
			if pin.Pinned.IsZero() {
				what, state = "new", "new since "+pin.Seen.Local().Format(time.DateOnly)
			}
			fmt.Fprintf(&changes, "\n%s %s %s\n  %s\n%s", paint.Bad("✗"), paint.Name(pin.name()), paint.Faint(what+", first seen on "+pin.Seen.Local().Format(time.DateOnly)), paint.Faint(pin.Pending), pin.diff(paint))
		}
		rows = append(rows, []string{display.Line(pin.Ensemble), display.Line(pin.Tool), state})
	}
	list := terminal.Table(rows, func(row, column int, cell string) string {
		switch {
		case column == 1:
			return paint.Name(cell)
		case column == 2 && len(l.Pins[row].Changes) > 0:
			return paint.Bad(cell)
		}
		return cell
	})
	if changes.Len() == 0 {
		return list
	}
	return list + changes.String() + "\naccept a change or a new tool with: " + accept + "\n"
}

// AcceptedText renders the pins that were accepted, for people.
func (l *PinList) AcceptedText(paint terminal.Palette) string {
	if len(l.Pins) == 0 {
		return "there are no changes to accept\n"
	}
	var b strings.Builder
	for _, pin := range l.Pins {
		fmt.Fprintf(&b, "%s %s accepted\n%s", paint.Good("✓"), paint.Name(pin.name()), pin.diff(paint))
	}
	return b.String()
}

func (p *Pin) name() string { return display.Line(p.Ensemble) + " " + display.Line(p.Tool) }

// diff renders each part that has changed.
func (p *Pin) diff(paint terminal.Palette) string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "  %s\n", c.Part)
		for _, line := range linediff.Lines(c.Before, c.After) {
			shown := "    " + display.Text(line) + "\n"
			switch line[0] {
			case '+':
				shown = paint.Good(shown)
			case '-':
				shown = paint.Bad(shown)
			}
			b.WriteString(shown)
		}
	}
	return b.String()
}
