// SPDX-License-Identifier: Apache-2.0

package chatui

import (
	"fmt"
	"strings"

	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
)

// maxEcho bounds the rows of a message that was sent.
const maxEcho = 12

// echo returns the rows of a message that was sent.
func (m *model) echo(text string) []string {
	var rows []string
	for line := range strings.SplitSeq(display.Text(text), "\n") {
		rows = append(rows, wrap(line, m.columns()-2)...)
	}
	if more := len(rows) - maxEcho; more > 1 {
		rows = append(rows[:maxEcho], fmt.Sprintf("… and %d more lines", more))
	}
	for i, row := range rows {
		mark := "  "
		if i == 0 {
			mark = "> "
		}
		rows[i] = m.paint.Bold(mark + row)
	}
	return rows
}

// approvalRows returns the rows of a question for an approval.
func approvalRows(style rendering.Style, paint terminal.Palette, ask approvals.Question) []string {
	rows := rendering.Question(style, ask.Approval, ask.ReadOnly)
	if ask.Changed {
		rows = append(rows, wrap("  "+paint.Bad(approvals.ChangedWarning), style.Width)...)
	}
	return rows
}
