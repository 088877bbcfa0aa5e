// SPDX-License-Identifier: Apache-2.0

// Package gateway serves the tools, resources and prompts of a roster to other MCP hosts:
// over standard input and output, streamable HTTP and gRPC. Over HTTP it also serves stored
// conversations, the console, login pages, and the health of the servers. It reads the
// configuration again while it runs, and deletes conversations after their time.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/internal/reload"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// Options configure [Run].
type Options struct {
	Config   *config.Config // its Serve is not nil
	Assembly *config.Assembly
	Location *histories.Location // of the stored conversations and of the configuration
	Metrics  http.Handler        // serves /metrics next to the health
	Reload   *Reload             // nil if the configuration is never read again

	Engines []Engine // to choose from
	Engine  string   // the name of the engine; empty means this process
	Address string   // of the engine
	// Console makes this process serve the console to the person who started it.
	Console *OwnConsole
	// Flags are the keys of [serve] that flags set, such as http for --http, for errors; and
	// stdio for --stdio.
	Flags map[string]bool

	Screen *terminal.Screen // takes notes for people; its standard output is for MCP over stdio
	Stdin  *os.File
}

// server is one call of [Run].
type server struct {
	Options
	settings *serve.Options
	ending   context.Context // ends when the process shuts down
	end      context.CancelFunc
	web      *web              // next to MCP over HTTP
	logins   *loginpages.Pages // at which people log in at servers; nil before HTTP is served

	// Of stored conversations; nil without them.
	engine engine.Engine
	store  *histories.ClientsOnly
	open   converse.OpenFunc
	api    *api
}

// engineTimeout bounds how long it may take to reach an engine.
const engineTimeout = 20 * time.Second

