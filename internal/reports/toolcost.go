// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/rendering"
	"github.com/consort-go/consort/internal/terminal"
)

// Costs renders for people how many tokens of each request the tools take, the most
// expensive ones first, and their share of a model's window, if it is known. Tools that the
// model has to find take none.
func (l *ToolList) Costs(paint terminal.Palette, window int64) string {
	byServer := map[string]int64{}
	var servers []string
	var total, hidden costs
	for _, t := range l.Tools {
		if _, there := byServer[t.Ensemble]; !there {
			servers = append(servers, t.Ensemble)
		}
		byServer[t.Ensemble] += t.Tokens
		if t.Shown {
			total.add(t.Tokens)
		} else {
			hidden.add(t.Tokens)
		}
	}
	if len(l.Tools) == 0 {
		return "no tools\n"
	}
	slices.SortStableFunc(servers, func(a, b string) int { return cmp.Compare(byServer[b], byServer[a]) })
	var text strings.Builder
	for _, server := range servers {
		fmt.Fprintf(&text, "%s  %s\n", paint.Bold(display.Text(server)), rendering.Tokens(byServer[server]))
		text.WriteString(terminal.Table(l.costRows(server), namesFirst(paint)))
	}
	fmt.Fprintf(&text, "%s: about %s tokens of each request", display.Count(total.tools, "tool"), rendering.Tokens(total.tokens))
	if window > 0 {
		fmt.Fprintf(&text, ", %.1f %% of the model's window of %s", 100*float64(total.tokens)/float64(window), rendering.Tokens(window))
	}
	if hidden.tools > 0 {
		fmt.Fprintf(&text, "\n%s that the model has to find: about %s tokens", display.Count(hidden.tools, "tool"), rendering.Tokens(hidden.tokens))
	}
	text.WriteString("\n")
	return text.String()
}

// costs is what some tools take.
type costs struct {
	tools  int
	tokens int64
}

func (c *costs) add(tokens int64) {
	c.tools++
	c.tokens += tokens
}

// costRows returns the tools of a server with their tokens.
func (l *ToolList) costRows(server string) (rows [][]string) {
	tools := slices.Clone(l.Tools)
	slices.SortStableFunc(tools, func(a, b toolJSON) int { return cmp.Compare(b.Tokens, a.Tokens) })
	for _, t := range tools {
		if t.Ensemble != server {
			continue
		}
		row := []string{"  " + t.Name, rendering.Tokens(t.Tokens)}
		if !t.Shown {
			row[1] += "  to be found"
		}
		rows = append(rows, row)
	}
	return rows
}
