// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/spf13/cobra"
)

// serving is one run of consort serve.
type serving struct {
	*program
	// The flags; the configuration applies to those that are empty.
	http, grpc, health string
	stdio, converse    bool

	engine    string             // runs conversations; empty means this process
	addresses map[string]*string // of engines
	ending    context.Context    // ends when the process is about to end
	end       context.CancelFunc
}

func (p *program) serveCommand() *cobra.Command {
	s := &serving{program: p}
	cmd := p.withHistory(p.withTrust(&cobra.Command{
		Use:   "serve",
		Short: "Offer the tools, resources and prompts to other MCP hosts",
		Long: "Serve is an MCP server that offers the tools, resources and prompts of all servers\n" +
			"of the configuration, over standard input and output, streamable HTTP or gRPC. A\n" +
			"signal ends it when the calls under way are done, and a second one at once.",
		Example: "  consort serve\n  consort serve --http 127.0.0.1:8080",
		Args:    cobra.NoArgs,
		RunE:    does(s.serve),
	}))
	flags := cmd.Flags()
	flags.StringVar(&s.http, "http", "", "serve streamable HTTP at `ADDRESS`, such as 127.0.0.1:8080; port 0 is a free one")
	flags.StringVar(&s.grpc, "grpc", "", "serve gRPC at `ADDRESS`: the tool service, and MCP as frames of a stream")
	flags.BoolVar(&s.stdio, "stdio", false, "serve over standard input and output, whatever the configuration says")
	flags.StringVar(&s.health, "health", "", "tell over HTTP at `ADDRESS` how the servers do")
	flags.BoolVar(&s.converse, "converse", false, "offer the tool converse too, which talks with the model")
	flags.StringVar(&s.engine, "engine", "", "have conversations carried on by the engine `NAME`, such as temporal, and its workers (default: by this process)")
	s.addresses = s.withEngines(cmd)
	return cmd
}

func (s *serving) serve(ctx context.Context, _ []string) (err error) {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	settings, err := s.settings(cfg)
	if err != nil {
		return err
	}
	cfg.Serve = settings
	s.serves, s.watched, s.scraped = true, true, settings.Health.Reveal() != ""
	assembly, err := s.build(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(assembly)) }()
	assembly.Serve.Version = version()
	s.ending, s.end = context.WithCancel(ctx)
	defer s.end()
	if settings.Converse {
		s.tellPlace(cfg)
	}
	if settings.Converse && cfg.Keeps() {
		var stop func() error
		if stop, err = s.offerTalks(ctx, cfg, assembly); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	watched := &readiness{ending: s.ending, roster: assembly.Roster}
	stop, err := s.tellHealth(settings, watched, assembly.Logger)
	if err != nil {
		return err
	}
	defer stop()
	if cfg.Approval.Default != "" || len(cfg.Approval.Rules) > 0 {
		s.screen.Note("the rules of [approval] are for the model; what clients may call is for allow and deny of each server to say")
	}
	if retention := cfg.History.Retention(); !retention.KeepsAll() {
		store, err := assembly.History(ctx)
		if err != nil {
			return s.unopened(err)
		}
		defer sweeps(ctx, store, retention, assembly.Logger)()
	}
	defer watched.connectAll(ctx)()
	if settings.AnswersOnlyLoopbackNames() {
		s.screen.Note("serve.http is open to other machines, and serve.hosts is not set: only requests to localhost and its addresses are answered; set hosts to the names that clients use")
	}
	servers := newServers(assembly, settings, watched.reason)
	hurried := hurries(servers.close)
	if settings.Listens() {
		err = s.overNetwork(ctx, servers, settings)
	} else {
		err = s.overStdio(ctx, servers.mcp, assembly.Serve.ShutdownTimeout)
	}
	return errors.Join(err, hurried())
}

// build assembles the servers. It includes the model, and a store for conversations with
// it, only if the tool converse is offered.
func (s *serving) build(ctx context.Context, cfg *config.Config) (*config.Assembly, error) {
	if cfg.Serve.Converse {
		return s.withStore(ctx, cfg, keepIfPossible, interaction{})
	}
	cfg.Model = nil // so it need not be valid
	return s.assemble(cfg, interaction{})
}

// servers are the servers that clients connect to.
type servers struct {
	mcp  *mcpadapter.Server
	grpc *grpctool.Server // offers mcp too; nil if gRPC is not served
}

// newServers returns the servers for an assembly; notReady returns the reason why clients
// should not send calls now.
func newServers(assembly *config.Assembly, settings *config.Serve, notReady func() string) *servers {
	s := &servers{mcp: mcpadapter.NewServer(assembly.Roster, assembly.Serve)}
	if settings.GRPC.Reveal() != "" {
		options := *assembly.ServeGRPC
		options.MCP, options.NotReady = s.mcp, notReady
		s.grpc = grpctool.NewServer(assembly.Roster, &options)
	}
	return s
}

// close refuses new calls, waits for running calls until ctx ends, and then cancels them.
func (s *servers) close(ctx context.Context) (err error) {
	if s.grpc != nil {
		err = s.grpc.Close(ctx)
	}
	return errors.Join(err, s.mcp.Close(ctx))
}

