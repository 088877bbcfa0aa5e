// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/callers"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
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

// ServerOptions are the choices of a [Server]. Nil, and the zero value of each
// field, mean the default that the field names.
type ServerOptions struct {
	// Tools are offered under their own names beside those of the roster, and
	// win over tools of the roster that have the same name. Their category is
	// empty unless their metadata has one (CategoryKey); that of a tool of the
	// roster is by default the name of its ensemble.
	Tools []invoker.Invoker
	// OwnNames offers tools of the roster under their own names, where those
	// are unique, in place of ensemble.NameFor.
	OwnNames bool

	// MCP is served to the same clients, as frames of a stream (consort.tools.v1.
	// McpService, see DialMCP): content of all kinds, progress, resources,
	// prompts, questions. It knows its clients by what they are here, its own
	// tokens have no say. It stays the caller's to close, after this server.
	// Nil serves none.
	MCP *mcpadapter.Server

	// TLS is what Serve offers, such as that of [TLSFiles]. Nil is plaintext,
	// for this machine and for meshes that encrypt by themselves.
	TLS *tls.Config
	// Authenticate turns the bearer token of a request (the metadata
	// authorization) into trusted values: who the caller is, and what else the
	// tools may rely on. Its error refuses the request with UNAUTHENTICATED, or
	// with PERMISSION_DENIED if it is an [invoker.Failure] with the code
	// DENIED; what it says goes to the log and not to the caller. It is asked
	// for each request anew, and may be called concurrently.
	Authenticate func(ctx context.Context, token string) ([]invoker.Value, error)
	// Token is a bearer token for a single client, without trusted values of
	// its own. Tokens are those of several. Both are compared in constant time,
	// and come before Authenticate.
	Token  string
	Tokens []BearerToken
	// Certificate does for the certificate of a client, which TLS has
	// verified, what Authenticate does for a token. A request with both has
	// the values of both, those of the token first. With neither tokens nor
	// this a server is open to whoever reaches it.
	Certificate func(ctx context.Context, certificate *x509.Certificate) ([]invoker.Value, error)
	// Trusted are attached to each call. The values of a certificate or a token
	// win over them.
	Trusted []invoker.Value

	// MaxMessage bounds one message from a client or to one, in bytes; default
	// 4 MiB, which is what clients of gRPC take by default. An answer beyond it
	// becomes a failure, RESULT_TOO_LARGE.
	MaxMessage int
	// Rate is how many requests a client may send each second, and Burst how
	// many at once, by default as many as in a second. Zero Rate is no limit.
	// Of a stream of MCP, messages beyond it are read later. A client is whoever
	// has the same identity, or, where nobody has one, the same IP address or /64
	// of IPv6.
	Rate  float64
	Burst int
	// Parallel is how many requests of a client may be under way at once, and
	// how many streams of MCP; default 128.
	Parallel int
	// MaxConnections is how many connections Serve holds, and
	// MaxConnectionsPerAddress how many of one IP address or /64 of IPv6; the
	// defaults are those of mcpadapter.ServerOptions, and so is what happens at
	// the bounds.
	MaxConnections, MaxConnectionsPerAddress int
	// NotReady returns a reason of the program's own why there should be no calls,
	// such as that it is about to end, or "": with a reason, the health service of
	// Serve says NOT_SERVING. It is asked each second and must not block. Nil has
	// no reason; a panic is one.
	NotReady func() string
	// ShutdownTimeout is how long Serve lets calls finish when its context
	// ends; default 30 s.
	ShutdownTimeout time.Duration
	// Audit keeps a record of each call. Nil keeps none.
	Audit *audit.Trail
	// Telemetry shows the requests in traces and metrics: a span for each,
	// in the trace of the client that says in which it is (W3C Trace Context
	// in the metadata). Tools get it with their context. Nil shows nothing.
	Telemetry *telemetry.Telemetry
	// Logger takes what is worth knowing, with the errors that clients are not
	// told; nil is silent.
	Logger *zap.Logger
}

