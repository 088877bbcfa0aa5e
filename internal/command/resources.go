// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/command/libraries"
	"github.com/consort-go/consort/invoker"
	"github.com/spf13/cobra"
)

func resourcesCommand(p *program) *cobra.Command {
	var uri string
	cmd := p.withTrust(p.withJSON(&cobra.Command{
		Use:     "resources",
		Short:   "List the resources of the servers, or print one",
		Example: "  consort resources\n  consort resources --read file:///notes.txt",
		Args:    cobra.NoArgs,
		RunE: runE(func(ctx context.Context, _ []string) error {
			return withRoster(ctx, p, func(ctx context.Context, assembly *config.Assembly) error {
				if uri != "" {
					return libraryOf(p, assembly.Roster).ShowResource(ctx, uri)
				}
				return libraryOf(p, assembly.Roster).ListResources(ctx)
			})
		}),
	}, "print one JSON document, or with --read the document as a canister"))
	cmd.Flags().StringVar(&uri, "read", "", "print the contents of the resource `URI`")
	return cmd
}

// withRoster calls do with the assembled servers, without a model. The context carries
// the trusted values.
func withRoster(ctx context.Context, p *program, do func(context.Context, *config.Assembly) error) (err error) {
	p.needs.quiet = config.LevelError // the lists contain all warnings
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

// libraryOf returns the resources and prompts of the servers.
func libraryOf(p *program, roster *ensemble.Roster) libraries.Library {
	return libraries.Library{Roster: roster, Screen: p.screen, JSON: p.json}
}
