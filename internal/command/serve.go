// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/consort-go/consort/config"
	configserve "github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/command/logins"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/gateway"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/reload"
	"github.com/spf13/cobra"
)

// serving has the flags of consort serve.
type serving struct {
	// The flags; the configuration applies to those that are empty.
	http, grpc, health string
	stdio, converse    bool
	search             bool

	engine    string             // runs conversations; empty means this process
	addresses map[string]*string // of engines
}

func serveCommand(p *program) *cobra.Command {
	var s serving
	var explained, trusted string
	var cmd *cobra.Command
	cmd = p.withHistory(p.withTrust(&cobra.Command{
		Use:   "serve [NAME]",
		Short: "Serve the tools, resources and prompts to other MCP hosts",
		Long: "Serve runs an MCP server with the tools, resources and prompts of all servers\n" +
			"of the configuration, over standard input and output, streamable HTTP or gRPC. After\n" +
			"a signal it waits for running calls and ends; a second signal ends it at once. SIGHUP,\n" +
			"consort reload, or a change of the configuration file make it read the file again.",
		Example: "  consort serve\n  consort serve --http 127.0.0.1:8080\n  consort serve --explain ada files__write_file",
		Args:    cobra.MaximumNArgs(1),
		RunE: runEUntil(func(ctx context.Context, args []string) error {
			switch {
			case cmd.Flags().Changed("explain"):
				return s.explain(ctx, p, explained, trusted, args)
			case trusted != "":
				return exit.Usagef("only --explain takes --trusted")
			case len(args) > 0:
				return exit.Usagef("only --explain takes the name of a tool, prompt or resource")
			}
			return s.run(ctx, p)
		}, os.Interrupt, syscall.SIGTERM),
	}))
	flags := cmd.Flags()
	flags.StringVar(&s.http, "http", "", "serve streamable HTTP at `ADDRESS`, such as 127.0.0.1:8080; port 0 chooses a free one")
	flags.StringVar(&s.grpc, "grpc", "", "serve gRPC at `ADDRESS`: the tool service, and MCP as frames of a stream")
	flags.BoolVar(&s.stdio, "stdio", false, "serve over standard input and output, whatever the configuration says")
	flags.StringVar(&s.health, "health", "", "serve the health of the servers over HTTP at `ADDRESS`")
	flags.StringVar(&explained, "explain", "", "instead of serving, print whether `CLIENT` may use the tool, prompt or resource NAME, and why")
	flags.StringVar(&trusted, "trusted", "", "for --explain: the trusted values of the client as a `JSON` object (default: those of the configuration)")
	flags.BoolVar(&s.converse, "converse", false, "also offer the tool converse, which talks with the model")
	flags.BoolVar(&s.search, "search", false, "offer two tools that find and call the others, and the pinned ones, instead of all tools")
	flags.StringVar(&s.engine, "engine", "", "run conversations with the engine `NAME`, such as temporal, and its workers (default: in this process)")
	s.addresses = withEngines(p, cmd)
	return cmd
}

func (s *serving) run(ctx context.Context, p *program) (err error) {
	again := p.prepareReload()
	cfg, err := p.load()
	if err != nil {
		return err
	}
	settings, err := s.settings(p, cfg)
	if err != nil {
		return err
	}
	cfg.Serve = settings
	p.needs.certificates, p.needs.telemetry, p.needs.metrics, p.needs.replaceable = true, true, settings.Health.Reveal() != "", true
	p.needs.forClients = settings.Listens()
	assembly, err := assembleServed(ctx, p, cfg, interaction{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close(assembly)) }()
	assembly.Serve.Version = version()
	if err := logins.Check(ctx, p.logins); err != nil {
		return err
	}
	return gateway.Run(ctx, gateway.Options{
		Config: cfg, Assembly: assembly, Location: &p.location, Metrics: p.exports.Scrape,
		Engines: p.engines, Engine: s.engine, Address: s.address(), Screen: p.screen, Stdin: p.stdin,
		Flags:  map[string]bool{"http": s.http != "", "grpc": s.grpc != "", "health": s.health != "", "stdio": s.stdio},
		Reload: again,
	})
}

// prepareReload says how the configuration is loaded again. It must be called before the
// configuration is loaded.
func (p *program) prepareReload() *gateway.Reload {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP) // until the process ends: it reloads, and never ends the process
	path := p.location.Config.Find()
	load := p.loadAgain(path)
	files := reload.Read(path, func(read func(path string) ([]byte, error)) { _, _ = load(read) })
	return &gateway.Reload{Files: files, Load: load, Assemble: p.reassemble, Signals: hangups}
}

// address returns the address of the engine; it may be empty.
func (s *serving) address() string {
	if given := s.addresses[s.engine]; given != nil {
		return *given
	}
	return ""
}

// assembleServed assembles the servers. It includes the model only if the tool converse is
// offered, and a store only for its conversations and for calls that need an approval.
func assembleServed(ctx context.Context, p *program, cfg *config.Config, with interaction) (*config.Assembly, error) {
	if cfg.Serve.Converse {
		return p.withStore(ctx, cfg, histories.IfPossible, with)
	}
	if cfg.Serve.Asks() || len(cfg.Serve.Budgets) > 0 {
		if err := p.location.Default(ctx, cfg, histories.IfPossible); err != nil {
			return nil, err
		}
	}
	cfg.Model = nil // so it need not be valid
	p.needs.shared = true
	return p.assemble(cfg, with)
}

// settings returns the settings of the configuration, overridden by the flags.
func (s *serving) settings(p *program, cfg *config.Config) (*configserve.Options, error) {
	settings := &configserve.Options{}
	if cfg.Serve != nil {
		*settings = *cfg.Serve
	}
	settings.Converse = settings.Converse || s.converse
	settings.Search = settings.Search || s.search
	for name, address := range s.addresses {
		if *address != "" && s.engine == "" {
			return nil, exit.Usagef("--%s: the flag has no effect without --engine %s", name, name)
		}
	}
	if s.engine != "" {
		switch _, err := gateway.EngineNamed(p.engines, s.engine); {
		case err != nil:
			return nil, err
		case !settings.Converse:
			return nil, exit.Usagef("--engine needs the tool converse; offer it with --converse")
		case !cfg.Keeps():
			return nil, p.location.NoStore()
		}
	}
	if s.health != "" {
		settings.Health = values.Plain(s.health)
	}
	switch {
	case s.stdio && s.http != "":
		return nil, exit.Usagef("--stdio and --http exclude each other: give one of them")
	case s.stdio && s.grpc != "":
		return nil, exit.Usagef("--stdio and --grpc exclude each other: give one of them")
	case s.stdio:
		settings.HTTP, settings.GRPC = values.Value{}, values.Value{}
	}
	if s.http != "" {
		settings.HTTP = values.Plain(s.http)
	}
	if s.grpc != "" {
		settings.GRPC = values.Plain(s.grpc)
	}
	if settings.Listens() && len(p.trust) > 0 {
		return nil, exit.Usagef("--trust: over HTTP and gRPC the token identifies a client; see serve.clients in docs/configuration.md")
	}
	return settings, nil
}
