// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The default limits of a [Server].
const (
	defaultMaxRequest      = 4 << 20 // bytes
	defaultParallel        = 128
	defaultShutdownTimeout = 30 * time.Second
)

// ServerOptions configure a [Server]. Nil, and the zero value of a field, mean the
// documented default.
type ServerOptions struct {
	// Tools are offered under their own names, in addition to the tools of the roster.
	// They take precedence over roster tools with the same name. Their category is
	// empty unless their metadata has one ([invoker.CategoryKey]); the default category of a
	// roster tool is the name of its ensemble.
	Tools []invoker.Invoker
	// OwnNames offers tools of the roster under their own names instead of
	// ensemble.NameFor, if they are unique.
	OwnNames bool

	// MCP is served to the same clients, as frames of a stream
	// (consort.tools.v1.McpService, see DialMCP): content of all kinds, progress,
	// resources, prompts, questions. Clients are authenticated by this server; the
	// tokens of MCP do not apply. The caller must close it, after this server. Nil
	// serves none.
	MCP *server.Server

	// TLS is the TLS configuration of Serve, for example from [TLSFiles]. Nil is
	// plaintext, for use within this machine and in meshes that encrypt by themselves.
	TLS *tls.Config
	// Authenticate turns the bearer token of a request (the metadata authorization)
	// into trusted values: the identity of the caller and anything else the tools may
	// rely on. If it returns an error, the request is refused with UNAUTHENTICATED, or
	// with PERMISSION_DENIED or UNAVAILABLE if the error is an [invoker.Failure] with the
	// code DENIED or UNAVAILABLE; the text of the error is logged and not sent to the
	// caller. The name, for logs and the audit, may be empty. It is called for each
	// request, and may be called concurrently.
	Authenticate func(ctx context.Context, token string) (name string, values []invoker.Value, err error)
	// Token is a bearer token for a single client, without trusted values of its own.
	// Tokens are bearer tokens for several clients. Both are compared in constant time
	// and checked before Authenticate.
	Token  string
	Tokens []BearerToken
	// Certificate turns the certificate of a client, which TLS has verified, into
	// trusted values, as Authenticate does for a token, and the name of the client for
	// logs, metrics and the audit, which may be empty. A request with both has the
	// values of both; the values and the name of the token take precedence. Without
	// tokens, Authenticate and Certificate, a server is open to anyone who can reach it.
	Certificate func(ctx context.Context, certificate *x509.Certificate) (name string, values []invoker.Value, err error)
	// Trusted are attached to each call. The values of a certificate or a token take
	// precedence.
	Trusted []invoker.Value

	// Select returns the part of the roster, and of Tools, that a caller may use; see
	// server.Options. It holds for the tool service; MCP has its own.
	Select func(ctx context.Context) *ensemble.Selection
	// Invoke makes a call of a client, or returns why not; see server.Options. It holds for
	// the tool service, whose clients cannot be asked; MCP has its own.
	Invoke func(ctx context.Context, call *server.ToolCall) (invoker.Output, error)

	// MaxMessage bounds one message from or to a client, in bytes; default 4 MiB, the
	// default limit of gRPC clients. A larger response becomes a failure,
	// RESULT_TOO_LARGE, or an error of MCP. The list of tools may have 16 MiB, the default
	// limit of clients of this package, if that is more. Tools that do not fit are omitted
	// from it and logged; clients can list the tools of one category.
	MaxMessage int
	// Rate is how many requests a client may send each second. Burst is how many it may
	// send at once; default as many as in a second. A Rate of zero is unlimited. On an
	// MCP stream, messages beyond the rate are read later. Requests with the same
	// identity, or without any identity the same IP address or IPv6 /64, belong to the
	// same client.
	Rate  float64
	Burst int
	// Parallel is how many requests of a client may be under way at once, and how many
	// MCP streams it may have open; default 128.
	Parallel int
	// MaxConnections bounds the connections that Serve holds, and
	// MaxConnectionsPerAddress the connections of one IP address or IPv6 /64. The
	// defaults and the behaviour at the bounds are the same as in
	// server.Options.
	MaxConnections, MaxConnectionsPerAddress int
	// NotReady returns a reason of the program why the server should get no calls, for
	// example that it is shutting down, or "". While it returns a reason, the health
	// service of Serve reports NOT_SERVING. It is called each second and must not
	// block. If it is nil, there is no such reason; a panic counts as a reason.
	NotReady func() string
	// ShutdownTimeout is how long Serve lets calls finish when its context
	// ends; default 30 s.
	ShutdownTimeout time.Duration
	// AccessLog logs each request of Serve at the level info, with the event
	// serve.request.ended: the name of the client, the method and the tool, the status,
	// the duration and the size of the response. Requests of the health service and of
	// reflection have no line; requests that are refused before the client is known have
	// at most ten a second, and then every thousandth.
	AccessLog bool
	// Audit keeps a record of each call. Nil keeps none.
	Audit *audit.Trail
	// Telemetry records the requests in traces and metrics: a span for each, as part of
	// the client's trace if the metadata carries one (W3C Trace Context). Tools get it
	// with their context. Nil records nothing.
	Telemetry *telemetry.Telemetry
	// Logger receives the server's log entries, including errors that are not sent to
	// clients; nil is silent.
	Logger *zap.Logger
}

