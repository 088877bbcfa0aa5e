// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/spf13/cobra"
)

// toolFlags are the flags of consort tools.
type toolFlags struct {
	search string
	limit  int
	tokens bool
}

func toolsCommand(p *program) *cobra.Command {
	var flags toolFlags
	cmd := p.withJSON(&cobra.Command{
		Use:   "tools",
		Short: "List the offered tools, and those that were set aside",
		Args:  cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cmd.Flags().Changed("limit") && flags.search == "":
				return exit.Usagef("--limit has no effect without --search")
			case flags.limit < 1:
				return exit.Usagef("--limit %d: expected a number of at least 1", flags.limit)
			}
			return nil
		},
		RunE: runE(func(ctx context.Context, _ []string) error { return runTools(ctx, p, flags) }),
	}, "print one JSON document, schemas included")
	cmd.Flags().StringVar(&flags.search, "search", "", "only the tools, resources and prompts that have a word of `TEXT`, best first")
	cmd.Flags().IntVar(&flags.limit, "limit", 10, "with --search: at most `N` tools, and as many others")
	cmd.Flags().BoolVar(&flags.tokens, "tokens", false, "print how many tokens the definition of each tool takes in each request, as estimated")
	return cmd
}

func runTools(ctx context.Context, p *program, flags toolFlags) (err error) {
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
	list := reports.NewToolList(assembly, catalog)
	if flags.search != "" {
		list.Search(flags.search, flags.limit)
		if err := list.SearchItems(ctx, assembly.Roster, flags.search, flags.limit); err != nil {
			return err
		}
	}
	if p.json {
		return p.screen.PrintDocument(list)
	}
	switch {
	case flags.tokens:
		p.screen.Print(list.Costs(p.screen.Results, windowOf(cfg)))
	case flags.search == "":
		p.screen.Print(list.Text(p.screen.Results, assembly.Roster))
	case len(list.Tools)+len(list.Items) == 0:
		p.screen.Print(fmt.Sprintf("no tool, resource or prompt has a word of %q\n", flags.search))
	default:
		p.screen.Print(list.Found(p.screen.Results))
	}
	reports.NoteAway(p.screen, list.Away)
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

// windowOf returns the window of the model in tokens, or 0 if the configuration does not
// say it.
func windowOf(cfg *config.Config) int64 {
	if cfg.Compaction == nil {
		return 0
	}
	return cfg.Compaction.Window
}
