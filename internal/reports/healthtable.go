// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/terminal"
)

// Trouble returns the last error of an ensemble that is neither ready nor idle.
func Trouble(e ensemble.EnsembleHealth) string {
	if e.State == ensemble.Ready || e.State == ensemble.Idle {
		return ""
	}
	return display.Line(e.LastError)
}

// HealthList renders a short row for each ensemble, and its trouble below it.
func HealthList(h ensemble.Health, paint terminal.Palette) string {
	width := 0
	for _, e := range h.Ensembles {
		width = max(width, len(display.Line(e.Name)))
	}
	var b strings.Builder
	for _, e := range h.Ensembles {
		state := string(e.State)
		switch e.State {
		case ensemble.Ready:
			state = paint.Good(state)
		case ensemble.Idle:
		default:
			state = paint.Bad(state)
		}
		fmt.Fprintf(&b, "%-*s  %s for %s, %d tools, %d calls, %d failed\n", width, display.Line(e.Name), state, h.Time.Sub(e.Since).Truncate(time.Second), e.Tools, e.Calls, e.Failures)
		if trouble := Trouble(e); trouble != "" {
			fmt.Fprintf(&b, "  %s\n", trouble)
		}
	}
	return b.String()
}

// HealthTable renders a table with a row for each ensemble.
func HealthTable(h ensemble.Health, paint terminal.Palette) string {
	rows := [][]string{{"SERVER", "STATE", "FOR", "TOOLS", "CALLS", "FAILED", "NOW", "RESTARTS", "P50", "P99", "TROUBLE"}}
	for _, e := range h.Ensembles {
		rows = append(rows, []string{
			display.Line(e.Name), string(e.State), h.Time.Sub(e.Since).Truncate(time.Second).String(),
			strconv.Itoa(e.Tools), strconv.Itoa(e.Calls), strconv.Itoa(e.Failures), strconv.Itoa(e.InFlight), strconv.Itoa(e.Restarts),
			fmt.Sprintf("%.0f ms", jsontext.Milliseconds(e.Latency.P50)), fmt.Sprintf("%.0f ms", jsontext.Milliseconds(e.Latency.P99)), Trouble(e),
		})
	}
	return terminal.Table(rows, func(row, column int, cell string) string {
		switch {
		case row == 0:
			return paint.Faint(cell)
		case column == 1 && h.Ensembles[row-1].State == ensemble.Ready:
			return paint.Good(cell)
		case column == 1 && h.Ensembles[row-1].State != ensemble.Idle:
			return paint.Bad(cell)
		}
		return cell
	})
}
