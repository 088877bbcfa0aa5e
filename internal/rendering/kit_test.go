// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var update = flag.Bool("update", false, "write the golden files")

// widths lists the widths of the golden files.
var widths = []int{40, 80, 120}

// golden compares lines with a golden file for each width.
func golden(t *testing.T, name string, style Style, render func(Style) []string) {
	t.Helper()
	for _, style.Width = range widths {
		rows := render(style)
		checkRows(t, style, rows)
		got := strings.ReplaceAll(strings.Join(rows, "\n")+"\n", "\x1b", "␛")
		file := filepath.Join("testdata", fmt.Sprintf("%s.%d.txt", name, style.Width))
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s at %d columns:\n%s\nwant:\n%s\n%v", name, style.Width, got, want, err)
		}
	}
}

// ours are the escape sequences that this package writes in text.
var ours = regexp.MustCompile("\x1b\\[[0-9;]*m|\x1b\\]8;;[!-~]*\x1b\\\\")

func strip(row string) string { return ours.ReplaceAllString(row, "") }

// checkRows checks that rows fit, and that nothing but our own escape
// sequences controls the terminal.
func checkRows(t *testing.T, style Style, rows []string) {
	t.Helper()
	for _, row := range rows {
		bare := strip(row)
		if n := columns(bare); n > style.width() {
			t.Errorf("a row has %d columns, more than %d: %q", n, style.width(), row)
		}
		if i := strings.IndexFunc(bare, func(r rune) bool {
			return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r)
		}); i >= 0 {
			t.Errorf("a row has a control character at %d: %q", i, bare)
		}
		if style.Color && strings.HasSuffix(row, "m") && strings.Contains(row, "\x1b[") && !strings.HasSuffix(row, resetInk) &&
			strings.LastIndex(row, resetInk) < strings.LastIndex(row, "\x1b[") {
			t.Errorf("a row does not end its colours: %q", row)
		}
		if !style.Color && strings.Contains(row, "\x1b[") {
			t.Errorf("a row has colours: %q", row)
		}
	}
}

// letters counts the letters of text.
func letters(text string) map[rune]int {
	counts := map[rune]int{}
	for _, r := range text {
		if unicode.IsLetter(r) {
			counts[r]++
		}
	}
	return counts
}

// missing returns the letters that are in want and not in got.
func missing(got, want map[rune]int) string {
	var b strings.Builder
	for r, n := range want {
		if got[r] < n {
			fmt.Fprintf(&b, "%d %q ", n-got[r], r)
		}
	}
	return b.String()
}
