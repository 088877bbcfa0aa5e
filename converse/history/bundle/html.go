// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"html"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/transcript"
)

// page is a page of HTML that runs no scripts and loads nothing, whatever the
// conversation contains.
type page struct{}

const pageHead = `<!DOCTYPE html>
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
`

func (page) begin(first history.Info, count int) (string, error) {
	title := transcript.Title(first)
	if count > 1 {
		title = fmt.Sprintf("%d conversations", count)
	}
	return fmt.Sprintf(pageHead, html.EscapeString(title)), nil
}

func (page) end() string { return "</body>\n</html>\n" }

func (page) conversation(info history.Info) (string, error) {
	text := "<h1>" + html.EscapeString(transcript.Title(info)) + "</h1>\n"
	for _, fact := range transcript.Facts(info) {
		text += "<p>" + html.EscapeString(fact) + "</p>\n"
	}
	return text, nil
}

func (page) canister(number int, c canister.Canister) (string, error) {
	p := transcript.PartOf(transcript.Numbered{Number: number, Canister: c})
	text := fmt.Sprintf("<h2 class=%q>%d %s <time>%s</time></h2>\n", html.EscapeString(string(p.Kind)), p.Number, html.EscapeString(p.Heading()), p.When())
	if said := display.Text(p.Text); said != "" {
		text += "<pre>\n" + html.EscapeString(said) + "</pre>\n"
	}
	return text, nil
}