// BearerToken is a token that a client may send; its Name identifies this client in
// limits, logs, metrics and the audit.
type BearerToken = server.BearerToken

func (o *ServerOptions) withDefaults() ServerOptions {
	var full ServerOptions
	if o != nil {
		full = *o
	}
	full.Trusted = slices.Clone(full.Trusted)
	full.MaxMessage = cmp.Or(max(full.MaxMessage, 0), defaultMaxRequest)
	full.Parallel = cmp.Or(max(full.Parallel, 0), defaultParallel)
	full.ShutdownTimeout = cmp.Or(max(full.ShutdownTimeout, 0), defaultShutdownTimeout)
	full.Logger = logevent.Logger(full.Logger)
	if full.Invoke == nil {
		full.Invoke = func(ctx context.Context, call *server.ToolCall) (invoker.Output, error) { return call.Make(ctx) }
	}
	return full
}

// Server offers the contents of a roster as the tool service, under both of its names.
// All methods may be called concurrently.
type Server struct {
	options  ServerOptions
	log      *zap.Logger
	refusals *zap.Logger // log for events that hostile clients can repeat; sampled
	roster   *ensemble.Roster
	own      *ensemble.Ensemble // of options.Tools
	tools    atomic.Pointer[toolset]
	guard    atomic.Pointer[guard]
	clients  *access.Clients
	waiting  openstreams.Set // streams of MCP

	life    context.Context // of the calls; shut ends it when none is left, or to cancel them
	end     context.CancelCauseFunc
	watched sync.WaitGroup // renew

	mu       sync.Mutex
	isClosed bool
	running  sync.WaitGroup // requests
	serving  sync.WaitGroup // Serve
	closed   chan struct{}  // closed when isClosed is set
	notReady sync.Once      // guards the log entry about its panic
}

var errServerClosed = errors.New("the server is closed")

// Limits for calls of the options' tools, instead of the defaults of package ensemble.
const (
	ownTimeout = 10 * time.Minute
	ownLimit   = time.Hour
)

// NewServer returns a server for the contents of the roster. It does not serve until
// one of its methods is called. The caller must close the roster, after the server.
// With a nil roster the server offers only options.Tools.
func NewServer(roster *ensemble.Roster, options *ServerOptions) *Server {
	s := &Server{options: options.withDefaults(), roster: roster}
	if s.roster == nil {
		s.roster, _ = ensemble.NewRoster() // an empty roster: no error is possible
	}
	s.log = s.options.Logger
	s.refusals = s.log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, 10, 1000)
	}))
	s.life, s.end = context.WithCancelCause(context.Background())
	s.guard.Store(newGuard(&s.options))
	s.clients = access.New(access.Limits{Rate: s.options.Rate, Burst: s.options.Burst, Parallel: s.options.Parallel})
	s.closed = make(chan struct{})
	s.own = ensemble.New("grpctool", ensemble.LocalSource(s.options.Tools...), &ensemble.Options{
		CallTimeout: ownTimeout, CallLimit: ownLimit, Logger: s.log,
	})
	if roster != nil {
		news := roster.Watch(s.life)
		s.watched.Go(func() { s.renew(s.life, news) })
	}
	return s
}

// Close refuses new calls, lets calls under way finish until ctx ends, and then cancels
// them. When it returns, everything that Serve was serving has ended. It may be called
// again.
func (s *Server) Close(ctx context.Context) error {
	err := s.shut(ctx)
	s.serving.Wait()
	return err
}

// shut refuses new calls, waits for calls under way until ctx ends, and then cancels
// them.
func (s *Server) shut(ctx context.Context) error {
	s.mu.Lock()
	if !s.isClosed {
		s.isClosed = true
		close(s.closed)
	}
	s.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		s.running.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
	}
	s.end(errServerClosed)
	s.watched.Wait()
	err := s.own.Close(ctx)
	select {
	case <-finished:
		return err
	case <-time.After(straggle):
		return errors.Join(err, fmt.Errorf("calls were still running %s after they were cancelled", straggle))
	}
}

// enter admits a request of a client; the caller must call leave when the request has
// ended. If the request is refused, the failure says why.
func (s *Server) enter(client string, what access.Kind) (leave func(), refused *invoker.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return nil, invoker.Failf(invoker.Unavailable, "The server is shutting down.")
	}
	if wait := s.clients.Arrive(client); wait > 0 {
		return nil, invoker.UnavailableFor(wait, "Too many requests of this client.")
	}
	end := s.clients.Begin(client, what)
	if end == nil {
		return nil, invoker.UnavailableFor(time.Second, "Too many requests of this client are running.")
	}
	s.running.Add(1)
	return func() {
		end()
		s.running.Done()
	}, nil
}

// refusal returns the gRPC status for a request that was refused.
func refusal(failure *invoker.Failure) error {
	if failure.RetryAfter == 0 {
		return status.Error(codes.Unavailable, failure.Message)
	}
	s := status.New(codes.ResourceExhausted, failure.Message)
	if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(failure.RetryAfter)}); err == nil {
		s = detailed
	}
	return s.Err()
}
