// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// liveScreen returns a screen with a block on a terminal, whose window the test can resize.
func liveScreen(t *testing.T) (s *Screen, window *os.File) {
	t.Helper()
	outer, inner, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close(); outer.Close() })
	s = NewScreen(output(t), output(t))
	s.Stderr, s.Live = inner, true
	return s, inner
}

// The end of an answer is not shown in a window that has become too narrow for its rows.
func TestTheTailFits(t *testing.T) {
	s, inner := liveScreen(t)
	for columns, want := range map[uint16]int{80: 2, 61: 2, 60: 0, 40: 0} {
		s.tail = func() []string { return []string{"short", "\x1b[1m" + strings.Repeat("x", 60) + "\x1b[0m"} }
		if err := pty.Setsize(inner, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
			t.Fatal(err)
		}
		if rows := s.blockRows(); len(rows) != want {
			t.Errorf("%d columns: %q", columns, rows)
		}
	}
}

// Each row of the block fits the window, also with characters that are two columns wide only
// together with a selector. A narrow window has no block, and one of unknown size counts as 80
// columns.
func TestTheBlockFits(t *testing.T) {
	s, inner := liveScreen(t)
	s.lines = []*Activity{{screen: s, text: "paint(" + strings.Repeat("\u2764\ufe0f", 100) + ")", since: time.Now(), note: strings.Repeat("\u2764\ufe0f", 100)}}
	for _, test := range []struct {
		columns uint16
		want    int // columns of the row at most; 0 is no row
	}{{80, 79}, {120, 119}, {30, 29}, {20, 0}, {10, 0}, {0, 79}} {
		if err := pty.Setsize(inner, &pty.Winsize{Rows: 24, Cols: test.columns}); err != nil {
			t.Fatal(err)
		}
		rows := s.blockRows()
		if len(rows) > 1 || (len(rows) == 1) != (test.want > 0) {
			t.Fatalf("%d columns: %q", test.columns, rows)
		}
		for _, row := range rows {
			row = strings.ReplaceAll(strings.TrimSuffix(row, "\n"), "\u2764\ufe0f", "xx")
			if n := len([]rune(row)); n > test.want || n < test.want-2 {
				t.Errorf("%d columns: a row has %d, want %d: %s", test.columns, n, test.want, row)
			}
		}
	}
}
