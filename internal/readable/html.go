// SPDX-License-Identifier: Apache-2.0

package readable

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/transcript"
)

// page writes a page of HTML that runs no scripts and loads nothing, whatever the
// conversation contains: the text is sanitized, and the policy of the page forbids both.
type page struct {
	reader
	embedded int // bytes of the images in the page
}

//go:embed page.css
var style string

// policy allows the style of the page, by its hash, and images within the page. See
// Content Security Policy Level 3, sections 2.3.1, 6.1 and 8.4; a policy in the page itself
// cannot restrict who frames it.
var policy = fmt.Sprintf("default-src 'none'; img-src data:; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'",
	base64.StdEncoding.EncodeToString(hash(style)))

func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

const pageHead = `<!DOCTYPE html>
<html lang="und">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style>%s</style>
</head>
<body>
`

func (p *page) begin(first history.Info, isOne bool) string {
	title := p.line(transcript.Title(first))
	if !isOne {
		title = "Conversations"
	}
	return fmt.Sprintf(pageHead, policy, html.EscapeString(title), style)
}

func (p *page) end() string { return "</body>\n</html>\n" }

func (p *page) conversation(info history.Info) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<h1>%s</h1>\n", html.EscapeString(p.line(transcript.Title(info))))
	for _, fact := range p.facts(info) {
		fmt.Fprintf(&b, "<p class=\"fact\">%s</p>\n", html.EscapeString(fact))
	}
	return b.String()
}

func (p *page) message(m message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<section class=\"%s\">\n%s", html.EscapeString(string(m.Kind)), pageHeading(html.EscapeString(m.heading), m.Part, m.remarks))
	text := p.pieces(m)
	switch {
	case !m.isMarkdown && long(text), m.Kind == canister.KindSupervisor:
		fmt.Fprintf(&b, "<details><summary>Show</summary>\n%s</details>\n", p.contents(text, m.hardWraps))
	default:
		b.WriteString(p.contents(text, m.hardWraps))
	}
	b.WriteString("</section>\n")
	return b.String()
}

func (p *page) call(c call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<section class=\"%s\">\n%s", c.class(), pageHeading("Call of <code>"+html.EscapeString(c.About)+"</code>", c.Part, c.remarks))
	if c.folded != "" {
		fmt.Fprintf(&b, "<details><summary>%s</summary>\n%s</details>\n", html.EscapeString(c.folded), p.body(c))
	} else {
		b.WriteString(p.body(c))
	}
	b.WriteString("</section>\n")
	return b.String()
}

func (c call) class() string {
	if c.result != nil && len(c.result.remarks) > 0 {
		return "call failed"
	}
	return "call"
}

// body returns a call without its heading.
func (p *page) body(c call) string {
	var b strings.Builder
	b.WriteString(details("Arguments", p.contents([]piece{{kind: asJSON, text: c.arguments}}, false), false))
	if c.changed != "" {
		b.WriteString(details("Called with", p.contents([]piece{{kind: asJSON, text: c.changed}}, false), false))
	}
	for _, note := range c.notes {
		inner := p.contents(remaining(note.Text), false)
		b.WriteString(details(strings.Join(remarks(fmt.Sprintf("%d %s", note.Number, note.Heading()), note.When()), " · "), inner, true))
	}
	for _, inner := range c.calls {
		b.WriteString(p.innerCall(inner))
	}
	if c.result == nil {
		b.WriteString("<p class=\"other\">No result.</p>\n")
		return b.String()
	}
	text := p.pieces(*c.result)
	summary := strings.Join(append([]string{fmt.Sprint(c.result.Number, " ", c.result.heading)}, c.result.remarks...), " · ")
	b.WriteString(details(summary, p.contents(text, false), long(text)))
	return b.String()
}

// innerCall returns a call of a program as one line that unfolds.
func (p *page) innerCall(c call) string {
	line := []string{fmt.Sprintf("%d Call of %s", c.Number, c.About)}
	if c.result == nil {
		line = append(line, "no result")
	} else {
		line = append(line, c.result.remarks...)
	}
	return fmt.Sprintf("<div class=\"%s\">\n%s</div>\n", c.class(), details(strings.Join(append(line, c.remarks...), " · "), p.body(c), true))
}

// remaining returns a text as pieces, or nil for an empty text.
func remaining(text string) []piece {
	if text == "" {
		return nil
	}
	return []piece{{kind: asText, text: text}}
}

// details returns content that folds.
func details(summary, content string, folded bool) string {
	open := " open"
	if folded {
		open = ""
	}
	return fmt.Sprintf("<details%s><summary>%s</summary>\n%s</details>\n", open, html.EscapeString(summary), content)
}

// pageHeading returns the heading of a message or a call, whose subject is HTML.
func pageHeading(subject string, part transcript.Part, remarks []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<h2><span class=\"number\">%d</span> %s", part.Number, subject)
	for _, remark := range remarks {
		fmt.Fprintf(&b, " <span class=\"remark\">%s</span>", html.EscapeString(remark))
	}
	if !part.Time.IsZero() {
		fmt.Fprintf(&b, " <time datetime=\"%s\">%s</time>", part.Time.UTC().Format(time.RFC3339), html.EscapeString(part.When()))
	}
	b.WriteString("</h2>\n")
	return b.String()
}

// Content that is longer is folded at first.
const (
	longLines = 40
	longBytes = 4000
)

// long reports whether content is folded at first.
func long(all []piece) bool {
	lines, bytes := 0, 0
	for _, one := range all {
		lines, bytes = lines+1+strings.Count(one.text, "\n"), bytes+len(one.text)
	}
	return lines > longLines || bytes > longBytes
}

// contents returns content as HTML.
func (p *page) contents(all []piece, hardWraps bool) string {
	var b strings.Builder
	for _, one := range all {
		switch one.kind {
		case asMarkdown:
			b.WriteString("<div class=\"text\">\n" + Fragment(one.text, hardWraps) + "</div>\n")
		case asText, asJSON:
			b.WriteString(preformatted(one.text))
		case asImage:
			b.WriteString(p.image(one))
		case asLine:
			b.WriteString(otherLine(one.text))
		}
	}
	return b.String()
}

func preformatted(text string) string {
	return "<pre>\n" + html.EscapeString(strings.TrimRight(text, "\n")) + "</pre>\n"
}

func otherLine(text string) string { return "<p class=\"other\">" + html.EscapeString(text) + "</p>\n" }

// Bounds of the images in a page, before they are encoded. A larger one is described.
const (
	maxImage  = 2 << 20
	maxImages = 16 << 20
)

// pictures are the media types of images that are put into a page. They have no scripts and
// refer to nothing.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// image returns an image within the page, or its description.
func (p *page) image(one piece) string {
	mime := http.DetectContentType(one.data)
	if !slices.Contains(pictures, mime) || len(one.data) > maxImage || p.embedded+len(one.data) > maxImages {
		return otherLine(one.text)
	}
	p.embedded += len(one.data)
	return fmt.Sprintf("<p><img alt=\"%s\" src=\"data:%s;base64,%s\"></p>\n", html.EscapeString(one.text), mime, base64.StdEncoding.EncodeToString(one.data))
}