// settings returns the settings of the configuration, overridden by the flags.
func (s *serving) settings(cfg *config.Config) (*config.Serve, error) {
	settings := &config.Serve{}
	if cfg.Serve != nil {
		*settings = *cfg.Serve
	}
	settings.Converse = settings.Converse || s.converse
	for name, address := range s.addresses {
		if *address != "" && s.engine == "" {
			return nil, exit.Usagef("--%s: nothing is done with it without --engine %s", name, name)
		}
	}
	if s.engine != "" {
		switch _, err := s.engineNamed(s.engine); {
		case err != nil:
			return nil, err
		case !settings.Converse:
			return nil, exit.Usagef("--engine is for the tool converse; offer it with --converse")
		case !cfg.Keeps():
			return nil, s.noStore()
		}
	}
	if s.health != "" {
		settings.Health = config.Plain(s.health)
	}
	switch {
	case s.stdio && s.http != "":
		return nil, exit.Usagef("--stdio and --http: there is one of the two")
	case s.stdio && s.grpc != "":
		return nil, exit.Usagef("--stdio and --grpc: there is one of the two")
	case s.stdio:
		settings.HTTP, settings.GRPC = config.Value{}, config.Value{}
	}
	if s.http != "" {
		settings.HTTP = config.Plain(s.http)
	}
	if s.grpc != "" {
		settings.GRPC = config.Plain(s.grpc)
	}
	if !settings.Listens() {
		return settings, nil
	}
	if http := settings.HTTP; http.Reveal() != "" {
		if err := settings.MayListen(http.Reveal()); err != nil {
			return nil, exit.Usagef("serving at %s: %w", http, err)
		}
	}
	if grpc := settings.GRPC; grpc.Reveal() != "" {
		if err := settings.MayListenGRPC(grpc.Reveal()); err != nil {
			return nil, exit.Usagef("serving at %s: %w", grpc, err)
		}
	}
	if len(s.trust) > 0 {
		return nil, exit.Usagef("--trust: over HTTP and gRPC the token says who a client is; see serve.clients in docs/configuration.md")
	}
	return settings, nil
}

// overNetwork serves over HTTP, gRPC or both until ctx ends or one of them fails, and
// then waits for running calls.
func (s *serving) overNetwork(ctx context.Context, servers *servers, settings *config.Serve) error {
	web, err := listen("http", settings.HTTP)
	var rpc net.Listener
	if err == nil {
		rpc, err = listen("grpc", settings.GRPC)
	}
	if err != nil {
		if web != nil {
			err = errors.Join(err, web.Close())
		}
		return errors.Join(err, servers.close(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended, serving := make(chan error, 2), 0
	if web != nil {
		serving++
		s.screen.Note("serving at http://%s/mcp", web.Addr())
		go func() { ended <- servers.mcp.ServeListener(ctx, web) }()
	}
	if rpc != nil {
		serving++
		s.screen.Note("serving gRPC at %s%s", rpc.Addr(), map[bool]string{true: " over TLS"}[settings.GRPCTLS != (config.ServeTLS{})])
		go func() { ended <- servers.grpc.Serve(ctx, rpc) }()
	}
	for range serving {
		err = errors.Join(err, <-ended)
		cancel() // ends the other one
	}
	bounded, over := context.WithTimeout(context.WithoutCancel(ctx), stopping)
	defer over()
	return errors.Join(err, servers.close(bounded))
}

// stopping is how long servers without calls may take to end.
const stopping = 5 * time.Second

// listen listens at the address of a key of [serve], if it is set.
func listen(key string, address config.Value) (net.Listener, error) {
	if address.Reveal() == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address.Reveal())
	if err == nil {
		return listener, nil
	}
	advice := "use an address of this machine"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "another program, or another key of [serve], listens there: end that program, or choose another port (port 0 is a free one)"
	case errors.Is(err, syscall.EACCES):
		advice = "this user may not listen there: choose a port above 1023"
	}
	return nil, fmt.Errorf("serve.%s (or --%s) = %q: %w; %s", key, key, address.String(), err, advice)
}

// overStdio serves the client that started this process until the client closes standard
// input, or until ctx ends and the running calls are done.
func (s *serving) overStdio(ctx context.Context, server *mcpadapter.Server, patience time.Duration) error {
	if terminal.IsTerminal(s.stdin) {
		s.screen.Note("serving over standard input and output, for an MCP host that starts this program; --http ADDRESS and --grpc ADDRESS serve others")
	}
	if patience <= 0 {
		patience = mcpadapter.DefaultShutdownTimeout
	}
	closed := make(chan error, 1)
	over := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		closed <- server.Close(bounded)
	})
	err := server.Serve(context.WithoutCancel(ctx), closable(s.stdin, s.end), s.screen.Stdout)
	if over() {
		return errors.Join(err, server.Close(ctx))
	}
	return <-closed // Close has ended the streams
}

// closable returns a reader of file that can be closed at any time: a read from standard
// input may block until the process ends. It calls over at the end of file.
func closable(file io.Reader, over func()) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		_, err := io.Copy(writer, file)
		over()
		writer.CloseWithError(err)
	}()
	return reader
}

// errHurried says that calls may have been cut off.
var errHurried = errors.New("a second signal came before the calls under way were done")

// hurries cancels running calls when a second signal arrives. The returned function stops
// waiting for signals and returns errHurried if the calls were cancelled.
func hurries(end func(context.Context) error) func() error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	over, result := make(chan struct{}), make(chan error, 1)
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-over:
				result <- nil
				return
			}
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		result <- errors.Join(errHurried, end(ended))
	}()
	return func() error {
		signal.Stop(signals)
		close(over)
		return <-result
	}
}
