// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/display"
)

// PrintDocument writes v to standard output as one indented JSON document.
func (s *Screen) PrintDocument(v any) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("writing the JSON document: %w", err)
	}
	s.PrintJSON(b.String())
	return s.Err()
}

// PrintLine writes text from a server to standard output, as [Screen.PrintSafe] does, and a
// newline if it does not end with one.
func (s *Screen) PrintLine(text string) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	s.PrintSafe(text)
}

// PrintCopy writes text from a server to standard output: exactly for programs, and as
// [Screen.PrintLine] does on a terminal.
func (s *Screen) PrintCopy(text string) {
	if s.Results.terminal {
		s.PrintLine(text)
	} else {
		s.Print(text)
	}
}

// PrintCanisters writes canisters to standard output, one line of JSON for each.
func (s *Screen) PrintCanisters(all ...canister.Canister) error {
	for _, one := range all {
		form, err := canister.Marshal(one)
		if err != nil {
			return fmt.Errorf("a %s: %w", one.Kind(), err)
		}
		s.PrintJSON(string(form) + "\n")
	}
	return s.Err()
}

// PrintSafe writes text to standard output: sanitized by [display.Text] on a terminal, and
// unchanged for programs.
func (s *Screen) PrintSafe(text string) {
	if s.Results.terminal {
		text = display.Text(text)
	}
	s.Print(text)
}
