// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chatui

import (
	"testing"

	"github.com/consort-go/consort/internal/terminal"
	"github.com/creack/pty"
)

// A terminal without a size can show no screen.
func TestSupportedNeedsASize(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("ACCESSIBLE", "")
	outer, inner, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer outer.Close()
	defer inner.Close()
	for _, test := range []struct {
		size pty.Winsize
		want bool
	}{{pty.Winsize{Rows: 24, Cols: 80}, true}, {pty.Winsize{Rows: 24}, false}, {pty.Winsize{Cols: 80}, false}, {pty.Winsize{}, false}} {
		if err := pty.Setsize(inner, &test.size); err != nil {
			t.Fatal(err)
		}
		if got := Supported(terminal.NewScreen(inner, inner), inner); got != test.want {
			t.Errorf("%d columns and %d rows: %v", test.size.Cols, test.size.Rows, got)
		}
	}
}
