// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The older protocols are spoken as well, with what the newest one deprecates.

package mcpadapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/callers"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The default limits of a [Server].
const (
	defaultMaxBody         = 4 << 20  // bytes
	defaultMaxBodies       = 64 << 20 // bytes
	defaultParallel        = 128
	defaultPageSize        = 1000
	defaultMaxSessions     = 1000
	defaultSessionIdle     = 30 * time.Minute
	DefaultShutdownTimeout = 30 * time.Second
)

// ServerOptions are the choices of a [Server]. Nil, and the zero value of each
// field, mean the default that the field names.
type ServerOptions struct {
	// Name and Version are what the server calls itself; default "consort" and
	// "0". Title is the name for people, and Instructions tell clients how to
	// use the server; both may be empty. What the servers behind say about their
	// use ([ensemble.Catalog.Instructions]) follows the latter.
	Name, Title, Version, Instructions string
	// Tools are offered under their own names beside those of the roster, and
	// win over tools of the roster that have the same name. A call of one may
	// take an hour, and 10 min without a report of progress.
	Tools []invoker.Invoker
	// OwnNames offers tools and prompts of the roster under their own names,
	// where those are unique and legal in MCP, in place of ensemble.NameFor.
	OwnNames bool

	// Authenticate turns the bearer token of an HTTP request into trusted
	// values: who the caller is, and what else the tools may rely on. Its
	// error refuses the request with status 401, or 403 if a [ScopeError] is in
	// its chain; what it says goes to the log and not to the caller. An expired
	// token is such an error: it is asked for each request anew. The values make
	// out who the caller is, or the token if there are none. It may be called
	// concurrently.
	Authenticate func(ctx context.Context, token string, r *http.Request) ([]invoker.Value, error)
	// Token is a bearer token for a single client, without trusted values of
	// its own. Tokens are those of several. Both are compared in constant time,
	// and come before Authenticate. With none of the three an HTTP server is
	// open to whoever reaches it.
	Token  string
	Tokens []BearerToken
	// Trusted are attached to each call, over stdio and over HTTP. What a
	// request's own context carries (invoker.WithTrusted, in a handler around
	// that of the server) wins over them, and so do the values of its token.
	Trusted []invoker.Value
	// ResourceMetadata tells clients where tokens come from. Nil tells nothing.
	ResourceMetadata *ResourceMetadata
	// Hosts are the names under which an HTTP server is reached, with or
	// without a port: a request whose Host is none of them is refused (403),
	// as a defence against DNS rebinding. Default: any name if requests need a
	// token, which no web page has; otherwise the names of this machine's
	// loopback. "*" allows any, and gives the defence up.
	Hosts []string
	// Origins are the web pages, such as "https://app.example.com", whose
	// scripts may send requests, beside those of the same host. Requests of
	// others are refused (403). "*" allows any.
	Origins []string
	// MaxBody bounds one message of a client, in bytes; default 4 MiB.
	MaxBody int64
	// MaxBodies bounds the bodies of all HTTP requests under way together, in
	// bytes; default 64 MiB, or four times MaxBody if that is more. One client
	// may take a fourth, and at least one body of MaxBody. A request beyond the
	// fourth is refused with 429, and one beyond the whole with 503, both with
	// Retry-After.
	MaxBodies int64
	// MaxConnections is how many connections ListenAndServe and ServeListener
	// hold, and MaxConnectionsPerAddress how many of one IP address or /64 of
	// IPv6; defaults 4096, but at most half of the files that the process may
	// open, and 1024. At a bound, the connection that has gone longest without
	// a request under way is closed for the new one, at the first bound of the
	// address that has most of them; if each has one, the new one is closed.
	MaxConnections, MaxConnectionsPerAddress int
	// Rate is how many HTTP requests a client may send each second, and Burst
	// how many at once, by default as many as in a second. Zero Rate is no
	// limit. Each message of a batch counts. A client is whoever has the same
	// identity, or, where nobody has one, the same IP address or /64 of IPv6.
	Rate  float64
	Burst int
	// Parallel is how many requests of a client may be under way at once;
	// default 128. Streams that wait for news have the same limit, apart, and so
	// have requests that are still being read.
	Parallel int
	// MaxSessions is how many sessions of protocols before 2026-07-28 there may
	// be over HTTP, a fourth of them of one client; default 1000. At these
	// bounds the oldest idle session of that client, or of the client that has
	// most, ends for the new one. A session without requests and streams for
	// SessionIdle ends; default 30 min.
	MaxSessions int
	SessionIdle time.Duration
	// Stateless keeps nothing of an HTTP client between two requests, whatever
	// protocol it speaks: several copies of the server may then stand behind
	// one address. Tools cannot ask the person or the model of such a client.
	Stateless bool
	// AnswerTimeout is how long a client may take to answer what a tool asks
	// its person or its model; default 10 min.
	AnswerTimeout time.Duration
	// PageSize is how many tools, resources or prompts one answer lists;
	// default 1000.
	PageSize int
	// ShutdownTimeout is how long ListenAndServe and ServeListener let calls
	// finish when their context ends; default 30 s.
	ShutdownTimeout time.Duration
	// Audit keeps a record of each call of a tool. Nil keeps none.
	Audit *audit.Trail
	// Telemetry makes a span and a measurement of each request, as the work of
	// the client's trace where it tells one, and measures how long sessions
	// last. Nil makes none.
	Telemetry *telemetry.Telemetry
	// Logger takes what is worth knowing, with the errors that clients are not
	// told; nil is silent.
	Logger *zap.Logger
}

