// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"slices"
	"strings"
)

// minColumn is the least width of a column that has to be narrower than its content. With
// less room each row is shown as a list of its cells.
const minColumn = 8

// table is the head and the layout of a table. The first rows decide the layout.
type table struct {
	head    []string
	align   []alignment
	widths  []int // of the columns
	records bool  // the rows are lists
}

type alignment int

const (
	left alignment = iota
	center
	right
)

// tableLine adds a row to the table, or makes the last line of the paragraph the head of
// one. It reports whether the line belongs to a table.
func (b *blocks) tableLine(line string) bool {
	if b.leaf.kind == tabled && strings.Contains(line, "|") {
		b.addLine(line)
		return true
	}
	last := len(b.leaf.lines) - 1
	if b.leaf.kind != paragraph || last < 0 {
		return false
	}
	head := b.leaf.lines[last]
	align, ok := parseDelimiters(line)
	cells := splitRow(head)
	if !ok || len(align) != len(cells) || !strings.Contains(head+line, "|") {
		return false
	}
	b.leaf.lines = b.leaf.lines[:last]
	b.endLeaf()
	b.leaf = leaf{kind: tabled, table: table{head: cells, align: align}}
	return true
}

// parseDelimiters returns the alignments of the row below the head.
func parseDelimiters(line string) (align []alignment, ok bool) {
	for _, cell := range splitRow(line) {
		dashes := strings.TrimPrefix(strings.TrimSuffix(cell, ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return nil, false
		}
		switch {
		case strings.HasPrefix(cell, ":") && strings.HasSuffix(cell, ":"):
			align = append(align, center)
		case strings.HasSuffix(cell, ":"):
			align = append(align, right)
		default:
			align = append(align, left)
		}
	}
	return align, true
}

// splitRow returns the cells of a row, which are divided by bars without a backslash.
func splitRow(line string) []string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	var cells []string
	var cell strings.Builder
	for i := range len(line) {
		switch {
		case line[i] == '|' && i > 0 && line[i-1] == '\\':
			text := strings.TrimSuffix(cell.String(), `\`)
			cell.Reset()
			cell.WriteString(text + "|")
		case line[i] == '|':
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(line[i])
		}
	}
	if rest := strings.TrimSpace(cell.String()); rest != "" || len(cells) == 0 {
		cells = append(cells, rest)
	}
	return cells
}

// render returns the lines of some rows, after the head unless it was rendered before.
func (t *table) render(style Style, rows []string, width int, began bool) [][]span {
	cells := make([][][]span, len(rows))
	for i, row := range rows {
		cells[i] = t.cells(style, splitRow(row), ink{})
	}
	head := t.cells(style, t.head, boldInk)
	if !began {
		t.arrange(append([][][]span{head}, cells...), width)
	}
	var lines [][]span
	if t.records {
		for i, row := range cells {
			if i > 0 || began {
				lines = append(lines, nil)
			}
			lines = append(lines, t.record(head, row, width)...)
		}
		if len(cells) == 0 && !began {
			lines = t.record(head, make([][]span, len(head)), width)
		}
		return lines
	}
	if !began {
		lines = append(t.row(style, head), t.line(style))
	}
	for _, row := range cells {
		lines = append(lines, t.row(style, row)...)
	}
	return lines
}

// cells renders the cells of a row. Cells beyond the last column belong to it.
func (t *table) cells(style Style, row []string, with ink) [][]span {
	cells := make([][]span, len(t.head))
	for i := range row {
		if last := len(cells) - 1; i > last {
			cells[last] = append(cells[last], append([]span{{text: " | ", ink: faintInk}}, style.inline(row[i], with)...)...)
			continue
		}
		cells[i] = style.inline(row[i], with)
	}
	return cells
}

// arrange sets the widths of the columns: the width of their content, or else a fair share
// of the room that the narrower ones leave.
func (t *table) arrange(rows [][][]span, width int) {
	needs := make([]int, len(t.head))
	for _, row := range rows {
		for i, cell := range row {
			for _, line := range wrap(cell, 1<<20) {
				needs[i] = max(needs[i], columnsOfSpans(line))
			}
		}
	}
	left := width - 3*(len(needs)-1)
	order := make([]int, len(needs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return needs[a] - needs[b] })
	t.widths = make([]int, len(needs))
	for done, i := range order {
		share := left / (len(order) - done)
		t.widths[i] = max(1, min(needs[i], share))
		if needs[i] > share && share < minColumn {
			t.records = true
			return
		}
		left -= t.widths[i]
	}
	t.records = left < 0
}

// row returns the lines of a row.
func (t *table) row(style Style, cells [][]span) [][]span {
	wrapped := make([][][]span, len(cells))
	height := 1
	for i, cell := range cells {
		wrapped[i] = wrap(cell, t.widths[i])
		height = max(height, len(wrapped[i]))
	}
	lines := make([][]span, height)
	for n := range lines {
		for i := range cells {
			if i > 0 {
				lines[n] = append(lines[n], span{text: " " + style.symbols().bar + " ", ink: faintInk})
			}
			var cell []span
			if n < len(wrapped[i]) {
				cell = wrapped[i][n]
			}
			room := t.widths[i] - columnsOfSpans(cell)
			before := 0
			switch t.align[i] {
			case right:
				before = room
			case center:
				before = room / 2
			}
			lines[n] = append(lines[n], span{text: strings.Repeat(" ", before)})
			lines[n] = append(lines[n], cell...)
			lines[n] = append(lines[n], span{text: strings.Repeat(" ", room-before)})
		}
	}
	return lines
}

// line returns the line below the head.
func (t *table) line(style Style) []span {
	sign := style.symbols()
	parts := make([]string, len(t.widths))
	for i, width := range t.widths {
		parts[i] = strings.Repeat(sign.rule, width)
	}
	return []span{{text: strings.Join(parts, sign.rule+sign.cross+sign.rule), ink: faintInk}}
}

// record returns a row as a list of its cells.
func (t *table) record(head, cells [][]span, width int) [][]span {
	var lines [][]span
	for i, cell := range cells {
		line := slices.Concat(head[i], []span{{text: ": ", ink: boldInk}}, cell)
		for n, part := range wrap(line, width-2) {
			if n > 0 {
				part = append([]span{{text: "  "}}, part...)
			}
			lines = append(lines, part)
		}
	}
	return lines
}
