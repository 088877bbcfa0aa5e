// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/spf13/cobra"
)

func (p *program) toolsCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use:   "tools",
		Short: "List the tools on offer, and those that are set aside",
		Args:  cobra.NoArgs,
		RunE:  does(p.tools),
	}, "print one JSON document, schemas included")
}

func (p *program) tools(ctx context.Context, _ []string) (err error) {
	p.quiet = string(config.LevelError) // what is worth a warning stands in the list
	cfg, err := p.load()
	if err != nil {
		return err
	}
	assembly, err := p.assembleForTools(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	connecting := p.screen.begin("connecting")
	catalog, err := assembly.Roster.Catalog(ctx)
	p.screen.end(connecting)
	if err != nil {
		return err
	}
	list := newToolList(assembly, catalog)
	if p.json {
		return p.document(list)
	}
	p.screen.result(list.text(p.screen.results, assembly.Roster))
	for _, away := range catalog.Away() {
		p.screen.note("%s", p.screen.notes.bad("away: ")+printable(away.Err.Error()))
	}
	return p.screen.failure()
}

// assembleForTools assembles without the model if that cannot be made: it only
// has a say in what is set aside.
func (p *program) assembleForTools(cfg *config.Config) (*config.Assembly, error) {
	if assembly, err := p.assemble(cfg, interaction{}); err == nil {
		return assembly, nil
	}
	without := *cfg
	without.Model = nil
	return p.assemble(&without, interaction{})
}

// toolList is the document of consort tools.
type toolList struct {
	Tools []toolJSON  `json:"tools"`
	Aside []asideJSON `json:"aside"`
	Away  []awayJSON  `json:"away"`
}

type toolJSON struct {
	Name         string          `json:"name"` // for the model
	Ensemble     string          `json:"ensemble"`
	Tool         string          `json:"tool"` // its own name
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Hints        hintsJSON       `json:"hints"`
}

// hintsJSON are the hints of a tool, defaults applied.
type hintsJSON struct {
	ReadOnly    bool `json:"read_only"`
	Idempotent  bool `json:"idempotent"`
	Destructive bool `json:"destructive"`
	OpenWorld   bool `json:"open_world"`
}

func newToolList(assembly *config.Assembly, catalog *ensemble.Catalog) *toolList {
	list := &toolList{Tools: []toolJSON{}, Aside: []asideJSON{}, Away: []awayJSON{}}
	tools, aside := offered(catalog, assembly.Model)
	for _, tool := range tools {
		list.Tools = append(list.Tools, newToolJSON(tool))
	}
	for _, a := range aside {
		list.Aside = append(list.Aside, asideJSON(a))
	}
	for _, a := range catalog.Away() {
		list.Away = append(list.Away, awayJSON{a.Ensemble, a.Err.Error()})
	}
	return list
}

func newToolJSON(tool *ensemble.Tool) toolJSON {
	d := tool.Definition()
	return toolJSON{
		Name: tool.Name(), Ensemble: tool.Ensemble().Name(), Tool: d.Name,
		Title: d.Title, Description: d.Description,
		InputSchema: d.InputSchema, OutputSchema: d.OutputSchema,
		Hints: newHintsJSON(d.Hints),
	}
}

func newHintsJSON(h invoker.Hints) hintsJSON {
	return hintsJSON{h.ReadOnly, h.Idempotent, h.MayDestroy(), h.OpenWorld == nil || *h.OpenWorld}
}

// text is the list for people, ensemble by ensemble.
func (l *toolList) text(paint palette, roster *ensemble.Roster) string {
	var b strings.Builder
	for _, e := range roster.Ensembles() {
		var rows [][]string
		for _, t := range l.Tools {
			if t.Ensemble == e.Name() {
				rows = append(rows, []string{"  " + t.Name, fit(t.summary(), 80)})
			}
		}
		asides := l.asidesOf(e.Name())
		if len(rows)+len(asides) == 0 {
			continue
		}
		fmt.Fprintln(&b, paint.bold(printable(e.Name())))
		b.WriteString(table(rows, func(_, column int, cell string) string {
			if column == 0 {
				return paint.name(cell)
			}
			return cell
		}))
		for _, a := range asides {
			fmt.Fprintln(&b, paint.faint(fmt.Sprintf("  %s set aside: %s", oneLine(a.Tool), oneLine(a.Reason))))
		}
	}
	if b.Len() == 0 {
		return "no tools\n"
	}
	return b.String()
}

func (l *toolList) asidesOf(ensemble string) []asideJSON {
	var asides []asideJSON
	for _, a := range l.Aside {
		if a.Ensemble == ensemble {
			asides = append(asides, a)
		}
	}
	return asides
}

// summary is the title, or else the first sentence of the description.
func (t *toolJSON) summary() string {
	if description := oneLine(t.Description); description != "" {
		first, _, _ := strings.Cut(description, ". ")
		return first
	}
	return oneLine(t.Title)
}