// BearerToken is a token that a client may send; its Name tells this client
// from others in limits.
type BearerToken = mcpadapter.BearerToken

func (o *ServerOptions) withDefaults() ServerOptions {
	var full ServerOptions
	if o != nil {
		full = *o
	}
	full.MaxMessage = cmp.Or(max(full.MaxMessage, 0), defaultMaxRequest)
	full.Parallel = cmp.Or(max(full.Parallel, 0), defaultParallel)
	full.ShutdownTimeout = cmp.Or(max(full.ShutdownTimeout, 0), defaultShutdownTimeout)
	full.Logger = event.Logger(full.Logger)
	return full
}

// Server offers what a roster has as the tool service, under both names of it.
// All methods may be called concurrently.
type Server struct {
	options  ServerOptions
	log      *zap.Logger
	refusals *zap.Logger // the same, for what hostile clients can repeat: it takes samples
	roster   *ensemble.Roster
	own      *ensemble.Ensemble // of options.Tools
	tools    atomic.Pointer[toolset]
	clients  *callers.Clients

	life context.Context // of the calls
	end  context.CancelCauseFunc

	mu       sync.Mutex
	isClosed bool
	running  sync.WaitGroup // requests
	serving  sync.WaitGroup // Serve
	closed   chan struct{}  // isClosed
	over     chan struct{}  // no call is left, or all were cancelled
	ending   sync.Once
	notReady sync.Once // its panic is logged
}

var errServerClosed = errors.New("the server is closed")

// Tools of the options have their own limits, such as those of a conversation.
const (
	ownTimeout = 10 * time.Minute
	ownLimit   = time.Hour
)

// NewServer returns a server of what the roster offers, which stays the
// caller's to close, after the server. It serves nobody yet. A nil roster
// offers nothing but options.Tools.
func NewServer(roster *ensemble.Roster, options *ServerOptions) *Server {
	s := &Server{options: options.withDefaults(), roster: roster}
	if s.roster == nil {
		s.roster, _ = ensemble.NewRoster() // of nothing: there is no error
	}
	s.log = s.options.Logger
	s.refusals = s.log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, 10, 1000)
	}))
	s.life, s.end = context.WithCancelCause(context.Background())
	s.clients = callers.New(callers.Limits{Rate: s.options.Rate, Burst: s.options.Burst, Parallel: s.options.Parallel})
	s.closed, s.over = make(chan struct{}), make(chan struct{})
	s.own = ensemble.New("grpctool", ensemble.LocalSource(s.options.Tools...), &ensemble.Options{
		CallTimeout: ownTimeout, CallLimit: ownLimit, Logger: s.log,
	})
	return s
}

// Close takes no new calls, lets those under way finish until ctx ends, and
// then cancels them. When it returns, what Serve was serving has ended. It may
// be called again.
func (s *Server) Close(ctx context.Context) error {
	err := s.shut(ctx)
	s.serving.Wait()
	return err
}

// shut ends the calls.
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
	s.ending.Do(func() { close(s.over) })
	err := s.own.Close(ctx)
	select {
	case <-finished:
		return err
	case <-time.After(straggle):
		return errors.Join(err, fmt.Errorf("calls have not ended %s after they were cancelled", straggle))
	}
}

// enter lets a request of a client begin; leave is called when it has ended. If
// it may not, the failure says why.
func (s *Server) enter(client string, what callers.Kind) (leave func(), refused *invoker.Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return nil, invoker.Failf(invoker.Unavailable, "The server is about to end.")
	}
	if wait := s.clients.Arrive(client); wait > 0 {
		return nil, invoker.UnavailableFor(wait, "Too many requests of this client.")
	}
	end := s.clients.Begin(client, what)
	if end == nil {
		return nil, invoker.UnavailableFor(time.Second, "Too many requests of this client are under way.")
	}
	s.running.Add(1)
	return func() {
		end()
		s.running.Done()
	}, nil
}

// refusal is the status of a request that may not begin.
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
