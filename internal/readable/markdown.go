// SPDX-License-Identifier: Apache-2.0

package readable

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/transcript"
)

// document writes Markdown. Its own headings have the levels 1 and 2, and those in messages
// are below them.
type document struct{ reader }

func (document) begin(history.Info, bool) string { return "" }
func (document) end() string                     { return "" }

func (d document) conversation(info history.Info) string {
	text := "# " + literal(d.line(transcript.Title(info))) + "\n"
	for _, fact := range d.facts(info) {
		text += "\n" + literal(fact) + "\n"
	}
	return text
}

func (d document) message(m message) string {
	var b strings.Builder
	b.WriteString(headingOf(m.heading, m.Part, m.remarks))
	for _, one := range d.pieces(m) {
		b.WriteString(d.piece(one))
	}
	return b.String()
}

func (d document) call(c call) string {
	return headingOf("Call of "+codeSpan(c.About), c.Part, c.remarks) + d.folded(c.folded, d.body(c))
}

// folded returns a text below a line, which hides it where HTML is shown. The tags are blocks of
// HTML by themselves, which end at an empty line (CommonMark, section 4.6, condition 6), so the text
// between them is Markdown.
func (document) folded(line, text string) string {
	if line == "" {
		return text
	}
	return "\n<details><summary>" + html.EscapeString(line) + "</summary>\n" + text + "\n</details>\n"
}

// body returns a call without its heading.
func (d document) body(c call) string {
	var b strings.Builder
	b.WriteString(fenced("json", c.arguments))
	if c.changed != "" {
		b.WriteString("\nCalled with:\n" + fenced("json", c.changed))
	}
	for _, note := range c.notes {
		line := strings.Join(remarks(fmt.Sprintf("%d %s", note.Number, literal(note.Heading())), note.When()), " · ")
		b.WriteString("\n" + line + "\n" + d.piece(piece{kind: asText, text: note.Text}))
	}
	for _, inner := range c.calls {
		b.WriteString(d.innerCall(inner))
	}
	if c.result == nil {
		b.WriteString("\nNo result.\n")
		return b.String()
	}
	b.WriteString("\n" + strings.Join(append([]string{fmt.Sprintf("%d Result", c.result.Number)}, literals(c.result.remarks)...), " · ") + ":\n")
	for _, one := range d.pieces(*c.result) {
		b.WriteString(d.piece(one))
	}
	return b.String()
}

// innerCall returns a call of a program as one line that unfolds.
func (d document) innerCall(c call) string {
	line := []string{fmt.Sprintf("%d Call of %s", c.Number, c.About)}
	if c.result == nil {
		line = append(line, "no result")
	} else {
		line = append(line, c.result.remarks...)
	}
	return d.folded(strings.Join(append(line, c.remarks...), " · "), d.body(c))
}

// headingOf returns the heading of a message or a call, whose subject is Markdown.
func headingOf(subject string, part transcript.Part, remarks []string) string {
	parts := append([]string{fmt.Sprintf("%d %s", part.Number, subject)}, literals(remarks)...)
	if when := part.When(); when != "" {
		parts = append(parts, when)
	}
	return "\n## " + strings.Join(parts, " · ") + "\n"
}

func literals(lines []string) []string {
	var all []string
	for _, line := range lines {
		all = append(all, literal(line))
	}
	return all
}

// piece returns a piece of content, after an empty line.
func (document) piece(one piece) string {
	if strings.TrimSpace(one.text) == "" {
		return ""
	}
	switch one.kind {
	case asMarkdown:
		return "\n" + contained(one.text) + "\n"
	case asJSON:
		return fenced("json", one.text)
	case asText:
		return fenced("", one.text)
	default:
		return "\n" + literal(one.text) + "\n"
	}
}

// fenced returns a block of code that no line of the text can end: its fence is longer than
// any run of backticks in the text (CommonMark, section 4.5).
func fenced(language, text string) string {
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	return "\n" + fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// codeSpan returns a line as code (CommonMark, section 6.1).
func codeSpan(line string) string {
	ticks := strings.Repeat("`", longestRun(line)+1)
	if strings.HasPrefix(line, "`") || strings.HasSuffix(line, "`") || strings.TrimSpace(line) == "" {
		line = " " + line + " "
	}
	return ticks + line + ticks
}

// longestRun returns the length of the longest run of backticks.
func longestRun(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// literal returns a line as Markdown that means just the line. It escapes only characters
// that could mean something else, alone or together with other such lines.
func literal(line string) string {
	var b strings.Builder
	block, closing := -1, len(strings.TrimRight(line, "# "))
	if found := marker.FindStringSubmatch(line); found != nil {
		block = len(found[1]+found[2]+found[3]) - 1
	}
	last := ' ' // the character before
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		switch rest := line[i+size:]; {
		case r == '_':
			run := line[i : len(line)-len(strings.TrimLeft(line[i:], "_"))]
			next, _ := utf8.DecodeRuneInString(line[i+len(run):])
			if !isWord(last) || !isWord(next) { // not within a word
				run = strings.ReplaceAll(run, "_", `\_`)
			}
			b.WriteString(run)
			i, last = i+strings.Count(run, "_"), '_'
			continue
		case i == block, isMarkup(r, rest), r == '#' && i >= closing && last == ' ': // a heading loses its last # characters
			b.WriteByte('\\')
		}
		b.WriteString(line[i : i+size])
		i, last = i+size, r
	}
	return b.String()
}

// marker is the beginning of a list, a heading, a quotation or a thematic break at the start
// of a line (CommonMark, sections 4.1, 4.2, 5.1 and 5.2).
var marker = regexp.MustCompile(`^(?:(\d+[.)]|[-+]|#{1,6})(?:\s|$)|(-)[- ]*$|(>))`)

// isMarkup reports whether a character could be markup, with the rest of its line.
func isMarkup(r rune, rest string) bool {
	next := func(set string) bool { return rest != "" && strings.IndexByte(set, rest[0]) >= 0 }
	switch r {
	case '*', '`', '~':
		return true
	case '<':
		return rest != "" && (next("/!?") || isWord(rune(rest[0])))
	case ']': // of a link or its definition; other brackets mean nothing without definitions
		return next("(:")
	case '&':
		found := leading.FindString(rest)
		return found != "" && html.UnescapeString("&"+found) != "&"+found
	case '\\':
		return rest == "" || next("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
	}
	return false
}

// leading is a reference at the start of a text, without its ampersand.
var leading = regexp.MustCompile(`^` + references)

func isWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
