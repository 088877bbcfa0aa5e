// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker"
	"github.com/spf13/cobra"
)

func (p *program) resourcesCommand() *cobra.Command {
	var uri string
	cmd := p.withTrust(p.withJSON(&cobra.Command{
		Use:     "resources",
		Short:   "List the resources that the servers offer, or print one",
		Example: "  consort resources\n  consort resources --read file:///notes.txt",
		Args:    cobra.NoArgs,
		RunE: does(func(ctx context.Context, _ []string) error {
			return p.withRoster(ctx, func(ctx context.Context, assembly *config.Assembly) error {
				if uri != "" {
					return p.readResource(ctx, assembly, uri)
				}
				return p.listResources(ctx, assembly)
			})
		}),
	}, "print one JSON document, or with --read the document as a canister"))
	cmd.Flags().StringVar(&uri, "read", "", "print what the resource `URI` holds")
	return cmd
}

// withRoster calls do with the assembled servers, without a model. The context carries
// the trusted values.
func (p *program) withRoster(ctx context.Context, do func(context.Context, *config.Assembly) error) (err error) {
	p.quiet = string(config.LevelError) // the lists contain all warnings
	cfg, err := p.load()
	if err != nil {
		return err
	}
	cfg.Model, cfg.Audit = nil, nil // both are unused, so they need not be valid
	assembly, err := p.assemble(cfg, interaction{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	return do(invoker.WithTrusted(ctx, assembly.Trusted...), assembly)
}

// failed converts the error of a server into the error of a command.
func failed(err error) error {
	failure := invoker.AsFailure(err)
	if failure == nil {
		return nil
	}
	return exit.With(exit.Tool, fmt.Errorf("%s: %s", failure.Code, failure.Message))
}

// read returns a resource as a document.
func (p *program) read(ctx context.Context, roster *ensemble.Roster, uri string) (canister.Document, error) {
	reading := p.screen.Begin("reading " + shown.Line(uri))
	document, err := roster.Document(ctx, uri)
	reading.End()
	if ctx.Err() != nil {
		return document, context.Cause(ctx)
	}
	return document, failed(err)
}

func (p *program) readResource(ctx context.Context, assembly *config.Assembly, uri string) error {
	document, err := p.read(ctx, assembly.Roster, uri)
	if err != nil {
		return err
	}
	if p.json {
		return p.screen.PrintCanisters(document)
	}
	var parts []string
	for _, content := range document.Content {
		if resource, ok := content.(canister.ResourceContent); ok && resource.Blob == nil {
			content = canister.TextContent{Text: resource.Text}
		}
		parts = append(parts, shown.Content(content))
	}
	p.screen.PrintLine(strings.Join(parts, "\n"))
	return p.screen.Err()
}

func (p *program) listResources(ctx context.Context, assembly *config.Assembly) error {
	connecting := p.screen.Begin("connecting")
	all, err := assembly.Roster.Resources(ctx)
	connecting.End()
	if err != nil {
		return err
	}
	list := newResourceList(all)
	if p.json {
		return p.screen.PrintDocument(list)
	}
	p.screen.Print(list.text(p.screen.Results, assembly.Roster))
	p.noteAway(list.Away)
	return p.screen.Err()
}

func (p *program) noteAway(away []awayJSON) {
	for _, a := range away {
		p.screen.Note("%s", p.screen.Notes.Bad("away: ")+shown.Text(a.Error))
	}
}

// resourceList is the JSON output of consort resources.
type resourceList struct {
	Resources []resourceJSON `json:"resources"`
	Templates []templateJSON `json:"templates"`
	Aside     []asideJSON    `json:"aside"`
	Away      []awayJSON     `json:"away"`
}

type resourceJSON struct {
	URI         string          `json:"uri"`
	Ensemble    string          `json:"ensemble"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIME        string          `json:"mime,omitempty"`
	Size        *int64          `json:"size,omitempty"`
	Metadata    canister.Fields `json:"metadata,omitempty"` // data without a field of its own, by name: mcp/icons, mcp/_meta
}

type templateJSON struct {
	URI         string          `json:"uri"`
	Ensemble    string          `json:"ensemble"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIME        string          `json:"mime,omitempty"`
	Metadata    canister.Fields `json:"metadata,omitempty"`
}

func newResourceList(all *ensemble.Resources) *resourceList {
	list := &resourceList{Resources: []resourceJSON{}, Templates: []templateJSON{}, Aside: asides(all.Aside), Away: aways(all.Away)}
	for _, r := range all.Resources {
		list.Resources = append(list.Resources, resourceJSON{r.URI, r.Ensemble, r.Name, r.Title, r.Description, r.MIME, r.Size, r.Metadata})
	}
	for _, t := range all.Templates {
		list.Templates = append(list.Templates, templateJSON{t.URI, t.Ensemble, t.Name, t.Title, t.Description, t.MIME, t.Metadata})
	}
	return list
}

func asides(all []ensemble.Aside) []asideJSON {
	list := []asideJSON{}
	for _, a := range all {
		list = append(list, asideJSON(a))
	}
	return list
}

func aways(all []ensemble.Away) []awayJSON {
	list := []awayJSON{}
	for _, a := range all {
		list = append(list, awayJSON{a.Ensemble, a.Err.Error()})
	}
	return list
}

// text renders the list for people, grouped by ensemble.
func (l *resourceList) text(paint terminal.Palette, roster *ensemble.Roster) string {
	listed := listing{paint: paint}
	for _, e := range roster.Ensembles() {
		var rows [][]string
		row := func(ensemble, uri, about string) {
			if ensemble == e.Name() {
				rows = append(rows, []string{"  " + shown.Line(uri), terminal.Fit(shown.Line(about), 80)})
			}
		}
		for _, r := range l.Resources {
			row(r.Ensemble, r.URI, cmp.Or(r.Title, r.Description, r.Name))
		}
		for _, t := range l.Templates {
			row(t.Ensemble, t.URI, cmp.Or(t.Title, t.Description, t.Name))
		}
		listed.add(e.Name(), rows, l.Aside)
	}
	return listed.or("no resources\n")
}

// listing builds a list for people, with a section for each ensemble.
type listing struct {
	paint terminal.Palette
	text  strings.Builder
}

// add adds a section for an ensemble: its rows, and its items that were set aside.
func (l *listing) add(name string, rows [][]string, aside []asideJSON) {
	var lines []string
	for _, a := range aside {
		if a.Ensemble == name {
			lines = append(lines, l.paint.Faint(fmt.Sprintf("  %s set aside: %s", shown.Line(a.Tool), shown.Line(a.Reason))))
		}
	}
	if len(rows)+len(lines) == 0 {
		return
	}
	fmt.Fprintln(&l.text, l.paint.Bold(shown.Text(name)))
	l.text.WriteString(terminal.Table(rows, func(_, column int, cell string) string {
		if column == 0 {
			return l.paint.Name(cell)
		}
		return cell
	}))
	for _, line := range lines {
		fmt.Fprintln(&l.text, line)
	}
}

// or returns the list, or nothing if the list is empty.
func (l *listing) or(nothing string) string {
	if l.text.Len() == 0 {
		return nothing
	}
	return l.text.String()
}