// Server offers what a roster has over MCP: to one client over a pair of
// streams ([Server.Serve]), to many over streamable HTTP ([Server.Handler]), or
// to both. All methods may be called concurrently.
type Server struct {
	options    ServerOptions
	log        *zap.Logger
	refusals   *zap.Logger // the same, for what hostile clients can repeat: it takes samples
	roster     *ensemble.Roster
	own        *ensemble.Ensemble // of options.Tools
	sdk        *mcp.Server
	offers     offers
	requests   sync.Map // of the HTTP requests under way: their key -> *caller
	serial     atomic.Uint64
	clients    *callers.Clients
	sessions   *sessions
	parked     *parked
	subscribed subscriptions
	unwatch    context.CancelFunc
	watched    sync.WaitGroup // what tells the clients of news

	life       context.Context // ends the calls
	end        context.CancelCauseFunc
	streaming  context.Context // ends the streams that wait for news
	endStreams context.CancelFunc
	running    gate // the requests that are worked on, and the calls that wait between two
	answering  gate // the requests whose answers have not left
	closing    atomic.Bool
	taking     context.Context // ends with closing
	stopTaking context.CancelFunc
	streams    streams
	stall      time.Duration // for a client of a stream to read what there is
	bodies     *bodies
}

var errServerClosed = errors.New("the server is closed")

// NewServer returns a server of what the roster offers, which stays the
// caller's to close, after the server. It serves nobody yet. A nil roster
// offers nothing but options.Tools.
func NewServer(roster *ensemble.Roster, options *ServerOptions) *Server {
	s := &Server{options: options.withDefaults(), roster: roster, stall: maxStall}
	if s.roster == nil {
		s.roster, _ = ensemble.NewRoster() // of nothing: there is no error
	}
	s.log = s.options.Logger
	s.refusals = s.log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, 10, 1000)
	}))
	s.life, s.end = context.WithCancelCause(context.Background())
	s.streaming, s.endStreams = context.WithCancel(context.Background())
	s.taking, s.stopTaking = context.WithCancel(context.Background())
	s.bodies = newBodies(s.options.MaxBodies, s.options.MaxBody)
	s.own = ensemble.New(s.options.Name, ensemble.LocalSource(s.options.Tools...), &ensemble.Options{
		CallTimeout: ownTimeout, CallLimit: ownLimit, Logger: s.log,
	})
	s.clients = callers.New(callers.Limits{Rate: s.options.Rate, Burst: s.options.Burst, Parallel: s.options.Parallel})
	s.sessions = newSessions(&s.options)
	s.parked = newParked(s.options.AnswerTimeout, s.options.Parallel)
	s.sdk = s.newSDK()
	var watching context.Context
	watching, s.unwatch = context.WithCancel(context.Background())
	news := s.roster.Watch(watching)
	s.watched.Go(func() { s.tell(watching, news) })
	return s
}

