// SPDX-License-Identifier: Apache-2.0

package paste_test

import (
	"testing"

	"github.com/consort-go/consort/internal/paste"
)

func TestState(t *testing.T) {
	for input, want := range map[string]bool{
		"":                               false,
		"\x1b[200":                       false,
		"\x1b[200~":                      true,
		"a\x1b[200~b\x1b[201":            true,
		"a\x1b[200~b\x1b[201~":           false,
		"\x1b[200~\x1b[201~x\x1b[200~yy": true,
		"\x1b\x1b[200~":                  true,
	} {
		var s paste.State
		for _, b := range []byte(input) {
			s.Next(b)
		}
		if s.IsOpen() != want {
			t.Errorf("after %q, a paste is open: %v, want %v", input, s.IsOpen(), want)
		}
	}
}
