// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"
	"unicode"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// part is a canister as people read it. Its texts are as somebody said them:
// neither cleaned nor escaped.
type part struct {
	place int // from 1
	kind  canister.Kind
	about string // the name of a tool, the title of a document, the code of a failure
	at    time.Time
	text  string
}

func newPart(place int, held canister.Canister) part {
	p := part{place: place, kind: held.Kind(), at: held.Header().Time, text: plain(canister.ContentOf(held))}
	switch c := held.(type) {
	case canister.Document:
		p.about = c.Title
	case canister.Invocation:
		p.about, p.text = c.Name, indented(json.RawMessage(c.Arguments))
	case canister.Result:
		p.about = c.Code
	}
	return p
}

// heading is the kind and what it is about, in one line of printable text.
func (p part) heading() string {
	return strings.TrimSpace(string(p.kind) + " " + oneLine(p.about))
}

// time is when it was, or empty where nobody knows.
func (p part) time() string {
	if p.at.IsZero() {
		return ""
	}
	return moment(p.at)
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }

// facts are what is known of a conversation beside its title, in printable
// lines.
func facts(info history.Info) []string {
	lines := []string{fmt.Sprintf("created %s, changed %s, %d canisters", moment(info.Created), moment(info.Changed), info.Length)}
	if info.Owner != "" {
		lines = append(lines, "owner "+oneLine(info.Owner))
	}
	if info.Parent != "" {
		lines = append(lines, fmt.Sprintf("forked from %s at %d", oneLine(info.Parent), info.ParentLength))
	}
	return lines
}

// form writes conversations for people. Nothing that somebody said is markup in
// it.
type form struct {
	begin func(info history.Info) string
	part  func(p part) string
	end   string
}

var readable = map[string]form{
	"markdown": {markdownBegin, markdownPart, ""},
	"html":     {htmlBegin, htmlPart, "</body>\n</html>\n"},
}

func markdownBegin(info history.Info) string {
	text := "# " + markdownLine(titled(info)) + "\n"
	for _, fact := range facts(info) {
		text += "\n" + markdownLine(fact) + "\n"
	}
	return text
}

func markdownPart(p part) string {
	text := "\n## " + markdownLine(strings.TrimSpace(fmt.Sprintf("%d %s %s", p.place, p.heading(), p.time()))) + "\n"
	if said := strings.TrimRight(printable(p.text), "\n"); said != "" {
		fence := fenceFor(said)
		text += "\n" + fence + "\n" + said + "\n" + fence + "\n"
	}
	return text
}

// titled is what a conversation is called.
func titled(info history.Info) string {
	if title := oneLine(info.Title); title != "" {
		return title
	}
	return oneLine(info.ID)
}

// markdownLine is a line in which nothing is markup: CommonMark lets each
// character of ASCII punctuation be escaped (section 2.4).
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

// fenceFor is a fence of backticks that no line of the text ends (CommonMark,
// section 4.5): it is longer than any run of them.
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

// The page runs no script and loads nothing, whatever is said in it.
const htmlHead = `<!DOCTYPE html>
<html lang="und">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>%s</title>
<style>
body { font-family: sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f4f4; padding: .7em }
h2 { font-size: 1em } .user + pre { background: #e3eefa } time { font-weight: normal; color: #666 }
</style>
</head>
<body>
<h1>%[1]s</h1>
`

func htmlBegin(info history.Info) string {
	text := fmt.Sprintf(htmlHead, html.EscapeString(titled(info)))
	for _, fact := range facts(info) {
		text += "<p>" + html.EscapeString(fact) + "</p>\n"
	}
	return text
}

func htmlPart(p part) string {
	text := fmt.Sprintf("<h2 class=%q>%d %s <time>%s</time></h2>\n", html.EscapeString(string(p.kind)), p.place, html.EscapeString(p.heading()), p.time())
	if said := printable(p.text); said != "" {
		text += "<pre>\n" + html.EscapeString(said) + "</pre>\n"
	}
	return text
}
