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
	for _, size := range [][2]int{{0, 0}, {1, 1}, {10, 5}, {40, 12}, {80, 24}, {200, 200}} {
		pages := Pages(text.String(), size[0], size[1])
		if got := strings.ReplaceAll(strings.Join(pages, ""), "\n", ""); got != strings.ReplaceAll(text.String(), "\n", "") {
			t.Errorf("%v: something is missing: %q", size, got)
		}
		if size[0] < 10 {
			continue
		}
		for _, page := range pages {
			lines := strings.Split(page, "\n")
			if len(lines) > max(1, size[1]-restRows) {
				t.Errorf("%v: a page has %d rows", size, len(lines))
			}
			for _, line := range lines {
				if n := len([]rune(line)) + strings.Count(line, "東"); n >= size[0] {
					t.Errorf("%v: a row has %d columns: %q", size, n, line)
				}
			}
		}
	}
	if pages := Pages("one\ntwo", 80, 24); len(pages) != 1 || pages[0] != "one\ntwo" {
		t.Errorf("a short text: %q", pages)
	}
}
