// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
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
	on := IsTerminal(file) && os.Getenv("NO_COLOR") == ""
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
		terminal: isAnyTerminal(file),
		On:       on,
		Good:     paint(color.FgGreen),
		Bad:      paint(color.FgRed),
		Faint:    paint(color.Faint),
		Name:     paint(color.FgCyan),
		Bold:     paint(color.Bold),
	}
}

// plain returns the palette without colours.
func (p Palette) plain() Palette {
	none := fmt.Sprint
	return Palette{terminal: p.terminal, Good: none, Bad: none, Faint: none, Name: none, Bold: none}
}

// IsTerminal reports whether file is a terminal that supports more than plain lines, and
// the environment does not ask for them.
func IsTerminal(file *os.File) bool {
	return isAnyTerminal(file) && !isDumb() && os.Getenv(accessible) == ""
}

// accessible is the environment variable that asks for plain lines, for a screen reader,
// as in the forms of Charm's library huh.
const accessible = "ACCESSIBLE"

// isAnyTerminal reports whether file is a terminal, of any kind.
func isAnyTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// isDumb reports whether the terminal has no control sequences.
func isDumb() bool { return os.Getenv("TERM") == "dumb" }

// IsAttended reports whether a person can be asked: input comes from a terminal, of any
// kind, and the question appears on one.
func IsAttended(stdin, stderr *os.File) bool { return isAnyTerminal(stdin) && isAnyTerminal(stderr) }
