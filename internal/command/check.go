// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/command/checkup"
	"github.com/consort-go/consort/internal/reports"
	"github.com/spf13/cobra"
)

func checkCommand(p *program) *cobra.Command {
	watch, offline := false, false
	cmd := p.withJSON(&cobra.Command{
		Use:   "check",
		Short: "Check the configuration, ask its models and connect to its servers",
		Long: "Check reads the configuration, sends one short request to each model, and connects to\n" +
			"each server. --offline sends the models nothing.",
		Args: cobra.NoArgs,
		RunE: runE(func(ctx context.Context, _ []string) error {
			p.needs.quiet = config.LevelError // the report contains all warnings
			if watch {
				return runWatch(ctx, p)
			}
			return runCheck(ctx, p, offline)
		}),
	}, "print one JSON document, or with --watch one line each second")
	cmd.Flags().BoolVar(&watch, "watch", false, "keep running and show the health of the servers until Ctrl-C")
	cmd.Flags().BoolVar(&offline, "offline", false, "send the models no request")
	return cmd
}

func runCheck(ctx context.Context, p *program, offline bool) error {
	r, err := examine(ctx, p, offline)
	if r == nil {
		return err
	}
	if p.json {
		err = errors.Join(err, p.screen.PrintDocument(r))
	} else {
		p.screen.Print(r.Text(p.screen.Results))
	}
	if err = errors.Join(err, p.screen.Err()); err != nil {
		return err
	}
	return r.Verdict()
}

// examine makes the report. The report is nil if there is none, for example because there
// is no configuration; the error then says why.
func examine(ctx context.Context, p *program, offline bool) (*reports.Check, error) {
	cfg, err := p.load()
	file := p.location.Name()
	if found := reports.ProblemsIn(err); found != nil {
		return checkup.Failed(file, found), nil
	}
	if err != nil {
		return nil, err
	}
	if _, _, err := p.logger(cfg.Log); err != nil {
		return nil, err
	}
	return checkup.New(file, cfg, p.screen, (*checked)(p)).Examine(ctx, offline)
}

// runWatch shows the servers' health until it is interrupted.
func runWatch(ctx context.Context, p *program) error {
	cfg, err := p.load()
	if err != nil {
		return err
	}
	return checkup.New(p.location.Name(), cfg, p.screen, (*checked)(p)).Watch(ctx, p.json)
}

// checked implements [checkup.Program].
type checked program

func (c *checked) Assemble(cfg *config.Config, certificates bool) (*config.Assembly, error) {
	c.needs.certificates = certificates
	defer func() { c.needs.certificates = false }()
	return (*program)(c).assemble(cfg, interaction{})
}

func (c *checked) AssembleForTools(cfg *config.Config) (*config.Assembly, error) {
	return assembleForTools((*program)(c), cfg)
}

func (c *checked) Close(assembly *config.Assembly) error { return (*program)(c).close(assembly) }
