// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/histories"
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
	r := &reports.Check{Problems: []reports.Problem{}, Servers: []reports.Server{}}
	cfg, err := p.load()
	r.Config = p.location.Name()
	if found := reports.ProblemsIn(err); found != nil {
		r.Problems = found
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if _, _, err := p.logger(cfg.Log); err != nil {
		return nil, err
	}
	if r.Problems = examineFiles(ctx, p, cfg); len(r.Problems) > 0 {
		return r, nil
	}
	if r.Model, err = examineModel(ctx, p, cfg, offline); err != nil {
		return nil, err
	}
	r.History = examineHistory(ctx, cfg)
	if err := examineServers(ctx, p, cfg, r); err != nil {
		return nil, err
	}
	r.OK = r.Verdict() == nil
	return r, nil
}

// examineFiles opens the audit trail, the conversation store and the certificates of
// serve, and returns the problems it finds.
func examineFiles(ctx context.Context, p *program, cfg *config.Config) []reports.Problem {
	alone := *cfg
	alone.Model, alone.MCP, alone.GRPC = nil, nil, nil
	if cfg.Serve != nil {
		serve := *cfg.Serve
		serve.Converse = false
		alone.Serve = &serve
	}
	p.needs.certificates = true
	defer func() { p.needs.certificates = false }()
	assembly, err := p.assemble(&alone, interaction{})
	if err == nil {
		_, err = assembly.History(ctx)
		err = errors.Join(alone.Locate(err), p.close(assembly))
	}
	if err == nil {
		return []reports.Problem{}
	}
	if found := reports.ProblemsIn(err); found != nil {
		return found
	}
	message := strings.TrimPrefix(err.Error(), p.location.Name()+": config: ")
	return []reports.Problem{reports.FileProblem(p.location.Name(), message)}
}

// examineHistory reports where conversations are kept. The user's own store need not
// exist yet, and is not created.
func examineHistory(ctx context.Context, cfg *config.Config) *reports.History {
	if cfg.History == nil {
		path, err := histories.CheckOwn(ctx, cfg)
		own := &reports.History{Store: config.StoreSQLite, Path: path, Default: true}
		if err != nil {
			own.Error = histories.WithoutKey(err)
		}
		return own
	}
	if !cfg.Keeps() {
		return nil
	}
	return &reports.History{Store: cmp.Or(cfg.History.Store, config.StoreSQLite), Path: cfg.History.Path.String()}
}

// examineModel reports on the model and its fallbacks, and asks them unless offline is set.
func examineModel(ctx context.Context, p *program, cfg *config.Config, offline bool) (*reports.Model, error) {
	if cfg.Model == nil {
		return nil, nil
	}
	m := &reports.Model{Asked: !offline}
	m.Name, m.BaseURL = cfg.Model.Name.Reveal(), cfg.Model.BaseURL.Reveal()
	for _, f := range cfg.Model.Fallbacks {
		m.Fallbacks = append(m.Fallbacks, reports.Link{Name: f.Name.Reveal(), BaseURL: f.BaseURL.Reveal()})
	}
	alone := *cfg
	alone.MCP, alone.GRPC, alone.Audit = nil, nil, nil
	assembly, err := p.assemble(&alone, interaction{})
	if err != nil {
		m.Asked, m.Error = false, err.Error()
		return m, nil
	}
	if !offline {
		reports.AskModels(ctx, p.screen, assembly.Models, m)
	}
	err = p.close(assembly)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return m, err
}

// examineServers connects to all servers in parallel.
func examineServers(ctx context.Context, p *program, cfg *config.Config, r *reports.Check) (err error) {
	assembly, err := assembleForTools(p, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	connect(ctx, p, assembly.Roster)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	aside, shortened := p.asides(ctx, assembly)
	for _, e := range assembly.Roster.Ensembles() {
		server := reports.NewServer(e.Snapshot(), aside[e.Name()], transport(cfg, e.Name()))
		server.Shortened = shortened[e.Name()]
		r.Servers = append(r.Servers, server)
	}
	return nil
}

// transport returns the transport of a server, or "" if there is no such server.
func transport(cfg *config.Config, name string) string {
	if s := cfg.MCP[name]; s != nil {
		return string(s.Transport)
	}
	if cfg.GRPC[name] != nil {
		return "grpc"
	}
	return ""
}

// connect connects to all ensembles and shows a line for each one still connecting.
func connect(ctx context.Context, p *program, roster *ensemble.Roster) {
	done := make(chan struct{})
	ensembles := roster.Ensembles()
	for _, e := range ensembles {
		line := p.screen.Begin("connecting to " + display.Line(e.Name()))
		go func() {
			defer func() { line.End(); done <- struct{}{} }()
			_ = e.Connect(ctx) // the snapshot has the error
		}()
	}
	for range ensembles {
		<-done
	}
}

// asides returns, by ensemble, the tools that are set aside by the ensemble or for the
// model, and the tools whose definitions are shortened for the model. Without a catalog,
// because a required server is unavailable, it returns only the tools set aside in the
// snapshots.
func (p *program) asides(ctx context.Context, assembly *config.Assembly) (map[string][]ensemble.Aside, map[string][]reports.Aside) {
	aside := map[string][]ensemble.Aside{}
	catalog, err := assembly.Roster.Catalog(ctx)
	if err != nil {
		for _, e := range assembly.Roster.Ensembles() {
			aside[e.Name()] = e.Snapshot().Aside
		}
		return aside, nil
	}
	tools, all := converse.Offer(catalog, assembly.Model, assembly.Options.Limits.Tools)
	for _, a := range all {
		aside[a.Ensemble] = append(aside[a.Ensemble], a)
	}
	return aside, reports.Shortened(tools, assembly.Model)
}
