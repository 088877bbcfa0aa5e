// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/shown"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/spf13/cobra"
)

func (p *program) promptsCommand() *cobra.Command {
	var assigned []string
	cmd := p.withTrust(p.withJSON(&cobra.Command{
		Use:     "prompts [NAME]",
		Short:   "List the prompts that the servers offer, or print one",
		Example: "  consort prompts\n  consort prompts mail__reply --argument tone=friendly",
		Args:    cobra.MaximumNArgs(1),
		RunE: does(func(ctx context.Context, args []string) error {
			arguments, err := assignments("--argument", assigned)
			if err != nil {
				return err
			}
			return p.withRoster(ctx, func(ctx context.Context, assembly *config.Assembly) error {
				if len(args) == 1 {
					return p.showPrompt(ctx, assembly, args[0], arguments)
				}
				return p.listPrompts(ctx, assembly)
			})
		}),
	}, "print one JSON document, or with NAME one line for each canister"))
	cmd.Flags().StringArrayVar(&assigned, "argument", nil, "give the prompt the argument `NAME=VALUE`")
	return cmd
}

// assignments parses the values of a repeatable flag.
func assignments(flag string, all []string) (map[string]string, error) {
	values := map[string]string{}
	for _, assignment := range all {
		name, value, found := strings.Cut(assignment, "=")
		if !found || name == "" {
			return nil, exit.Usagef("%s: expected NAME=VALUE", flag)
		}
		values[name] = value
	}
	return values, nil
}

// prompted returns the canisters of a prompt.
func (p *program) prompted(ctx context.Context, roster *ensemble.Roster, name string, arguments map[string]string) ([]canister.Canister, error) {
	getting := p.screen.Begin("getting " + shown.Line(name))
	messages, err := roster.GetPrompt(ctx, name, arguments)
	getting.End()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, failed(err)
	}
	return messages.Canisters(), nil
}

func (p *program) showPrompt(ctx context.Context, assembly *config.Assembly, name string, arguments map[string]string) error {
	canisters, err := p.prompted(ctx, assembly.Roster, name, arguments)
	if err != nil {
		return err
	}
	if p.json {
		return p.screen.PrintCanisters(canisters...)
	}
	for _, c := range canisters {
		p.screen.PrintLine(p.screen.Results.Name(string(c.Kind())) + ": " + shown.Contents(canister.ContentOf(c)))
	}
	return p.screen.Err()
}

func (p *program) listPrompts(ctx context.Context, assembly *config.Assembly) error {
	connecting := p.screen.Begin("connecting")
	all, err := assembly.Roster.Prompts(ctx)
	connecting.End()
	if err != nil {
		return err
	}
	list := newPromptList(all)
	if p.json {
		return p.screen.PrintDocument(list)
	}
	p.screen.Print(list.text(p.screen.Results, assembly.Roster))
	p.noteAway(list.Away)
	return p.screen.Err()
}

// promptList is the JSON output of consort prompts.
type promptList struct {
	Prompts []promptJSON `json:"prompts"`
	Aside   []asideJSON  `json:"aside"`
	Away    []awayJSON   `json:"away"`
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

func newPromptList(all *ensemble.Prompts) *promptList {
	list := &promptList{Prompts: []promptJSON{}, Aside: asides(all.Aside), Away: aways(all.Away)}
	for _, p := range all.Prompts {
		form := promptJSON{p.FullName(), p.Ensemble, p.Name, p.Title, p.Description, []argumentJSON{}, p.Metadata}
		for _, a := range p.Arguments {
			form.Arguments = append(form.Arguments, argumentJSON(a))
		}
		list.Prompts = append(list.Prompts, form)
	}
	return list
}

// text renders the list for people, grouped by ensemble.
func (l *promptList) text(paint terminal.Palette, roster *ensemble.Roster) string {
	listed := listing{paint: paint}
	for _, e := range roster.Ensembles() {
		var rows [][]string
		for _, prompt := range l.Prompts {
			if prompt.Ensemble == e.Name() {
				rows = append(rows, []string{"  " + shown.Line(prompt.Name+prompt.signature()), terminal.Fit(shown.Line(cmp.Or(prompt.Title, prompt.Description)), 80)})
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
