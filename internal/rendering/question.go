// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/textcut"
)

// Question describes a call to the person who approves it: the tool and its server, the
// target of the call, the hints of the tool, and all arguments.
// Strings are shown decoded, several lines as lines, and pairs of an old and a new text as
// a comparison; all else is shown as JSON. Each line of content that could pass for a line
// of the question begins with a bar. The result does not contain the question itself, such
// as "run it?".
func Question(style Style, ask converse.Approval, readOnly bool) []string {
	return style.rows(question(style, ask, readOnly).lines)
}

// QuestionRows is like [Question] and says which rows show a change.
func QuestionRows(style Style, ask converse.Approval, readOnly bool) []Row {
	return question(style, ask, readOnly).rows()
}

func question(style Style, ask converse.Approval, readOnly bool) *values {
	v := &values{style: style}
	v.lines = wrap(headline(style, ask), style.width())
	all, ok := members(ask.Arguments)
	first, rest := byTarget(all)
	v.object(first, 2, 0)
	for _, hint := range hints(ask, readOnly) {
		for _, line := range wrap([]span{{text: hint, ink: style.hintInk(ask, readOnly)}}, style.width()-2) {
			v.lines = append(v.lines, append([]span{{text: "  "}}, line...))
		}
	}
	switch {
	case !ok:
		v.named("arguments (no JSON object)", compact(ask.Arguments), 2)
	case len(all) == 0:
		v.lines = append(v.lines, []span{{text: "  It has no arguments.", ink: faintInk}})
	default:
		v.object(rest, 2, 0)
	}
	return v
}

// headline names the tool, its server, and the tool's title, which may differ from
// the name.
func headline(style Style, ask converse.Approval) []span {
	spans := []span{
		{text: "? The model wants to call ", ink: boldInk},
		{text: name(ask.Tool), ink: ink{color: style.nameInk().color, bold: true}},
		{text: " of "},
		{text: name(ask.Ensemble), ink: ink{color: style.nameInk().color, bold: true}},
	}
	if ask.Definition != nil && ask.Definition.Title != "" && ask.Definition.Title != ask.Tool {
		spans = append(spans, span{text: ", titled " + quote(textcut.Runes(ask.Definition.Title, maxName))})
	}
	return spans
}

// Asked returns the rows that say which server asks the person, with a verb such as "asks", and
// its message. Each row of the message after the first begins with a bar, so that it cannot
// pass for a row of the question, such as an address.
func Asked(style Style, server, verb, message string) []string {
	const bar = 4 // columns, with the indentation
	lines := wrap([]span{
		{text: "? The server ", ink: boldInk}, {text: display.Line(cmp.Or(server, "(without a name)")), ink: style.nameInk()},
		{text: " " + verb + ": ", ink: boldInk}, plain(strings.TrimRight(message, "\n"), ink{}),
	}, style.width()-bar)
	for i, line := range lines[1:] {
		lines[i+1] = append([]span{{text: "  " + style.symbols().bar + " ", ink: faintInk}}, line...)
	}
	return style.rows(lines)
}

// name returns the name of a tool or a server, as ASCII in quotes if it has characters
// that could be mistaken for others.
func name(text string) string {
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:", r)
	}
	if text == "" || strings.IndexFunc(text, odd) >= 0 {
		return strconv.QuoteToASCII(textcut.Runes(text, maxName))
	}
	return textcut.Runes(text, maxName)
}

// maxName bounds the length of a name or a title in a question, in characters.
const maxName = 100

// hints describes the hints of the tool, and whether its server is trusted.
func hints(ask converse.Approval, readOnly bool) []string {
	if ask.Definition == nil {
		return []string{"Nothing is known about what the tool does."}
	}
	var all []string
	declared := ask.Definition.Hints
	switch {
	case readOnly:
		all = append(all, "It changes nothing, as its server declares, which is trusted.")
	case declared.ReadOnly:
		all = append(all, "Its server declares that it changes nothing, but is not trusted to.")
	case declared.MayDestroy() && declared.Destructive == nil:
		all = append(all, "It may destroy something: its server declares nothing about that.")
	case declared.MayDestroy():
		all = append(all, "It may destroy something, as its server declares.")
	default:
		all = append(all, "It changes something; its server declares that it destroys nothing.")
	}
	switch {
	case declared.OpenWorld == nil:
	case *declared.OpenWorld:
		all = append(all, "It reaches other systems, such as the web.")
	default:
		all = append(all, "Its server declares that it reaches no other systems.")
	}
	return all
}

// hintInk returns the ink of the hints: a warning if the tool may destroy something.
func (s Style) hintInk(ask converse.Approval, readOnly bool) ink {
	if ask.Definition != nil && !readOnly && ask.Definition.Hints.MayDestroy() {
		return s.warnInk()
	}
	return ink{}
}
