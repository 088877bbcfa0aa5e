// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/internal/display"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// inlineParser parses the text of one paragraph. The blocks are found by [blocks], as the
// text streams in.
var inlineParser = parser.NewParser(
	parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 100)),
	parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewLinkifyParser(), 999))...),
)

// inline returns the spans of a paragraph, a heading or a cell of a table. Newlines of the
// source stay newlines.
func (s Style) inline(source string, base ink) []span {
	w := inlineWriter{style: s, source: []byte(source)}
	document := inlineParser.Parse(text.NewReader(w.source))
	for block := document.FirstChild(); block != nil; block = block.NextSibling() {
		if block != document.FirstChild() {
			w.put("\n", base)
		}
		w.children(block, base)
	}
	return w.spans
}

// inlineWriter turns inline nodes into spans.
type inlineWriter struct {
	style  Style
	source []byte
	spans  []span
}

func (w *inlineWriter) put(text string, with ink) {
	if text != "" {
		w.spans = append(w.spans, span{text: text, ink: with})
	}
}

func (w *inlineWriter) children(node ast.Node, with ink) {
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		w.node(child, with)
	}
}

func (w *inlineWriter) node(node ast.Node, with ink) {
	switch n := node.(type) {
	case *ast.Text:
		w.text(n, with)
	case *ast.String:
		w.put(unescape(string(n.Value)), with)
	case *ast.CodeSpan:
		with.color = w.style.codeInk().color
		w.marked("`", node, with)
	case *ast.Emphasis:
		if n.Level == 1 {
			with.italic = true
		} else {
			with.bold = true
		}
		w.marked(strings.Repeat("*", n.Level), node, with)
	case *extensionast.Strikethrough:
		with.crossed = true
		w.marked("~~", node, with)
	case *ast.Link:
		w.link(node, string(n.Destination), string(n.Title), with)
	case *ast.Image:
		w.put("image: ", faintInk)
		w.link(node, string(n.Destination), string(n.Title), with)
	case *ast.AutoLink:
		label := string(n.Label(w.source))
		target := label
		if n.AutoLinkType == ast.AutoLinkEmail {
			target = "mailto:" + label
		}
		w.target(label, target)
	case *ast.RawHTML:
		w.html(n, with)
	default:
		w.children(node, with)
	}
}

func (w *inlineWriter) text(n *ast.Text, with ink) {
	value := string(n.Segment.Value(w.source))
	if !n.IsRaw() {
		value = unescape(value)
	}
	w.put(value, with)
	if n.SoftLineBreak() || n.HardLineBreak() {
		w.put("\n", with)
	}
}

// html writes a tag as it is in the source, except for a line break.
func (w *inlineWriter) html(n *ast.RawHTML, with ink) {
	var tag strings.Builder
	for i := range n.Segments.Len() {
		segment := n.Segments.At(i)
		tag.Write(segment.Value(w.source))
	}
	switch strings.ToLower(strings.ReplaceAll(tag.String(), " ", "")) {
	case "<br>", "<br/>":
		w.put("\n", with)
	default:
		with.faint = true
		w.put(tag.String(), with)
	}
}

// marked writes children in an ink, or between marks if there are no colours.
func (w *inlineWriter) marked(mark string, node ast.Node, with ink) {
	if w.style.Color {
		mark = ""
	}
	w.put(mark, with)
	w.children(node, with)
	w.put(mark, with)
}

// link writes a text and its target in parentheses, so that the target is visible. Only
// the target becomes a hyperlink: it leads where it says.
func (w *inlineWriter) link(node ast.Node, target, title string, with ink) {
	before := len(w.spans)
	w.children(node, with)
	var label strings.Builder
	for _, one := range w.spans[before:] {
		label.WriteString(one.text)
	}
	target, title = unescape(target), unescape(title)
	if label.String() == target && title == "" {
		w.spans = w.spans[:before]
		w.target(target, target)
		return
	}
	w.put(" (", with)
	if label.Len() == 0 {
		w.spans[len(w.spans)-1].text = "("
	}
	w.target(target, target)
	if title != "" {
		w.put(` "`+title+`"`, with)
	}
	w.put(")", with)
}

// target writes a URL, which leads to a target that may be more complete.
func (w *inlineWriter) target(shown, target string) {
	if shown != "" {
		w.spans = append(w.spans, span{text: shown, ink: w.style.linkInk(), link: target})
	}
}

// unescape resolves backslashes before punctuation and references to characters, such as
// &amp; (CommonMark 0.31.2, 2.4 and 2.5). Invisible characters are made visible.
func unescape(source string) string {
	if !strings.ContainsAny(source, `\&`) {
		return source
	}
	var b strings.Builder
	for source != "" {
		at := strings.IndexAny(source, `\&`)
		if at < 0 {
			b.WriteString(source)
			break
		}
		b.WriteString(source[:at])
		source = source[at:]
		if source[0] == '&' {
			if value, n := reference(source); n > 0 {
				before, _ := utf8.DecodeLastRuneInString(b.String())
				b.WriteString(display.Continue(before, value))
				source = source[n:]
				continue
			}
		} else if len(source) > 1 && util.IsPunct(source[1]) {
			source = source[1:]
		}
		b.WriteByte(source[0])
		source = source[1:]
	}
	return b.String()
}

// maxReference bounds the length of the name of a character.
const maxReference = 40

// reference returns the characters that a reference at the start of source stands for, and
// its length; 0 if there is none.
func reference(source string) (value string, n int) {
	name, _, ok := strings.Cut(source[1:min(len(source), maxReference)], ";")
	if !ok || name == "" {
		return "", 0
	}
	n = len(name) + 2
	digits, numeric := strings.CutPrefix(name, "#")
	if !numeric {
		entity, known := util.LookUpHTML5EntityByName(name)
		if !known {
			return "", 0
		}
		return string(entity.Characters), n
	}
	base := 10
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
		digits, base = hex, 16
	}
	code, err := strconv.ParseUint(digits, base, 21)
	if err != nil {
		return "", 0
	}
	switch code {
	case 0:
		code = utf8.RuneError
	case '\r': // display drops it at the end of a text
		return "<U+000D>", n
	}
	return string(rune(code)), n
}
