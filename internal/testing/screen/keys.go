// SPDX-License-Identifier: Apache-2.0

package screen

// Keys as xterm sends them, for [Terminal.Type].
const (
	Enter     = "\r"
	Tab       = "\t"
	Backspace = "\x7f"
	Escape    = "\x1b"
	Up        = "\x1b[A"
)

// Ctrl returns the key Ctrl with a lower-case letter.
func Ctrl(letter byte) string { return string(rune(letter & 0x1f)) }
