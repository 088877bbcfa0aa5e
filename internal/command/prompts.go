// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/exit"
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
			if len(args) == 0 && len(arguments) > 0 {
				return exit.Usagef("--argument needs the NAME of a prompt")
			}
			return withRoster(ctx, p, func(ctx context.Context, assembly *config.Assembly) error {
				if len(args) == 1 {
					return libraryOf(p, assembly.Roster).ShowPrompt(ctx, args[0], arguments)
				}
				return libraryOf(p, assembly.Roster).ListPrompts(ctx)
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
