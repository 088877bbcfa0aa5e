// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"fmt"
	"strings"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/invoker"
)

// Note is a remark about a tool that is offered.
type Note struct {
	Tool string // the tool's own name, as offered
	Text string // a clause
}

// isInvisibleInName is display.IsInvisible for a name, which has one line.
func isInvisibleInName(r rune) bool { return display.IsInvisible(r) || r == '\n' || r == '\t' }

// maxNamed is how many characters a note lists.
const maxNamed = 8

// cleanDefinition returns the definition without invisible characters in the name,
// title and description, and notes on the characters that were removed. The schemas
// stay as they are.
func cleanDefinition(d *invoker.Definition) (*invoker.Definition, []Note) {
	clean := *d
	var notes []Note
	sweep := func(what string, text *string, invisible func(rune) bool) {
		var taken []string
		if *text, taken = display.Without(*text, invisible); len(taken) == 0 {
			return
		}
		if len(taken) > maxNamed {
			taken = append(taken[:maxNamed], "and more")
		}
		notes = append(notes, Note{Text: fmt.Sprintf("invisible characters were removed from its %s: %s", what, strings.Join(taken, ", "))})
	}
	sweep("name", &clean.Name, isInvisibleInName)
	sweep("title", &clean.Title, isInvisibleInName)
	sweep("description", &clean.Description, display.IsInvisible)
	for i := range notes {
		notes[i].Tool = clean.Name
	}
	if clean.Name == d.Name && clean.Title == d.Title && clean.Description == d.Description {
		return d, nil
	}
	return &clean, notes
}
