// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"encoding/base64"
	"errors"
	"io"
)

// Copy asks the terminal to put text on the clipboard (OSC 52 of xterm's control
// sequences). A terminal that does not support it, or does not allow it, ignores that.
// The sequence does not move the cursor, so it may come at any time.
func (s *Screen) Copy(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.Stderr
	if !isAnyTerminal(file) {
		file = s.Stdout
	}
	if !isAnyTerminal(file) || isDumb() {
		return errors.New("there is no terminal whose clipboard could be used")
	}
	_, err := io.WriteString(file, "\x1b]52;c;"+base64.StdEncoding.EncodeToString([]byte(s.cleaned(text)))+"\x1b\\")
	return err
}
