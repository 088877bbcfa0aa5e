// SPDX-License-Identifier: Apache-2.0

package readable

import (
	"bytes"
	"cmp"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/internal/display"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// parse returns the syntax tree of a text.
func parse(source []byte) ast.Node { return markdownParser().Parse(text.NewReader(source)) }

var markdownParser = sync.OnceValue(func() parser.Parser { return goldmark.New(dialect()).Parser() })

// maxRounds bounds how often a text is parsed again because an edit has changed its
// structure.
const maxRounds = 12

// contained returns a text of Markdown that stays within its place in a document, whatever
// follows: its headings are below the headings of the document, all its blocks are closed, and it has
// no raw HTML, no images, no definitions of links, which would be valid in the whole
// document, and no links other than to the web and to mail. A text that cannot be made so,
// or is too long to be parsed, becomes a block of code.
func contained(said string) string {
	source := bytes.Trim([]byte(said), "\n")
	for round := range maxRounds {
		if len(source) > maxRendered {
			break
		}
		all, done := edits(source, parse(source), round == 0)
		next := apply(source, all)
		switch {
		case done && bytes.Equal(next, source):
			if closed, ok := closeFence(source); ok {
				return string(closed)
			}
			return strings.Trim(fenced("", said), "\n")
		case bytes.Equal(next, source): // an edit could not find its place
			return strings.Trim(fenced("", said), "\n")
		}
		source = next
	}
	return strings.Trim(fenced("", said), "\n")
}

// edit replaces a part of a text.
type edit struct {
	start, end int
	with       string
}

// apply applies edits; one that overlaps an earlier one is left out.
func apply(source []byte, all []edit) []byte {
	slices.SortFunc(all, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.with, b.with))
	})
	var next []byte
	at := 0
	for _, e := range slices.Compact(all) {
		if e.start < at || e.end < e.start || e.end > len(source) {
			continue
		}
		next = append(append(next, source[at:e.start]...), e.with...)
		at = e.end
	}
	return append(next, source[at:]...)
}

// editor collects the edits that a text needs.
type editor struct {
	source []byte
	first  bool // in the first round all headings are moved, and later only the ones with a level of the document
	edits  []edit
	needed bool // something must not stay as it is
}

// edits returns the edits that a text needs. Further ones may be needed after them, unless
// done is set.
func edits(source []byte, root ast.Node, first bool) (all []edit, done bool) {
	e := editor{source: source, first: first}
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			e.visit(node)
		}
		return ast.WalkContinue, nil
	})
	return e.edits, !e.needed
}

func (e *editor) visit(node ast.Node) {
	switch n := node.(type) {
	case *ast.Heading:
		if e.first || n.Level <= headingOffset {
			e.edits = append(e.edits, demote(e.source, n)...)
			e.needed = true
		}
	case *ast.HTMLBlock:
		for i := range n.Lines().Len() {
			if line := n.Lines().At(i); bytes.IndexByte(e.source[line.Start:line.Stop], '<') >= 0 {
				e.escape(line.Start+bytes.IndexByte(e.source[line.Start:line.Stop], '<'), '<')
			}
		}
		e.escape(n.Pos(), '<')
	case *ast.RawHTML:
		e.escape(n.Pos(), '<')
	case *ast.Image:
		e.escape(n.Pos(), '!')
	case *ast.Link:
		if !linkable(string(util.URLEscape(n.Destination, true))) {
			e.escape(n.Pos(), '[')
		}
	case *ast.AutoLink:
		if at := n.Pos(); at >= 0 && at < len(e.source) && e.source[at] == '<' && n.AutoLinkType == ast.AutoLinkURL && !linkable(string(n.URL(e.source))) {
			e.escape(at, '<')
		}
	case *ast.LinkReferenceDefinition:
		at := max(0, n.Pos())
		e.escape(at+bytes.IndexByte(e.source[at:], '['), '[')
	case *ast.Text:
		if !n.IsRaw() {
			found := escapeReferences(e.source, n.Segment)
			e.edits, e.needed = append(e.edits, found...), e.needed || len(found) > 0
		}
	}
}

// escape escapes a character, which should stand at the position.
func (e *editor) escape(at int, c byte) {
	e.needed = true
	if at >= 0 && at < len(e.source) && e.source[at] == c {
		e.edits = append(e.edits, edit{at, at, `\`})
	}
}

// references matches a reference to a character without its ampersand (CommonMark, section
// 2.5). The longest name has 31 letters.
const references = `(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});`

var reference = regexp.MustCompile(`&` + references)

// escapeReferences escapes the references to invisible characters.
func escapeReferences(source []byte, segment text.Segment) (all []edit) {
	for _, at := range reference.FindAllIndex(source[segment.Start:segment.Stop], -1) {
		start, end := segment.Start+at[0], segment.Start+at[1]
		if strings.ContainsFunc(html.UnescapeString(string(source[start:end])), display.IsInvisible) && !isEscaped(source, start) {
			all = append(all, edit{start, start, `\`})
		}
	}
	return all
}

// isEscaped reports whether a backslash escapes the character at a position.
func isEscaped(source []byte, at int) bool {
	n := 0
	for at > n && source[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// demote moves a heading below the headings of the document.
func demote(source []byte, n *ast.Heading) []edit {
	marks := strings.Repeat("#", demoted(n.Level))
	at := n.Pos()
	if at < 0 || at >= len(source) {
		return nil
	}
	if run := len(source[at:]) - len(bytes.TrimLeft(source[at:], "#")); run == n.Level {
		return []edit{{at, at + run, marks}}
	}
	return underlined(source, n, marks)
}

// underlined makes a heading that is underlined one that begins with marks.
func underlined(source []byte, n *ast.Heading, marks string) []edit {
	lines := n.Lines()
	if lines.Len() == 0 {
		return nil
	}
	all := []edit{{lines.At(0).Start, lines.At(0).Start, marks + " "}}
	for i := range lines.Len() {
		end := lines.At(i).Start + len(bytes.TrimRight(source[lines.At(i).Start:lines.At(i).Stop], " \t\n\\"))
		next := endOfLine(source, lines.At(i).Stop) // of the underline
		if i+1 < lines.Len() {
			next = lines.At(i + 1).Start
			all = append(all, edit{end, next, " "})
			continue
		}
		all = append(all, edit{end, next, ""})
	}
	return all
}

// endOfLine returns where the line that begins at a position ends, without its line break.
func endOfLine(source []byte, at int) int {
	if at > 0 && at <= len(source) && source[at-1] != '\n' { // the line break is at the position
		at++
	}
	if at >= len(source) {
		return len(source)
	}
	if end := bytes.IndexByte(source[at:], '\n'); end >= 0 {
		return at + end
	}
	return len(source)
}

// closeFence closes a block of code at the end of a text that has no end of its own, and
// reports whether a heading after the text would be one.
func closeFence(source []byte) (closed []byte, ok bool) {
	for range 2 {
		last := parse(append(bytes.Clone(source), "\n\n## x\n"...)).LastChild()
		switch n := last.(type) {
		case *ast.Heading:
			return source, n.Level == headingOffset && n.Pos() == len(source)+2
		case *ast.FencedCodeBlock:
			if at := n.Pos(); at >= 0 && at < len(source) {
				fence := source[at : len(source)-len(bytes.TrimLeft(source[at:], string(source[at])))]
				source = append(append(bytes.Clone(source), '\n'), fence...)
				continue
			}
		}
		return nil, false
	}
	return nil, false
}
