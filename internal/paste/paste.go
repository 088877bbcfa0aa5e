// SPDX-License-Identifier: Apache-2.0

// Package paste follows bracketed pastes in the input of a terminal. A terminal encloses
// pasted text in two sequences, see
// https://invisible-island.net/xterm/ctlseqs/ctlseqs.html#h2-Bracketed-Paste-Mode.
package paste

// The sequences before and after pasted text.
const (
	Begins = "\x1b[200~"
	Ends   = "\x1b[201~"
)

// State is the state of an input, initially outside of a paste.
type State struct {
	last []byte // the bytes that a sequence may have begun with
	open bool
}

// Next processes one byte.
func (s *State) Next(b byte) {
	s.last = append(s.last, b)
	s.last = s.last[max(0, len(s.last)-len(Begins)):]
	switch string(s.last) {
	case Begins:
		s.open = true
	case Ends:
		s.open = false
	}
}

// IsOpen reports whether a paste has begun and not ended.
func (s *State) IsOpen() bool { return s.open }
