// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"
	"testing"
)

// Programs get a copy of a text, and no output loses newlines.
func TestTextsKeepTheirEnd(t *testing.T) {
	for _, test := range []struct {
		terminal         bool
		text, line, copy string
	}{
		{false, "a", "a\n", "a"},
		{false, "a\n", "a\n", "a\n"},
		{false, "a\n\n\n", "a\n\n\n", "a\n\n\n"},
		{false, "", "\n", ""},
		{true, "a\n\n\n", "a\n\n\n", "a\n\n\n"},
		{true, "\x1ba", "<U+001B>a\n", "<U+001B>a\n"},
	} {
		for want, print := range map[string]func(*Screen, string){"line": (*Screen).PrintLine, "copy": (*Screen).PrintCopy} {
			stdout := output(t)
			s := NewScreen(stdout, output(t))
			s.Results.terminal = test.terminal
			print(s, test.text)
			expected := test.line
			if want == "copy" {
				expected = test.copy
			}
			got, err := os.ReadFile(stdout.Name())
			if err != nil || string(got) != expected {
				t.Errorf("%s of %q, terminal %v: %q, want %q, %v", want, test.text, test.terminal, got, expected, err)
			}
		}
	}
}
