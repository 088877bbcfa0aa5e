// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"cmp"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/terminal"
)

// PromptList is the JSON output of consort prompts.
type PromptList struct {
	Prompts []promptJSON `json:"prompts"`
	Aside   []Aside      `json:"aside"`
	Away    []Away       `json:"away"`
}

type promptJSON struct {
	Name        string          `json:"name"` // the roster's
	Ensemble    string          `json:"ensemble"`
	Prompt      string          `json:"prompt"` // the server's
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Arguments   []argumentJSON  `json:"arguments"`
	Metadata    canister.Fields `json:"metadata,omitempty"` // data without a field of its own, by name: mcp/icons, mcp/_meta
}

type argumentJSON struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required"`
	Metadata    canister.Fields `json:"metadata,omitempty"`
}

// NewPromptList lists the prompts of a roster.
func NewPromptList(all *ensemble.Prompts) *PromptList {
	list := &PromptList{Prompts: []promptJSON{}, Aside: asides(all.Aside), Away: aways(all.Away)}
	for _, p := range all.Prompts {
		form := promptJSON{p.FullName(), p.Ensemble, p.Name, p.Title, p.Description, []argumentJSON{}, p.Metadata}
		for _, a := range p.Arguments {
			form.Arguments = append(form.Arguments, argumentJSON(a))
		}
		list.Prompts = append(list.Prompts, form)
	}
	return list
}

// Text renders the list for people, grouped by ensemble.
func (l *PromptList) Text(paint terminal.Palette, roster *ensemble.Roster) string {
	listed := listing{paint: paint}
	for _, e := range roster.Ensembles() {
		var rows [][]string
		for _, prompt := range l.Prompts {
			if prompt.Ensemble == e.Name() {
				rows = append(rows, []string{"  " + display.Line(prompt.Name+prompt.signature()), terminal.Fit(display.Line(cmp.Or(prompt.Title, prompt.Description)), 80)})
			}
		}
		listed.add(e.Name(), rows, l.Aside)
	}
	return listed.or("no prompts\n")
}

// signature lists the arguments, with optional ones in brackets.
func (p *promptJSON) signature() string {
	var b strings.Builder
	for _, a := range p.Arguments {
		if a.Required {
			b.WriteString(" " + a.Name)
		} else {
			b.WriteString(" [" + a.Name + "]")
		}
	}
	return b.String()
}
