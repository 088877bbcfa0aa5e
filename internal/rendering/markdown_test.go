// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/consort-go/consort/internal/display"
)

// corpus returns the texts of testdata, by file name without the extension.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("there is no corpus", err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(file), ".md")] = string(text)
	}
	return texts
}

func TestMarkdown(t *testing.T) {
	for name, text := range corpus(t) {
		golden(t, name, Style{}, func(s Style) []string { return RenderMarkdown(s, text) })
	}
}

func TestMarkdownInColours(t *testing.T) {
	text := corpus(t)["answer"]
	golden(t, "answer.dark", Style{Color: true, Links: true}, func(s Style) []string { return RenderMarkdown(s, text) })
	golden(t, "answer.light", Style{Color: true, Light: true}, func(s Style) []string { return RenderMarkdown(s, text) })
	golden(t, "answer.ascii", Style{ASCII: true}, func(s Style) []string { return RenderMarkdown(s, text) })
}

// The pieces in which a text arrives make no difference.
func TestPiecesMakeNoDifference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, text := range corpus(t) {
		style := Style{Width: 40, Color: true}
		want := RenderMarkdown(style, text)
		for _, most := range []int{1, 7, 100} {
			if got, _ := stream(style, text, func() int { return 1 + random.IntN(most) }); !slices.Equal(got, want) {
				t.Errorf("%s in pieces of at most %d bytes:\n%s\nwant:\n%s", name, most, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// stream renders a text in pieces, and returns the most rows that a tail had.
func stream(style Style, text string, size func() int) (rows []string, longest int) {
	m := NewMarkdown(style)
	for text != "" {
		n := min(size(), len(text))
		rows = append(rows, m.Write(text[:n])...)
		longest = max(longest, len(m.Tail()))
		text = text[n:]
	}
	return append(rows, m.Finish()...), longest
}

// references matches the source that is replaced: references to characters, line breaks.
var references = regexp.MustCompile(`&[a-zA-Z0-9#]+;|(?i:< *b *r *(/ *)?>)`)

// shownOnce removes one of the copies of a target that is also the text of its link.
func shownOnce(source string) string {
	var b strings.Builder
	for {
		at := strings.Index(source, "](")
		if at < 0 {
			return b.String() + source
		}
		b.WriteString(source[:at])
		source = source[at+2:]
		n := 0 // how much of the text before repeats after it
		for before := b.String(); n < len(source) && n < at; n++ {
			if strings.HasSuffix(before, source[:n+1]) {
				source = source[n+1:]
				n = -1
				break
			}
		}
	}
}

// checkLetters checks that all letters of the source are in the rows.
func checkLetters(t *testing.T, source string, rows []string) {
	t.Helper()
	want := letters(shownOnce(references.ReplaceAllString(display.Text(source), "")))
	got := letters(strip(strings.Join(rows, "\n")))
	if lost := missing(got, want); lost != "" {
		t.Errorf("lost %s of %q:\n%s", lost, source, strings.Join(rows, "\n"))
	}
}

func TestNoLetterIsLost(t *testing.T) {
	for _, text := range corpus(t) {
		for _, width := range widths {
			checkLetters(t, text, RenderMarkdown(Style{Width: width, Color: true, Links: true}, text))
		}
	}
}

// The words of a text without tables come in the order of the source.
func TestOrderOfWords(t *testing.T) {
	for name, text := range corpus(t) {
		if strings.Contains(text, "|") || references.MatchString(text) {
			continue
		}
		keep := func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return -1
		}
		got := strings.Map(keep, strings.ReplaceAll(strip(strings.Join(RenderMarkdown(Style{Width: 50}, text), "\n")), "image: ", ""))
		if want := strings.Map(keep, display.Text(text)); got != want {
			t.Errorf("%s: the letters are\n%s\nwant\n%s", name, got, want)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text, uint8(40), uint8(3))
	}
	f.Add("- a\n\n  - b\n> c\n```\nd\n- e", uint8(0), uint8(1))
	f.Add("| a | b |\n|---|---|\n| \x1b[31m | c | d |", uint8(9), uint8(5))
	f.Add("[a](a) &#27;[2J \u202e `x\n# y", uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, text string, width, piece uint8) {
		style := Style{Width: 20 + int(width), Color: width%2 == 0, Links: width%3 == 0, ASCII: width%5 == 0}
		rows := RenderMarkdown(style, text)
		checkRows(t, style, rows)
		checkLetters(t, strings.ToValidUTF8(text, "\ufffd"), rows)
		m := NewMarkdown(style)
		var pieces []string
		for rest := text; rest != ""; {
			n := min(len(rest), 1+int(piece))
			pieces = append(pieces, m.Write(rest[:n])...)
			checkRows(t, style, m.Tail())
			rest = rest[n:]
		}
		if pieces = append(pieces, m.Finish()...); !slices.Equal(pieces, rows) {
			t.Errorf("in pieces:\n%q\nwant:\n%q", pieces, rows)
		}
	})
}
