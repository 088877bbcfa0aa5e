// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/spf13/cobra"
)

func promptsCommand(p *program) *cobra.Command {
	var assigned []string
	cmd := p.withTrust(p.withJSON(&cobra.Command{
		Use:     "prompts [NAME]",
		Short:   "List the prompts of the servers, or print one",
		Example: "  consort prompts\n  consort prompts mail__reply --argument tone=friendly",
		Args:    cobra.MaximumNArgs(1),
		RunE: runE(func(ctx context.Context, args []string) error {
			arguments, err := assignments("--argument", assigned)
			if err != nil {
				return err
			}
			return withRoster(ctx, p, func(ctx context.Context, assembly *config.Assembly) error {
				if len(args) == 1 {
					return showPrompt(ctx, p, assembly, args[0], arguments)
				}
				return listPrompts(ctx, p, assembly)
			})
		}),
	}, "print one JSON document, or with NAME one line per canister"))
	cmd.Flags().StringArrayVar(&assigned, "argument", nil, "pass the argument `NAME=VALUE` to the prompt")
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

// getPrompt returns the canisters of a prompt.
func getPrompt(ctx context.Context, p *program, roster *ensemble.Roster, name string, arguments map[string]string) ([]canister.Canister, error) {
	getting := p.screen.Begin("getting " + display.Line(name))
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

func showPrompt(ctx context.Context, p *program, assembly *config.Assembly, name string, arguments map[string]string) error {
	canisters, err := getPrompt(ctx, p, assembly.Roster, name, arguments)
	if err != nil {
		return err
	}
	if p.json {
		return p.screen.PrintCanisters(canisters...)
	}
	for _, c := range canisters {
		p.screen.PrintLine(p.screen.Results.Name(string(c.Kind())) + ": " + display.Contents(canister.ContentOf(c)))
	}
	return p.screen.Err()
}

func listPrompts(ctx context.Context, p *program, assembly *config.Assembly) error {
	connecting := p.screen.Begin("connecting")
	all, err := assembly.Roster.Prompts(ctx)
	connecting.End()
	if err != nil {
		return err
	}
	list := reports.NewPromptList(all)
	if p.json {
		return p.screen.PrintDocument(list)
	}
	p.screen.Print(list.Text(p.screen.Results, assembly.Roster))
	noteAway(p, list.Away)
	return p.screen.Err()
}
