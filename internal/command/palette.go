// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// palette holds the colours for one output, or none.
type palette struct {
	terminal                     bool
	on                           bool // colours
	good, bad, faint, name, bold func(a ...any) string
}

// paletteFor returns colours for a terminal, unless the user disabled them: see
// https://no-color.org.
func paletteFor(file *os.File) palette {
	terminal := isTerminal(file)
	on := terminal && os.Getenv("NO_COLOR") == ""
	paint := func(attributes ...color.Attribute) func(a ...any) string {
		c := color.New(attributes...)
		if on {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c.SprintFunc()
	}
	return palette{
		terminal: terminal,
		on:       on,
		good:     paint(color.FgGreen),
		bad:      paint(color.FgRed),
		faint:    paint(color.Faint),
		name:     paint(color.FgCyan),
		bold:     paint(color.Bold),
	}
}

// isTerminal reports whether file is a terminal that supports more than plain lines.
func isTerminal(file *os.File) bool {
	return term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}
