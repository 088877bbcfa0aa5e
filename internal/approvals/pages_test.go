// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"fmt"
	"strings"
	"testing"
)

// Pages have all of a text, and fit the terminal.
func TestPages(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "  %q: %q\n", fmt.Sprint("line ", i), strings.Repeat("x東", i))
	}
	const question = "\n  \x1b[1mfiles__remove\x1b[m: y once, c for this conversation, n or a reason for no\n  run it? [y/c/N] "
	for _, size := range [][2]int{{0, 0}, {1, 1}, {10, 5}, {20, 10}, {40, 12}, {80, 24}, {200, 200}} {
		pages := Pages(text.String(), question, size[0], size[1])
		if got := strings.ReplaceAll(strings.Join(pages, ""), "\n", ""); got != strings.ReplaceAll(text.String(), "\n", "") {
			t.Errorf("%v: something is missing: %q", size, got)
		}
		if size[0] < 10 {
			continue
		}
		for _, page := range pages {
			lines := strings.Split(page, "\n")
			below := 0
			for line := range strings.SplitSeq(strings.NewReplacer("\x1b[1m", "", "\x1b[m", "").Replace(question), "\n") {
				below += max(1, (len(line)+size[0]-1)/size[0])
			}
			if len(lines) > max(1, size[1]-2-below) {
				t.Errorf("%v: a page has %d rows, and the question %d", size, len(lines), below)
			}
			for _, line := range lines {
				if n := len([]rune(line)) + strings.Count(line, "東"); n >= size[0] {
					t.Errorf("%v: a row has %d columns: %q", size, n, line)
				}
			}
		}
	}
	if pages := Pages("one\ntwo", question, 80, 24); len(pages) != 1 || pages[0] != "one\ntwo" {
		t.Errorf("a short text: %q", pages)
	}
	wide := "\x1b[1m" + strings.Repeat("wide ", 10) + "\x1b[m" // a row with colours is not broken
	if pages := Pages(wide+"\n"+wide+"\n"+wide, "run it?", 20, 8); len(pages) != 3 {
		t.Errorf("each of 3 rows on a screen for 1 takes 3: %q", pages)
	}
}
