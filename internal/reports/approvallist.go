// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"time"

	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/terminal"
)

// ApprovalList is the JSON output of consort approvals and consort approvals revoke.
type ApprovalList struct {
	Approvals []Approval `json:"approvals"`
}

// Approval is one stored approval.
type Approval struct {
	Name        string    `json:"name"` // as models see it
	Ensemble    string    `json:"ensemble"`
	Tool        string    `json:"tool"`
	Server      string    `json:"server"`
	Fingerprint string    `json:"fingerprint"`
	Allowed     time.Time `json:"allowed"`
}

// NewApprovalList returns the list of stored approvals.
func NewApprovalList(stored []approvals.Stored) *ApprovalList {
	l := ApprovalList{Approvals: []Approval{}}
	for _, one := range stored {
		l.Approvals = append(l.Approvals, Approval{one.Name(), one.Ensemble, one.Tool, one.Server, one.Fingerprint, one.Allowed})
	}
	return &l
}

// Text renders the list for people.
func (l *ApprovalList) Text(paint terminal.Palette) string {
	if len(l.Approvals) == 0 {
		return "no tool is always allowed\n"
	}
	var rows [][]string
	for _, one := range l.Approvals {
		rows = append(rows, []string{one.Name, "allowed on " + one.Allowed.Local().Format(time.DateOnly), display.Line(one.Server)})
	}
	return terminal.Table(rows, func(_, column int, cell string) string {
		switch column {
		case 0:
			return paint.Name(cell)
		case 2:
			return paint.Faint(cell)
		}
		return cell
	})
}
