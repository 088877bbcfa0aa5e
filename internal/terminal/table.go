// SPDX-License-Identifier: Apache-2.0

package terminal

import "strings"

// Table renders rows in columns, two spaces apart. Paint receives each padded cell with
// its row and column, and returns it coloured; nil leaves all cells plain.
func Table(rows [][]string, paint func(row, column int, cell string) string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		for j, cell := range row {
			if j < len(row)-1 {
				cell = pad(cell, widths[j]) + "  "
			}
			if paint != nil {
				cell = paint(i, j, cell)
			}
			b.WriteString(cell)
		}
		b.WriteString("\n")
	}
	return b.String()
}
