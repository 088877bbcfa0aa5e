// SPDX-License-Identifier: Apache-2.0

package screen_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/screen"
)

// Each output leads to the screen that xterm shows. The rows of the screen are separated
// by newlines; the rest of them is empty.
func TestEmulator(t *testing.T) {
	for name, c := range map[string]struct{ output, want string }{
		"lines":                      {"one\r\ntwo\nthree", "one\ntwo\n   three"},
		"wrapped at the last column": {"0123456789ab", "0123456789\nab"},
		"the last column is pending": {"0123456789\r\nab", "0123456789\nab"},
		"no wrap":                    {"\x1b[?7l0123456789ab", "012345678b"},
		"scrolled":                   {"1\r\n2\r\n3\r\n4\r\n5", "2\n3\n4\n5"},
		"wide":                       {"日本語", "日本語"},
		"wide does not fit":          {"123456789日", "123456789\n日"},
		"half of a wide one":         {"日本\x1b[1;2Hx", " x本"},
		"other half of a wide one":   {"日本\x1b[1;3Hx", "日x"},
		"combining":                  {"e\u0301a", "e\u0301a"},
		"emoji with a joiner":        {"👩\u200d👧x", "👩\u200d👧x"},
		"cut character":              {"\xffa", "\ufffda"},
		"positions":                  {"\x1b[2;3Hx\x1b[4Gy\x1b[1dz\x1b[2Ba\x1b[2A\x1b[3Db", "   bz\n  xy\n     a"},
		"erase the rest":             {"one\r\ntwo\r\nthree\x1b[2;2H\x1b[J", "one\nt"},
		"erase the beginning":        {"one\r\ntwo\x1b[2;2H\x1b[1J", "\n  o"},
		"erase in the line":          {"0123456\x1b[3D\x1b[K\r\n0123456\x1b[3D\x1b[1K\r\nx\x1b[2K", "0123\n     56"},
		"erase characters":           {"0123456\x1b[1;3H\x1b[2X", "01  456"},
		"insert characters":          {"0123456\x1b[1;3H\x1b[2@", "01  23456"},
		"delete characters":          {"0123456\x1b[1;3H\x1b[2P", "01456"},
		"insert mode":                {"0123\x1b[1;3H\x1b[4hxy\x1b[4lz", "01xyz3"},
		"insert lines":               {"1\r\n2\r\n3\r\n4\x1b[2;1H\x1b[2L", "1\n\n\n2"},
		"delete lines":               {"1\r\n2\r\n3\r\n4\x1b[2;1H\x1b[2M", "1\n4"},
		"region":                     {"1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\nx", "1\n3\nx\n4"},
		"region downwards":           {"1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[2;1H\x1bMx", "1\nx\n2\n4"},
		"scroll up and down":         {"1\r\n2\r\n3\x1b[2S\x1b[1T", "\n3"},
		"tabs":                       {"a\tb\x1b[Zc", "a       c"},
		"repeat":                     {"-\x1b[4b", "-----"},
		"saved cursor":               {"ab\x1b7\r\ncd\x1b8x", "abx\ncd"},
		"colours":                    {"\x1b[1;38;5;12ma\x1b[38:2::1:2:3mb\x1b[m", "ab"},
		"links":                      {"\x1b]8;;https://example.com\x1b\\a\x1b]8;;\ab", "ab"},
		"unknown":                    {"\x1b[>4;2m\x1b[>1u\x1b[=1;1u\x1b(B\x1b=\x1bP1$r\x1b\\a", "a"},
		"cancelled":                  {"\x1b[12\x18a\x1b]0;x\x1ab", "ab"},
		"a control in a sequence":    {"ab\x1b[\b1Dc", "cb"},
		"other screen":               {"main\x1b[?1049hother", "    other"},
		"back from the other screen": {"main\x1b[?1049hother\x1b[?1049l!", "main!"},
	} {
		t.Run(name, func(t *testing.T) {
			e := screen.NewEmulator(10, 4, func(string) {})
			for i := range len(c.output) { // each byte alone, as a pipe may cut output anywhere
				fmt.Fprint(e, c.output[i:i+1])
			}
			if got := strings.TrimRight(e.Screen(), "\n"); got != c.want {
				t.Errorf("%q shows\n%s\nwant\n%s", c.output, got, c.want)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	for question, want := range map[string]string{
		"\x1b[c":               "\x1b[?62;22c",
		"ab\x1b[6n":            "\x1b[1;3R",
		"\x1b[?2026$p":         "\x1b[?2026;2$y",
		"\x1b[?25$p":           "\x1b[?25;1$y",
		"\x1b[?2027$p":         "\x1b[?2027;0$y",
		"\x1b]11;?\a":          "\x1b]11;rgb:0000/0000/0000\x1b\\",
		"\x1b]11;?\x1b\\":      "\x1b]11;rgb:0000/0000/0000\x1b\\",
		"\x1b[?u":              "",
		"\x1b[>q":              "\x1bP>|emulator(1)\x1b\\",
		"\x1bP+q544e\x1b\\":    "\x1bP0+r\x1b\\",
		"\x1b]52;c;aGk=\x1b\\": "",
	} {
		var got string
		e := screen.NewEmulator(10, 4, func(text string) { got += text })
		fmt.Fprint(e, question)
		if got != want {
			t.Errorf("%q is answered %q, want %q", question, got, want)
		}
	}
}

func TestScrollback(t *testing.T) {
	e := screen.NewEmulator(10, 3, func(string) {})
	for i := range 30_000 {
		fmt.Fprintf(e, "%d\r\n", i)
	}
	if all := e.All(); !strings.HasSuffix(all, "\n29997\n29998\n29999\n\n") || e.Scrolled() != 29_998 || strings.Count(all, "\n") > 23_000 {
		t.Errorf("%d lines scrolled; the end is %q", e.Scrolled(), all[len(all)-30:])
	}
	e.Resize(4, 2)
	if got := e.Screen(); got != "2999\n\n" {
		t.Errorf("resized: %q", got)
	}
	if fmt.Fprint(e, "\x1b[3J"); e.Scrolled() != 0 {
		t.Error("the lines above are not cleared")
	}
	fmt.Fprint(e, "\x1b[2;1Hb\x1b[1;1Ha\x1b[J")
	if got := e.All(); e.Scrolled() != 0 || got != "a\n\n" {
		t.Errorf("erased from the second cell on: %q", got)
	}
	fmt.Fprint(e, "\x1b[2;1Hb\x1b[1;1H\x1b[J")
	if got := e.All(); e.Scrolled() != 2 || got != "a\nb\n\n\n" {
		t.Errorf("erased from the first cell on: %q", got)
	}
}

// A shell on a terminal: what is typed, pasted, resized and answered arrives.
func TestTerminal(t *testing.T) {
	x := screen.Start(t, exec.Command("sh", "-c", `
		stty -echo; printf 'ready\n'; read line; echo "read $line"
		read line; printf '\033[?2026hhalf '; stty size; printf '\033[?2026l'
		stty raw opost; printf '\033[?2004h'; dd bs=1 count=23 2>/dev/null | od -An -c
		printf '\033]52;c;aGVsbG8=\a'; exit 3`), 80, 10)
	x.See("ready")
	x.Type("some words\n")
	x.See("read some words")
	x.Resize(90, 12)
	x.Type("\n")
	x.See("half 12 90")
	x.Wait("the mode", func(e *screen.Emulator) bool { return e.Mode(2004) })
	x.Paste("pasted\ntext")
	x.See(`p a s t e d \r t e x t 033 [ 2 0 1 ~`)
	if status := x.Ends(); status != 3 {
		t.Errorf("status %d", status)
	}
	if got := x.Clipboard(); got != "hello" {
		t.Errorf("the clipboard has %q", got)
	}
}
