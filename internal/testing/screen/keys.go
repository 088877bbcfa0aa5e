// SPDX-License-Identifier: Apache-2.0

package screen

// Keys as xterm sends them, for [Terminal.Type].
const (
	Enter     = "\r"
	Tab       = "\t"
	Backspace = "\x7f"
	Escape    = "\x1b"
	AltEnter  = "\x1b\r"
	Up        = "\x1b[A"
	Down      = "\x1b[B"
	Right     = "\x1b[C"
	Left      = "\x1b[D"
	Home      = "\x1b[H"
	End       = "\x1b[F"
	PageUp    = "\x1b[5~"
	PageDown  = "\x1b[6~"
	Delete    = "\x1b[3~"
	ShiftTab  = "\x1b[Z"

	// The brackets around pasted text.
	PasteBegins = "\x1b[200~"
	PasteEnds   = "\x1b[201~"
)

// Ctrl returns the key Ctrl with a lower-case letter.
func Ctrl(letter byte) string { return string(rune(letter & 0x1f)) }

// Alt returns the key Alt with a character.
func Alt(char rune) string { return "\x1b" + string(char) }
