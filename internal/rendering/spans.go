// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
	"github.com/consort-go/consort/internal/display"
)

// span is a piece of text in one ink. Its text contains no control characters but
// newlines.
type span struct {
	text string
	ink  ink
	link string // the target of a hyperlink, or empty
}

// plain returns content as one span, with invisible characters made visible.
func plain(text string, with ink) span { return span{text: display.Text(text), ink: with} }

// row returns spans, which have no newlines, as a line with escape sequences. Spaces at
// its end are dropped.
func (s Style) row(spans ...span) string {
	var b strings.Builder
	for at := 0; at < len(spans); {
		first := spans[at]
		var text strings.Builder
		for ; at < len(spans) && spans[at].ink == first.ink && spans[at].link == first.link; at++ {
			text.WriteString(spans[at].text)
		}
		body := text.String()
		if at == len(spans) {
			body = strings.TrimRight(body, " ")
		}
		s.write(&b, span{body, first.ink, first.link})
	}
	return strings.TrimRight(b.String(), " ")
}

// rows returns lines of spans; see [Style.row].
func (s Style) rows(lines [][]span) []string {
	rows := make([]string, len(lines))
	for i, line := range lines {
		rows[i] = s.row(line...)
	}
	return rows
}

// write writes one span.
func (s Style) write(b *strings.Builder, one span) {
	if one.text == "" {
		return
	}
	start := ""
	if s.Color {
		start = one.ink.sgr()
	}
	link := s.Links && isWebLink(one.link)
	if link {
		b.WriteString("\x1b]8;;" + one.link + "\x1b\\")
	}
	b.WriteString(start + one.text)
	if start != "" {
		b.WriteString(resetInk)
	}
	if link {
		b.WriteString("\x1b]8;;\x1b\\")
	}
}

// isWebLink reports whether a target may become a hyperlink: a URL for a browser or for
// mail, in the characters that OSC 8 permits.
func isWebLink(target string) bool {
	scheme, _, ok := strings.Cut(target, ":")
	switch strings.ToLower(scheme) {
	case "https", "http", "mailto":
	default:
		return false
	}
	return ok && len(target) <= 2000 && strings.IndexFunc(target, func(r rune) bool { return r <= ' ' || r >= unicode.MaxASCII }) < 0
}

// maxCluster and maxClusterBytes bound a cluster. Longer sequences are treated as single
// characters.
const (
	maxCluster      = 8 // columns
	maxClusterBytes = 64
)

// cluster returns the first characters of text that belong together, such as a letter with
// its accents, and how many columns they take. Terminals disagree about sequences of
// emoji: some draw one character and some draw all. The larger number holds for both.
func cluster(text string) (value string, columns int) {
	g := displaywidth.StringGraphemes(text[:min(len(text), maxClusterBytes+utf8.UTFMax)])
	g.Next()
	value, columns = g.Value(), g.Width()
	if len(value) <= utf8.UTFMax && utf8.FullRuneInString(value) {
		return value, columns
	}
	sum := 0
	for _, r := range value {
		sum += displaywidth.Rune(r)
	}
	if sum <= maxCluster && len(value) <= maxClusterBytes {
		return value, max(columns, sum)
	}
	r, size := utf8.DecodeRuneInString(text)
	return text[:size], displaywidth.Rune(r)
}

// Columns returns how many columns of a terminal text takes, which has no control characters.
func Columns(text string) int { return columns(text) }

// Prefix returns the longest beginning of text that takes at most limit columns. It divides no
// characters that belong together.
func Prefix(text string, limit int) string {
	end := 0
	for end < len(text) {
		value, n := cluster(text[end:])
		if limit -= n; limit < 0 {
			break
		}
		end += len(value)
	}
	return text[:end]
}

// columns returns how many columns text takes.
func columns(text string) int {
	n := 0
	for text != "" {
		ascii := wordLength(text)
		n += ascii
		text = text[ascii:]
		if text != "" {
			value, more := cluster(text)
			n += more
			text = text[len(value):]
		}
	}
	return n
}

func columnsOfSpans(spans []span) int {
	n := 0
	for _, one := range spans {
		n += columns(one.text)
	}
	return n
}

// fit returns text cut to limit columns, with a sign that something is missing.
func (s Style) fit(text string, limit int) string {
	if columns(text) <= limit {
		return text
	}
	more := s.symbols().more
	room := limit - columns(more)
	if room < 0 {
		return ""
	}
	return Prefix(text, room) + more
}

// tabStop is the distance of tab stops, in columns.
const tabStop = 4