// Run serves until ctx ends, or until the client over standard input closes it, and then
// waits for running calls. The caller must close the assembly afterwards.
func Run(ctx context.Context, options Options) (err error) {
	if err := options.mayServe(options.Config); err != nil {
		return exit.Usagef("%w", err)
	}
	s := &server{Options: options, settings: options.Config.Serve}
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	s.ending, s.end = context.WithCancel(ctx)
	defer s.end()
	s.announce()
	if s.settings.Asks() {
		if _, err := s.Assembly.History(ctx); err != nil {
			return s.Location.OpenError(err)
		}
	}
	if s.settings.Converse && s.Config.Keeps() {
		var stop func() error
		if stop, err = s.offerConversations(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	watched := &readiness{ending: s.ending, roster: s.Assembly.Roster}
	stop, err := s.serveHealth(watched)
	if err != nil {
		return err
	}
	defer stop()
	if retention := s.Config.Retention(); !retention.KeepsAll() {
		store, err := s.Assembly.History(ctx)
		if err != nil {
			return s.Location.OpenError(err)
		}
		defer startRetention(ctx, store, retention, s.Assembly.Logger)()
	}
	defer watched.connectAll(ctx)()
	s.web = newWeb()
	s.Assembly.Serve.Others = s.web.mux
	servers := newServers(s.Assembly, s.settings, watched.reason)
	if s.api != nil {
		s.api.mount(s.web, servers)
	}
	defer s.Options.startReloads(s.ending, hangUp, servers)()
	opened, closeConsole, err := s.offerConsole(ctx, servers)
	if err != nil {
		return err
	}
	defer closeConsole()
	forced := forceClose(servers.close)
	if s.settings.Listens() {
		err = s.overNetwork(ctx, servers, opened)
	} else {
		err = s.overStdio(ctx, servers.mcp, s.Assembly.Serve.ShutdownTimeout)
	}
	return errors.Join(err, forced())
}

// announce prints where conversations are stored, and notes about the settings.
func (s *server) announce() {
	if s.settings.Converse || s.settings.Asks() {
		s.Location.Announce(s.Screen, s.Config)
	}
	if s.settings.Asks() && !s.Config.Keeps() {
		s.Screen.Note("calls that need an approval cannot wait, because conversations are not stored: only clients that can ask their user can make them")
	}
	if s.Console == nil && s.settings.Converse && s.Config.Approval.Default == "" && len(s.Config.Approval.Rules) == 0 {
		s.Screen.Note("calls that the model makes in conversations run without approval: [approval] is not set; with default = \"defer\", a person answers first")
	}
	if s.Console == nil && (s.Config.Approval.Default != "" || len(s.Config.Approval.Rules) > 0) {
		s.Screen.Note("the rules of [approval] apply to the model only; to limit what clients may call, or to ask before, use serve.rules, or allow and deny of each client and server")
	}
	if s.settings.Converse {
		s.noteSharing(s.Assembly.Sharing())
	}
	if s.settings.AnswersOnlyLoopbackNames() {
		s.Screen.Note("serve.http is open to other machines, and serve.hosts is not set: only requests to localhost and its addresses are answered; set hosts to the names that clients use")
	}
}

// noteSharing prints a note about clients that share conversations; see [config.Assembly.Sharing].
func (o *Options) noteSharing(names []string) {
	if len(names) > 1 {
		o.Screen.Note("the clients %q have the same trusted values, so each of them reads and deletes the conversations of the others; give each its own, such as trusted = {user = \"ada\"}", names)
	}
}

// offerConversations offers the tool converse with stored conversations. The function stop ends
// the engine and leaves running turns for later.
func (s *server) offerConversations(ctx context.Context) (stop func() error, err error) {
	opened, err := s.Assembly.History(ctx)
	if err != nil {
		return nil, s.Location.OpenError(err)
	}
	scope, err := s.Location.Scope()
	if err != nil {
		return nil, err
	}
	store := histories.ClientsOnly{Store: opened, Scope: scope}
	parts := NewParts(s.Assembly, store)
	if s.Console != nil {
		parts.Values = s.ownValues(parts.Values)
	}
	eng, err := openEngine(ctx, &s.Options, parts)
	if err != nil {
		return nil, err
	}
	feed := httpapi.NewFeed(eng, store)
	c := &conversations{engine: eng, feed: feed, store: store, open: parts.Open, owner: s.Assembly.OwnerOf, withSender: s.Assembly.WithSender, ending: s.ending}
	s.engine, s.store, s.open = eng, &store, parts.Open
	tool, err := c.tool()
	if err != nil {
		feed.Close()
		return nil, errors.Join(err, eng.Close(ctx))
	}
	s.Assembly.Serve.Tools = append(s.Assembly.Serve.Tools, tool)
	s.Assembly.ServeGRPC.Tools = append(s.Assembly.ServeGRPC.Tools, tool)
	end := c.pollAnswers(s.Assembly.Logger)
	s.api = &api{server: s, conversations: c, feed: feed}
	return func() error {
		end()
		feed.Close()
		now, cancel := context.WithCancel(context.Background())
		cancel()
		return eng.Close(now)
	}, nil
}

// servers are the servers that clients connect to.
type servers struct {
	mcp  *mcpserver.Server
	grpc *grpctool.Server // offers mcp too; nil if gRPC is not served

	settings atomic.Pointer[serve.Options] // the newest
	assembly atomic.Pointer[config.Assembly]
	config   atomic.Pointer[config.Config] // of the last reload; nil before
	// reload reads the configuration again; nil if it cannot.
	reload func(context.Context) reload.Outcome
}

// newServers returns the servers for an assembly; notReady returns the reason why clients
// should not send calls now.
func newServers(assembly *config.Assembly, settings *serve.Options, notReady func() string) *servers {
	s := &servers{mcp: mcpserver.New(assembly.Roster, assembly.Serve)}
	s.settings.Store(settings)
	s.assembly.Store(assembly)
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

// overNetwork serves over HTTP, gRPC or both until ctx ends or one of them fails, and
// then waits for running calls.
func (s *server) overNetwork(ctx context.Context, servers *servers, opened func(address string)) error {
	web, err := s.listen("http", s.settings.HTTP)
	var rpc net.Listener
	if err == nil {
		rpc, err = s.listen("grpc", s.settings.GRPC)
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
		origin := s.originOf(web.Addr())
		s.offerLogins(web.Addr(), servers.mcp)
		if s.Console == nil {
			s.Screen.Note("serving at %s/mcp", origin)
			if s.api != nil {
				s.Screen.Note("conversations at %s/api/conversations, for OpenAI's clients at /v1, for AG-UI at /agui", origin)
			}
		}
		opened(origin)
		go func() { ended <- servers.mcp.ServeListener(ctx, web) }()
	}
	if rpc != nil {
		serving++
		s.Screen.Note("serving gRPC at %s%s", rpc.Addr(), map[bool]string{true: " over TLS"}[s.settings.GRPCTLS != (serve.TLS{})])
		go func() { ended <- servers.grpc.Serve(ctx, rpc) }()
	}
	for range serving {
		err = errors.Join(err, <-ended)
		cancel() // ends the other one
	}
	bounded, over := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer over()
	return errors.Join(err, servers.close(bounded))
}

// stopTimeout is how long servers may take to end after their calls had time to end.
const stopTimeout = 5 * time.Second

// listen listens at the address of a key of [serve], if it is set.
func (s *server) listen(key string, address values.Value) (net.Listener, error) {
	if address.Reveal() == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address.Reveal())
	if err == nil {
		return listener, nil
	}
	advice := "use an address of this machine"
	switch {
	case errors.Is(err, listening.ErrAddressInUse):
		advice = "another program, or another key of [serve], listens there: stop that program, or choose another port (port 0 chooses a free one)"
	case errors.Is(err, listening.ErrNotPermitted):
		advice = "this user may not listen there: choose a port above 1023"
	}
	err = fmt.Errorf("%w; %s", err, advice)
	if s.Flags[key] {
		return nil, fmt.Errorf("--%s %s: %w", key, address, err)
	}
	return nil, s.Config.LocateKey("serve."+key, err)
}

// overStdio serves the client that started this process until the client closes standard
// input, or until ctx ends and the running calls are done.
func (s *server) overStdio(ctx context.Context, srv *mcpserver.Server, patience time.Duration) error {
	if terminal.IsTerminal(s.Stdin) {
		s.Screen.Note("serving over standard input and output, for an MCP host that starts this program; use --http ADDRESS or --grpc ADDRESS to serve others")
	}
	if patience <= 0 {
		patience = mcpserver.DefaultShutdownTimeout
	}
	closed := make(chan error, 1)
	over := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		closed <- srv.Close(bounded)
	})
	err := srv.Serve(context.WithoutCancel(ctx), closable(s.Stdin, s.end), s.Screen.Stdout)
	if over() {
		return errors.Join(err, srv.Close(ctx))
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

// errForced says that calls may have been cut off.
var errForced = errors.New("a second signal cancelled the calls that were running")

// forceClose cancels running calls when a second signal arrives. The returned function stops
// waiting for signals and returns errForced if the calls were cancelled.
func forceClose(end func(context.Context) error) func() error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
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
		result <- errors.Join(errForced, end(ended))
	}()
	return func() error {
		signal.Stop(signals)
		close(over)
		return <-result
	}
}
