// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// Palette holds the colours for one output, or none.
type Palette struct {
	terminal                     bool
	On                           bool // colours
	Good, Bad, Faint, Name, Bold func(a ...any) string
}

// paletteFor returns colours for a terminal, unless the user disabled them: see
// https://no-color.org.
func paletteFor(file *os.File) Palette {
	terminal := IsTerminal(file)
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
	return Palette{
		terminal: terminal,
		On:       on,
		Good:     paint(color.FgGreen),
		Bad:      paint(color.FgRed),
		Faint:    paint(color.Faint),
		Name:     paint(color.FgCyan),
		Bold:     paint(color.Bold),
	}
}

// IsTerminal reports whether file is a terminal that supports more than plain lines.
func IsTerminal(file *os.File) bool {
	return term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}
