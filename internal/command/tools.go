// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/reports"
	"github.com/spf13/cobra"
)

func toolsCommand(p *program) *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use:   "tools",
		Short: "List the offered tools, and those that were set aside",
		Args:  cobra.NoArgs,
		RunE:  runE(func(ctx context.Context, _ []string) error { return runTools(ctx, p) }),
	}, "print one JSON document, schemas included")
}

func runTools(ctx context.Context, p *program) (err error) {
	p.needs.quiet = config.LevelError // the list contains all warnings
	cfg, err := p.load()
	if err != nil {
		return err
	}
	assembly, err := assembleForTools(p, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	connecting := p.screen.Begin("connecting")
	catalog, err := assembly.Roster.Catalog(ctx)
	connecting.End()
	if err != nil {
		return err
	}
	list := reports.NewToolList(assembly.Roster, catalog, assembly.Model, assembly.Options.Limits.Tools)
	if p.json {
		return p.screen.PrintDocument(list)
	}
	p.screen.Print(list.Text(p.screen.Results, assembly.Roster))
	noteAway(p, list.Away)
	return p.screen.Err()
}

// assembleForTools assembles without the model if the model cannot be assembled: it only
// affects which tools are set aside.
func assembleForTools(p *program, cfg *config.Config) (*config.Assembly, error) {
	without := *cfg
	without.Audit = nil // there are no calls
	if assembly, err := p.assemble(&without, interaction{}); err == nil {
		return assembly, nil
	}
	without.Model = nil
	return p.assemble(&without, interaction{})
}