// Tools of the options have their own limits, such as those of a conversation.
const (
	ownTimeout = 10 * time.Minute
	ownLimit   = time.Hour
)

// newSDK returns the server of the SDK: it speaks the wire, and hands each
// request to receive, which answers from the roster.
func (s *Server) newSDK() *mcp.Server {
	o := &s.options
	server := mcp.NewServer(&mcp.Implementation{Name: o.Name, Title: o.Title, Version: o.Version}, &mcp.ServerOptions{
		Instructions: o.Instructions,
		PageSize:     o.PageSize,
		Capabilities: &mcp.ServerCapabilities{
			Logging:     &mcp.LoggingCapabilities{},
			Tools:       &mcp.ToolCapabilities{ListChanged: true},
			Resources:   &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Prompts:     &mcp.PromptCapabilities{ListChanged: true},
			Completions: &mcp.CompletionCapabilities{},
		},
		SubscribeHandler:   s.subscribe,
		UnsubscribeHandler: s.unsubscribe,
	})
	server.AddReceivingMiddleware(s.receive)
	return server
}

func (o *ServerOptions) withDefaults() ServerOptions {
	var full ServerOptions
	if o != nil {
		full = *o
	}
	full.Name = cmp.Or(full.Name, "consort")
	full.Version = cmp.Or(full.Version, "0")
	full.MaxBody = positive(full.MaxBody, defaultMaxBody)
	full.MaxBodies = positive(full.MaxBodies, max(defaultMaxBodies, 4*full.MaxBody))
	full.Parallel = positive(full.Parallel, defaultParallel)
	full.MaxSessions = positive(full.MaxSessions, defaultMaxSessions)
	full.SessionIdle = positive(full.SessionIdle, defaultSessionIdle)
	full.AnswerTimeout = positive(full.AnswerTimeout, defaultAnswer)
	full.PageSize = positive(full.PageSize, defaultPageSize)
	full.ShutdownTimeout = positive(full.ShutdownTimeout, DefaultShutdownTimeout)
	full.Logger = event.Logger(full.Logger)
	return full
}

// positive returns value, or the default in place of none and of less.
func positive[T int | int64 | time.Duration](value, byDefault T) T {
	if value > 0 {
		return value
	}
	return byDefault
}

// Close takes no new requests, lets those under way finish until ctx ends, and
// then cancels them. Sessions and streams have ended when it returns. The error
// names what did not end; it may be called again, and then waits for the rest.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Store(true)
	s.stopTaking()
	finished := s.running.wait(ctx)
	s.end(errServerClosed)
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), straggle)
	defer cancel()
	s.answering.wait(bound) // the SDK drops the answers of a session that is closed
	s.endStreams()
	s.unwatch()
	s.sessions.end()
	s.streams.end()
	s.subscribed.all.Wait()
	err := s.own.Close(ctx)
	s.watched.Wait()
	if !finished && !s.running.wait(bound) {
		err = errors.Join(err, fmt.Errorf("%d requests have not ended", s.running.count()))
	}
	return err
}

// gate counts what is under way.
type gate struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed when n is 0; nil when nobody waits
}

func (g *gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n--; g.n == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// wait reports whether nothing is under way before ctx ends.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	if g.n == 0 {
		g.mu.Unlock()
		return true
	}
	if g.empty == nil {
		g.empty = make(chan struct{})
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
		return true
	case <-ctx.Done():
		return false
	}
}
