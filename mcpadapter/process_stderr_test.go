// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanLine(t *testing.T) {
	for line, want := range map[string]string{
		"plain\r\n":                  "plain",
		"\x1b[1;31mred\x1b[0m alert": "red alert",
		"a\tb\x00c\x07d\u0085e\x7f":  "a bcd e",
		"right\u202eto\u200bleft":    "righttoleft",
		"bad \xff\xfe utf8 \xe2\x82": "bad \uFFFD utf8 \uFFFD",
		"überraschend 日本 🙂\u00a0ok":  "überraschend 日本 🙂 ok",
	} {
		if got := cleanLine(line); got != want {
			t.Errorf("cleanLine(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	for range 3000 {
		kept.add([]byte(strings.Repeat("y", 99) + "\n"))
		if cap(kept.kept) > 4*maxTail {
			t.Fatalf("%d bytes are held, bound is %d", cap(kept.kept), 4*maxTail)
		}
	}
	kept.add([]byte("panic: the end\n\n"))
	text := kept.text()
	if !strings.HasSuffix(text, "\npanic: the end") || len(text) > maxTail || len(text) < maxTail-100 {
		t.Errorf("tail has %d bytes and ends in %q", len(text), text[max(0, len(text)-30):])
	}
}

func TestLastLines(t *testing.T) {
	var kept tail
	if got := kept.lastLines(); got != "" {
		t.Errorf("nothing written: %q", got)
	}
	kept.add([]byte("1\n2\n3\n4\n5\n6\n\n \n7\n8\n9\n10"))
	if got, want := kept.lastLines(), "3 | 4 | 5 | 6 | 7 | 8 | 9 | 10"; got != want {
		t.Errorf("lastLines = %q, want %q", got, want)
	}
	kept.add([]byte("\n" + strings.Repeat("é", 5000)))
	if got := kept.lastLines(); len(got) > maxLastBytes+len("…") || !utf8.ValidString(got) || !strings.HasPrefix(got, "…é") {
		t.Errorf("a long line gives %d bytes: %.20q", len(got), got)
	}
}
