// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds how deep quotes and lists are nested; deeper markers are text.
const maxDepth = 16

// blocks finds the blocks of markdown (CommonMark 0.31.2, and tables as in GitHub
// Flavored Markdown 0.29) line by line, and renders each one when it ends.
type blocks struct {
	style   Style
	out     []string // lines that were rendered since the last flush
	open    []container
	leaf    leaf
	started bool // a block was rendered
	blank   bool // there was an empty line since the last block
	heavy   bool // the last block is set off by empty lines
}

// container is a quote or an item of a list.
type container struct {
	quote   bool
	marker  string // of an item, as it is shown
	written int    // the number of an item in its source; -1 if it has none
	number  int    // the number that is shown
	column  int    // where the marker of an item begins, in columns after the outer container
	indent  int    // where its content begins
	shown   bool   // the marker was rendered
}

// leafKind is the kind of a block that contains no others.
type leafKind int

const (
	noLeaf leafKind = iota
	paragraph
	fenced
	indented
	tabled
)

// leaf is the block that is not finished.
type leaf struct {
	kind  leafKind
	lines []string
	size  int  // of lines, in bytes
	began bool // a part of the block is finished
	fence fence
	code  highlighter
	table table
	gap   int // empty lines after indented code, which belong to it if more follows
}

// fence is the line that opens a fenced block of code.
type fence struct {
	mark   string
	info   string
	indent int
}

// clone returns a copy that shares nothing that changes.
func (b *blocks) clone() *blocks {
	c := &blocks{style: b.style, open: slices.Clone(b.open), leaf: b.leaf, started: b.started, blank: b.blank, heavy: b.heavy}
	c.leaf.lines = slices.Clip(slices.Clone(b.leaf.lines))
	return c
}

// flush returns the lines that were rendered since the last flush.
func (b *blocks) flush() []string {
	lines := b.out
	b.out = nil
	return lines
}

// finish ends all blocks.
func (b *blocks) finish() {
	b.endLeaf()
	b.leave(0)
}

// line adds a line of source, or a part of one: middle is set if the line began before,
// and end is set if it ends here.
func (b *blocks) line(text string, middle, end bool) {
	if middle {
		b.continueLine(text)
		return
	}
	text = expandTabs(text)
	depth, rest := b.match(text)
	if depth == len(b.open) && b.leaf.kind == fenced {
		b.fencedLine(rest, end)
		return
	}
	if isBlank(rest) {
		b.blankLine(depth)
		return
	}
	inParagraph := b.leaf.kind == paragraph
	if depth < len(b.open) && inParagraph && !b.begins(rest, depth) {
		b.addLine(strings.TrimLeft(rest, " ")) // a lazy continuation
		return
	}
	if depth < len(b.open) {
		b.endLeaf()
		previous := b.open[depth]
		b.leave(depth)
		rest = b.enter(rest, &previous)
	} else {
		rest = b.enter(rest, nil)
	}
	b.content(rest, end)
}

// continueLine adds the next part of a line that was too long.
func (b *blocks) continueLine(text string) {
	switch last := len(b.leaf.lines) - 1; {
	case b.leaf.kind == noLeaf || b.leaf.kind == tabled:
		b.endLeaf()
		b.leaf.kind = paragraph
		b.addLine(text)
	case last < 0:
		b.addLine(text)
	default:
		b.leaf.lines[last] += text
		b.leaf.size += len(text)
		b.bound()
	}
}

// match removes the prefixes of the open containers from a line. It returns how many of
// them the line continues, and the rest.
func (b *blocks) match(text string) (depth int, rest string) {
	rest = text
	for i, c := range b.open {
		at := indentOf(rest)
		switch {
		case c.quote && at <= 3 && strings.HasPrefix(rest[at:], ">"):
			rest = strings.TrimPrefix(rest[at+1:], " ")
		case c.quote:
			return i, rest
		case isBlank(rest):
			rest = ""
		case at >= c.indent:
			rest = rest[c.indent:]
		case at >= c.column+2 && isItem(rest[at:]): // models indent by two where three are due
			rest = rest[at:]
		default:
			return i, rest
		}
	}
	return len(b.open), rest
}

// enter opens the containers that begin in a line and returns the rest. Previous is the
// outermost container that the line ended, if it did.
func (b *blocks) enter(rest string, previous *container) string {
	for len(b.open) < maxDepth {
		at := indentOf(rest)
		if at > 3 {
			return rest
		}
		after := rest[at:]
		if quoted, ok := strings.CutPrefix(after, ">"); ok {
			b.endLeaf()
			previous = nil
			b.open = append(b.open, container{quote: true})
			rest = strings.TrimPrefix(quoted, " ")
			continue
		}
		item, content, ok := parseItem(after, at)
		if !ok || isRule(after) || b.leaf.kind == paragraph && !interrupts(&item, content) {
			return rest
		}
		b.endLeaf()
		item.show(b.style.symbols().bullet, previous)
		previous = nil
		b.open = append(b.open, item)
		rest = content
	}
	return rest
}

// begins reports whether a line that does not continue the containers from depth on
// begins a block, rather than continuing the paragraph inside them.
func (b *blocks) begins(rest string, depth int) bool {
	at := indentOf(rest)
	if at > 3 {
		return false
	}
	after := rest[at:]
	if item, content, ok := parseItem(after, at); ok && (!b.open[depth].quote || interrupts(&item, content)) {
		return true
	}
	_, isFence := parseFence(after, at)
	return strings.HasPrefix(after, ">") || isFence || isRule(after) || headingLevel(after) > 0
}

