// SPDX-License-Identifier: Apache-2.0

package linediff

import (
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want string }{
		"one line":    {"a", "b", "- a|+ b"},
		"nothing yet": {"", "b", "+ b"},
		"nothing now": {"a", "", "- a"},
		"the same":    {"a\nb", "a\nb", ""},
		"in between":  {"a\nb\nc\nd\ne\nf", "a\nb\nc\nX\ne\nf", "  b|  c|- d|+ X|  e|  f"},
		"two places":  {"1\n2\n3\n4\n5\n6\n7", "x\n2\n3\n4\n5\n6\ny", "- 1|+ x|  2|  3|  …|  5|  6|- 7|+ y"},
		"insertion":   {"a\nb", "a\nnew\nb", "  a|+ new|  b"},
		"empty lines": {"a\n\nb", "a\n\n\nb", "  a|  |+ |  b"},
		"too long":    {strings.Repeat("a\n", 2000) + "x", strings.Repeat("b\n", 2000) + "y", ""},
	} {
		got := Lines(test.before, test.after)
		if name == "too long" {
			if len(got) != 4002 || got[0] != "- a" || got[4001] != "+ y" {
				t.Errorf("%s: %d lines", name, len(got))
			}
			continue
		}
		if joined := strings.Join(got, "|"); joined != test.want {
			t.Errorf("%s: %q, want %q", name, joined, test.want)
		}
	}
}
