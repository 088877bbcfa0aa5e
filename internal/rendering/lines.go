// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"strconv"
	"strings"
)

// headingLine renders a heading, and reports whether the line is one.
func (b *blocks) headingLine(line string) bool {
	level := headingLevel(line)
	if level == 0 {
		return false
	}
	b.endLeaf()
	title := strings.TrimSpace(line[level:])
	if bare := strings.TrimRight(title, "#"); bare == "" || strings.HasSuffix(bare, " ") {
		title = strings.TrimSpace(bare)
	}
	b.heading(level, title)
	return true
}

func (b *blocks) heading(level int, title string) {
	with := b.style.headingInk(level)
	spans := b.style.inline(title, with)
	if !b.style.Color {
		spans = append([]span{{text: strings.Repeat("#", level) + " "}}, spans...)
	}
	b.emit(wrap(spans, b.width()), true, false)
	b.heavy = false // the next block may be close
}

// headingLevel returns the level of a heading that begins with #, or 0.
func headingLevel(line string) int {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	if level > 6 || level < len(line) && line[level] != ' ' {
		return 0
	}
	return level
}

// ruleLine renders a thematic break, or makes the paragraph of one line before it a
// heading. It reports whether the line is one of them.
func (b *blocks) ruleLine(line string) bool {
	trimmed := strings.TrimRight(line, " ")
	if b.leaf.kind == paragraph && len(b.leaf.lines) == 1 && !b.leaf.began {
		level := 0
		switch {
		case strings.Trim(trimmed, "=") == "":
			level = 1
		case strings.Trim(trimmed, "-") == "":
			level = 2
		}
		if level > 0 {
			title := b.leaf.lines[0]
			b.leaf = leaf{}
			b.heading(level, title)
			return true
		}
	}
	if !isRule(line) {
		return false
	}
	b.endLeaf()
	b.emit([][]span{{{text: strings.Repeat(b.style.symbols().rule, min(b.width(), 40)), ink: faintInk}}}, true, false)
	return true
}

// isRule reports whether a line is a thematic break.
func isRule(line string) bool {
	bare := strings.ReplaceAll(strings.TrimRight(line, " "), " ", "")
	return len(bare) >= 3 && strings.ContainsAny(bare[:1], "*-_") && strings.Trim(bare, bare[:1]) == ""
}

// fenceLine opens a fenced block of code, and reports whether the line does.
func (b *blocks) fenceLine(line string, indent int) bool {
	f, ok := parseFence(line, indent)
	if !ok {
		return false
	}
	b.endLeaf()
	language, _, _ := strings.Cut(f.info, " ")
	b.leaf = leaf{kind: fenced, fence: f, code: highlighter{language: language}}
	return true
}

func parseFence(line string, indent int) (f fence, ok bool) {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !(mark == "`" && strings.Contains(rest, mark)) {
			return fence{mark: line[:n], info: strings.TrimSpace(rest), indent: indent}, true
		}
	}
	return fence{}, false
}

// fencedLine handles a line inside a fenced block.
func (b *blocks) fencedLine(line string, end bool) {
	f := b.leaf.fence
	at := indentOf(line)
	after := strings.TrimRight(line[at:], " ")
	if end && at <= 3 && len(after) >= len(f.mark) && strings.Trim(after, f.mark[:1]) == "" && after != "" {
		b.endLeaf()
		return
	}
	b.addLine(line[min(at, f.indent):])
}

// indentedLine handles a line of indented code.
func (b *blocks) indentedLine(line string) {
	if b.leaf.kind != indented {
		b.endLeaf()
		b.leaf.kind = indented
	}
	for ; b.leaf.gap > 0; b.leaf.gap-- {
		b.addLine("")
	}
	b.blank = b.blank && !b.leaf.began && len(b.leaf.lines) == 0
	b.addLine(line)
}

// codeLines renders lines of code, after a line with the info of its fence.
func (b *blocks) codeLines(source string, width int) [][]span {
	const margin = "  "
	l := &b.leaf
	var lines [][]span
	if !l.began && l.fence.info != "" {
		rule := strings.Repeat(b.style.symbols().rule, 2)
		lines = wrap([]span{{text: margin + rule + " " + l.fence.info, ink: faintInk}}, width)
	}
	if len(l.lines) == 0 {
		return lines
	}
	for _, line := range chop(l.code.highlight(b.style, source), width-len(margin)) {
		lines = append(lines, append([]span{{text: margin}}, line...))
	}
	return lines
}

// isItem reports whether a line begins with the marker of an item.
func isItem(line string) bool {
	_, _, ok := parseItem(line, 0)
	return ok
}

// parseItem returns the item that a line begins, and the rest of the line. Indent is how
// far the line is indented.
func parseItem(line string, indent int) (item container, content string, ok bool) {
	digits := 0
	for digits < len(line) && digits < 9 && line[digits] >= '0' && line[digits] <= '9' {
		digits++
	}
	marks := "-+*"
	if digits > 0 {
		marks = ".)"
	}
	end := digits + 1
	if len(line) < end || !strings.Contains(marks, line[digits:end]) || len(line) > end && line[end] != ' ' {
		return container{}, "", false
	}
	item = container{written: -1, column: indent}
	if digits > 0 {
		item.written, _ = strconv.Atoi(line[:digits]) // at most nine digits
		item.marker = line[digits:end]
	}
	content = line[end:]
	spaces := indentOf(content)
	if spaces == 0 || spaces > 4 || isBlank(content) {
		spaces = min(1, len(content))
	}
	item.indent = indent + end + max(1, spaces)
	return item, content[spaces:], true
}

// expandTabs replaces the tabs before the text of a line, and after the markers of
// containers, by spaces.
func expandTabs(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	for i := range len(line) {
		switch c := line[i]; {
		case c == '\t':
			b.WriteString(strings.Repeat(" ", tabStop-b.Len()%tabStop))
		case strings.IndexByte(" >-+*.)0123456789", c) >= 0:
			b.WriteByte(c)
		default:
			return b.String() + line[i:]
		}
	}
	return b.String()
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func isBlank(line string) bool { return strings.TrimLeft(line, " \t") == "" }
