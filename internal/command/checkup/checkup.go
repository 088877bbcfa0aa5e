// SPDX-License-Identifier: Apache-2.0

// Package checkup is what consort check does: it checks the files, the models and the
// servers of a configuration, and watches the health of the servers.
package checkup

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
	"github.com/consort-go/consort/internal/terminal"
)

// Program assembles configurations, which connects to no server yet, and closes them.
type Program interface {
	// Assemble reads the certificates of serve only if certificates is set.
	Assemble(cfg *config.Config, certificates bool) (*config.Assembly, error)
	// AssembleForTools assembles without the model if the model cannot be assembled.
	AssembleForTools(cfg *config.Config) (*config.Assembly, error)
	Close(*config.Assembly) error
}

// Checkup checks one configuration.
type Checkup struct {
	file    string
	cfg     *config.Config
	screen  *terminal.Screen
	program Program
}

// New returns a check of cfg, which was read from file. The screen shows what it waits for.
func New(file string, cfg *config.Config, screen *terminal.Screen, program Program) *Checkup {
	return &Checkup{file, cfg, screen, program}
}

// Failed returns the report on a configuration that has problems.
func Failed(file string, problems []reports.Problem) *reports.Check {
	return &reports.Check{Config: file, Problems: problems, Servers: []reports.Server{}}
}

// Examine makes the report. It asks the models unless offline is set, and connects to all
// servers. Its error says why there is no report.
func (c *Checkup) Examine(ctx context.Context, offline bool) (r *reports.Check, err error) {
	r = Failed(c.file, c.files(ctx))
	if len(r.Problems) > 0 {
		return r, nil
	}
	if r.Model, err = c.model(ctx, offline); err != nil {
		return nil, err
	}
	r.History = c.history(ctx)
	if err := c.servers(ctx, r); err != nil {
		return nil, err
	}
	r.OK = r.Verdict() == nil
	return r, nil
}

// files opens the audit trail, the conversation store and the certificates of
// serve, and returns the problems it finds.
func (c *Checkup) files(ctx context.Context) []reports.Problem {
	alone := *c.cfg
	alone.Model, alone.MCP, alone.GRPC = nil, nil, nil
	if c.cfg.Serve != nil {
		serve := *c.cfg.Serve
		serve.Converse = false
		alone.Serve = &serve
	}
	assembly, err := c.program.Assemble(&alone, true)
	if err == nil {
		_, err = assembly.History(ctx)
		err = errors.Join(alone.Locate(err), c.program.Close(assembly))
	}
	if err == nil {
		return []reports.Problem{}
	}
	if found := reports.ProblemsIn(err); found != nil {
		return found
	}
	message := strings.TrimPrefix(err.Error(), c.file+": config: ")
	return []reports.Problem{reports.FileProblem(c.file, message)}
}

// history reports where conversations are kept. The user's own store need not
// exist yet, and is not created.
func (c *Checkup) history(ctx context.Context) *reports.History {
	if c.cfg.History == nil {
		path, err := histories.CheckOwn(ctx, c.cfg)
		own := &reports.History{Store: config.StoreSQLite, Path: path, Default: true}
		if err != nil {
			own.Error = histories.WithoutKey(err)
		}
		return own
	}
	if !c.cfg.Keeps() {
		return nil
	}
	return &reports.History{Store: cmp.Or(c.cfg.History.Store, config.StoreSQLite), Path: c.cfg.History.Path.String()}
}

// model reports on the model and its fallbacks, and asks them unless offline is set.
func (c *Checkup) model(ctx context.Context, offline bool) (*reports.Model, error) {
	if c.cfg.Model == nil {
		return nil, nil
	}
	m := &reports.Model{Asked: !offline}
	m.Name, m.BaseURL = c.cfg.Model.Name.Reveal(), c.cfg.Model.BaseURL.Reveal()
	for _, f := range c.cfg.Model.Fallbacks {
		m.Fallbacks = append(m.Fallbacks, reports.Link{Name: f.Name.Reveal(), BaseURL: f.BaseURL.Reveal()})
	}
	alone := *c.cfg
	alone.MCP, alone.GRPC, alone.Audit = nil, nil, nil
	assembly, err := c.program.Assemble(&alone, false)
	if err != nil {
		m.Asked, m.Error = false, err.Error()
		return m, nil
	}
	if !offline {
		reports.AskModels(ctx, c.screen, assembly.Models, m)
	}
	err = c.program.Close(assembly)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return m, err
}

// servers connects to all servers in parallel.
func (c *Checkup) servers(ctx context.Context, r *reports.Check) (err error) {
	assembly, err := c.program.AssembleForTools(c.cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.program.Close(assembly)) }()
	c.connect(ctx, assembly.Roster)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	aside, shortened := asides(ctx, assembly)
	for _, e := range assembly.Roster.Ensembles() {
		server := reports.NewServer(e.Snapshot(), aside[e.Name()], transport(c.cfg, e.Name()))
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
func (c *Checkup) connect(ctx context.Context, roster *ensemble.Roster) {
	done := make(chan struct{})
	ensembles := roster.Ensembles()
	for _, e := range ensembles {
		line := c.screen.Begin("connecting to " + display.Line(e.Name()))
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
func asides(ctx context.Context, assembly *config.Assembly) (map[string][]ensemble.Aside, map[string][]reports.Aside) {
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
