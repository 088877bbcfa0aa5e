// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/transcript"
)

// markdown writes CommonMark and escapes everything that could be markup.
type markdown struct{}

func (markdown) begin(history.Info, int) (string, error) { return "", nil }
func (markdown) end() string                             { return "" }

func (markdown) conversation(info history.Info) (string, error) {
	text := "# " + markdownLine(transcript.Title(info)) + "\n"
	for _, fact := range transcript.Facts(info) {
		text += "\n" + markdownLine(fact) + "\n"
	}
	return text, nil
}

func (markdown) canister(number int, c canister.Canister) (string, error) {
	p := transcript.PartOf(transcript.Numbered{Number: number, Canister: c})
	text := "\n## " + markdownLine(strings.TrimSpace(fmt.Sprintf("%d %s %s", p.Number, p.Heading(), p.When()))) + "\n"
	if said := strings.TrimRight(display.Text(p.Text), "\n"); said != "" {
		fence := fenceFor(said)
		text += "\n" + fence + "\n" + said + "\n" + fence + "\n"
	}
	return text, nil
}

// markdownLine escapes a line: CommonMark allows each ASCII punctuation character to be
// escaped (section 2.4).
func markdownLine(line string) string {
	var b strings.Builder
	for _, r := range line {
		if r < unicode.MaxASCII && (unicode.IsPunct(r) || unicode.IsSymbol(r)) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// fenceFor returns a fence of backticks that no line of the text can close (CommonMark,
// section 4.5), because it is longer than any run of backticks in the text.
func fenceFor(text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}
