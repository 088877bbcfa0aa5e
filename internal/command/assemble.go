// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/consort-go/consort/config"
	configserve "github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/command/logins"
	"github.com/consort-go/consort/internal/configfile"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// closeTimeout bounds how long closing takes.
const closeTimeout = 20 * time.Second

// load reads the configuration. Its errors carry the exit status.
func (p *program) load() (*config.Config, error) {
	cfg, path, err := p.location.Config.Load()
	p.location.ConfigFile = path
	if err != nil {
		return nil, err
	}
	p.location.Loaded = cfg
	p.location.Apply(cfg)
	err = configfile.AddTrusted(cfg, p.trust)
	p.screen.Redact(cfg.Redact(), nil) // until there is an assembly
	return cfg, err
}

// loadAgain returns a function that loads the file at path with the same flags, and reads
// files with read. It may be called concurrently.
func (p *program) loadAgain(path string) func(read func(path string) ([]byte, error)) (*config.Config, error) {
	location := p.location
	location.Config.File = path
	return func(read func(path string) ([]byte, error)) (*config.Config, error) {
		cfg, err := location.Config.LoadFile(path, read)
		if err != nil {
			return nil, err
		}
		location.Apply(cfg)
		return cfg, configfile.AddTrusted(cfg, p.trust)
	}
}

// interaction holds the functions that ask the user; its zero value asks nothing.
type interaction struct {
	approve   converse.ApproveFunc
	askWrites bool // see [config.AssembleOptions].AskWrites
	limit     func(converse.ApproveFunc) converse.ApproveFunc
	elicit    elicitFunc
}

// elicitFunc answers the question of a server.
type elicitFunc = func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error)

// assemble assembles a configuration. It does not connect to any server yet.
func (p *program) assemble(cfg *config.Config, with interaction) (*config.Assembly, error) {
	logger, end, err := p.logger(cfg.Log)
	if err != nil {
		return nil, err
	}
	p.endLog = end
	if !p.needs.certificates && cfg.Serve != nil { // drop the certificates, which are not needed; the secrets must still be redacted
		without, serve := *cfg, *cfg.Serve
		serve.HTTPTLS, serve.GRPCTLS = configserve.TLS{}, configserve.TLS{}
		without.Serve = &serve
		cfg = &without
	}
	seen, err := p.startTelemetry(logger)
	if err != nil {
		return nil, err
	}
	p.assembling = config.AssembleOptions{
		Logger:      logger,
		Ask:         with.approve,
		AskWrites:   with.askWrites,
		Client:      mcpadapter.ClientOptions{ClientName: "consort", ClientVersion: version(), Elicit: with.elicit},
		Telemetry:   seen,
		Replaceable: p.needs.replaceable,
		LoginHint:   loginHint(p),
		ForClients:  p.needs.forClients,
	}
	assembly, err := p.reassemble(cfg, nil)
	if err == nil && with.limit != nil {
		assembly.Options.Approve = with.limit(assembly.Options.Approve)
	}
	return assembly, err
}

// loginHint returns a function that tells a person how to log in at a server. Models and clients, which read it in
// the results of calls, do not see where the configuration is.
func loginHint(p *program) func(server string) string {
	return func(server string) string {
		if p.needs.shared {
			return logins.Hint(&histories.Location{}, server)
		}
		return logins.Hint(&p.location, server)
	}
}

// reassemble assembles a configuration that replaces the one of an assembly, which is nil
// for the first. It sets the level of the log.
func (p *program) reassemble(cfg *config.Config, previous *config.Assembly) (*config.Assembly, error) {
	level, err := p.levelOf(cfg.Log)
	if err != nil {
		return nil, err
	}
	options := p.assembling
	options.Previous = previous
	var assembly *config.Assembly
	open := func(ctx context.Context) (history.Store, error) { return assembly.History(ctx) } // called by its servers
	if stored := p.loginsOf(cfg, open); stored.ArePersonal() {                                // otherwise there need not be a place for them
		if options.Logins, err = stored.Open(); err != nil {
			return nil, err
		}
	}
	p.logins = options.Logins
	assembly, err = config.Assemble(cfg, &options)
	if err != nil {
		if wrong := (*config.Error)(nil); errors.As(err, &wrong) { // the error says where
			return nil, exit.Usagef("%w", err)
		}
		return nil, exit.Usagef("%s: %w", p.location.Name(), err)
	}
	p.level.SetLevel(level)
	p.screen.Redact(assembly.Redact, assembly.RedactPart)
	return assembly, nil
}

// withModel assembles a configuration that must have a model.
func (p *program) withModel(cfg *config.Config, with interaction) (*config.Assembly, error) {
	if cfg.Model == nil {
		return nil, exit.Usagef("%s has no [model] table, which this command needs. Name a model with --model, or add one, such as\n\n    [model]\n    name = \"gpt-5-mini\"", p.location.Name())
	}
	p.needs.shared = true
	return p.assemble(cfg, with)
}

// withStore is like withModel, and keeps conversations by default.
func (p *program) withStore(ctx context.Context, cfg *config.Config, how histories.Policy, with interaction) (*config.Assembly, error) {
	if cfg.Model != nil { // otherwise withModel returns an error
		if err := p.location.Default(ctx, cfg, how); err != nil {
			return nil, err
		}
	}
	return p.withModel(cfg, with)
}

// close closes the assembly and waits until nothing of it is left running. A signal in
// the meantime makes it close by force, but it still waits.
func (p *program) close(assembly *config.Assembly) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	p.exports.Collect()
	return unclosed(assembly.Close(ctx))
}

// unclosed returns err, which closing something has returned, as a closeError.
func unclosed(err error) error {
	if err == nil {
		return nil
	}
	return &closeError{err}
}

// closeError reports resources that could not be closed.
type closeError struct{ err error }

func (e *closeError) Error() string { return "closing: " + e.err.Error() }
func (e *closeError) Unwrap() error { return e.err }
