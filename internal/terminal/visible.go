// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"regexp"
	"strings"

	"github.com/consort-go/consort/internal/display"
)

// sgr is a change of colours, the only sequence that others may write.
var sgr = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// Visible makes all that could control the terminal visible, except colours.
func Visible(text string) string {
	var safe strings.Builder
	for at := sgr.FindStringIndex(text); at != nil; at = sgr.FindStringIndex(text) {
		safe.WriteString(display.Text(text[:at[0]]) + text[at[0]:at[1]])
		text = text[at[1]:]
	}
	return safe.String() + display.Text(text)
}

// visibleLine makes a line of a log visible like [Visible], and like [Screen.PrintJSON] if it is JSON.
func visibleLine(line string) string {
	if strings.HasPrefix(line, "{") {
		return display.EscapeJSON(line)
	}
	return Visible(line)
}