// interrupts reports whether an item can follow a paragraph without an empty line.
func interrupts(item *container, content string) bool {
	return !isBlank(content) && (item.written < 0 || item.written == 1)
}

// leave closes containers down to a depth.
func (b *blocks) leave(depth int) {
	for i, c := range b.open[depth:] {
		if !c.quote && !c.shown { // an empty item
			whole := b.open
			b.open = b.open[:depth+i+1]
			b.emit([][]span{nil}, false, false)
			b.open = whole
		}
	}
	b.open = b.open[:depth]
}

// blankLine handles an empty line.
func (b *blocks) blankLine(depth int) {
	if b.leaf.kind == indented && depth == len(b.open) {
		b.leaf.gap++
		b.blank = true
		return
	}
	b.endLeaf()
	b.leave(depth)
	b.blank = true
}

// content handles the rest of a line after its containers.
func (b *blocks) content(rest string, end bool) {
	at := indentOf(rest)
	after := rest[at:]
	switch {
	case isBlank(rest): // an empty item or quote
	case at > 3 && b.leaf.kind != paragraph:
		b.indentedLine(rest[4:])
	case at > 3 || !end:
		b.text(after)
	case b.headingLine(after), b.fenceLine(after, at), b.ruleLine(after), b.tableLine(after):
	default:
		b.text(after)
	}
}

// text adds a line to the paragraph.
func (b *blocks) text(line string) {
	if b.leaf.kind != paragraph {
		b.endLeaf()
		b.leaf.kind = paragraph
	}
	b.addLine(line)
}

// addLine adds a line to the leaf.
func (b *blocks) addLine(line string) {
	b.leaf.lines = append(b.leaf.lines, line)
	b.leaf.size += len(line) + 1
	b.bound()
}

// bound renders the leaf as far as it has come, if it is too long.
func (b *blocks) bound() {
	if b.leaf.size > maxBlock || b.leaf.kind != paragraph && len(b.leaf.lines) >= maxLines {
		b.renderLeaf()
	}
}

// maxLines bounds the lines of code and the rows of a table that are held back.
const maxLines = 24

// endLeaf renders the rest of the leaf and ends it.
func (b *blocks) endLeaf() {
	if b.leaf.kind == fenced && !b.leaf.began && len(b.leaf.lines) == 0 {
		b.renderLeaf() // an empty fence has its info
	}
	if len(b.leaf.lines) > 0 || b.leaf.kind == tabled {
		b.renderLeaf()
	}
	b.leaf = leaf{}
}

// renderLeaf renders the lines of the leaf, which stays open.
func (b *blocks) renderLeaf() {
	l := &b.leaf
	source := strings.Join(l.lines, "\n")
	width := b.width()
	var lines [][]span
	switch l.kind {
	case paragraph:
		lines = wrap(b.style.inline(source, ink{}), width)
	case fenced, indented:
		lines = b.codeLines(source, width)
	case tabled:
		lines = l.table.render(b.style, l.lines, width, l.began)
	}
	b.emit(lines, l.kind != paragraph, l.began)
	l.began = true
	l.lines, l.size = nil, 0
}

// emit writes lines inside the open containers. Heavy blocks are set off from their
// neighbours; a block continues if its beginning was written before.
func (b *blocks) emit(lines [][]span, heavy, continues bool) {
	if len(lines) == 0 {
		return
	}
	inItem := slices.ContainsFunc(b.open, func(c container) bool { return !c.quote })
	if b.started && !continues && (b.blank || !inItem && (heavy || b.heavy)) {
		b.out = append(b.out, b.style.row(b.prefix(true)...))
	}
	for _, line := range lines {
		b.out = append(b.out, b.style.row(append(b.prefix(false), line...)...))
		for i := range b.open {
			b.open[i].shown = true
		}
	}
	b.started, b.blank, b.heavy = true, false, heavy
}

// prefix returns what the open containers write before a line. A separator is a line
// between two blocks; containers that are new have none.
func (b *blocks) prefix(separator bool) []span {
	var spans []span
	for _, c := range b.open[b.visibleFrom():] {
		switch {
		case separator && !c.shown:
			return spans
		case c.quote:
			spans = append(spans, span{text: b.style.symbols().bar + " ", ink: faintInk})
		case c.shown:
			spans = append(spans, span{text: strings.Repeat(" ", columns(c.marker))})
		default:
			spans = append(spans, span{text: c.marker, ink: ink{color: b.style.headingInk(2).color}})
		}
	}
	return spans
}

// visibleFrom returns the outermost container whose prefix is shown: all prefixes together
// take at most half of the width.
func (b *blocks) visibleFrom() int {
	room := b.style.width() / 2
	for i := len(b.open) - 1; i >= 0; i-- {
		if room -= b.open[i].columns(); room < 0 {
			return i + 1
		}
	}
	return 0
}

// width returns the columns that the open containers leave to a leaf.
func (b *blocks) width() int {
	width := b.style.width()
	for _, c := range b.open[b.visibleFrom():] {
		width -= c.columns()
	}
	return width
}

func (c *container) columns() int {
	if c.quote {
		return 2
	}
	return columns(c.marker)
}

// show sets the marker that is shown. Previous is the container in the place of the item
// before it: if it has the same number, the list counts by itself.
func (c *container) show(bullet string, previous *container) {
	if c.written < 0 {
		c.marker = bullet + " "
		return
	}
	c.number = c.written
	if previous != nil && !previous.quote && previous.written == c.written {
		c.number = previous.number + 1
	}
	c.marker = strconv.Itoa(c.number) + c.marker + " "
}
