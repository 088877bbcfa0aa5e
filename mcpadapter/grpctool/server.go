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
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter"
	"go.uber.org/zap"
)

// The default limits of a [Server].
const (
	DefaultMaxRequest      = 4 << 20 // bytes
	DefaultParallel        = 128
	DefaultShutdownTimeout = 30 * time.Second
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
	// Parallel is how many calls of a client may be under way at once; default
	// 128. A client is whoever has the same identity, or, where nobody has one,
	// the same IP address.
	Parallel int
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

// BearerToken is a token that a client may send.
type BearerToken struct {
	Token string
	// Name tells this client from others in limits; default a name that is
	// made of the token and does not show it.
	Name string
	// Trusted are attached to each call that comes with the token.
	Trusted []invoker.Value
	// Expires is when the token stops to be good; zero is never.
	Expires time.Time
}

func (o *ServerOptions) withDefaults() ServerOptions {
	var full ServerOptions
	if o != nil {
		full = *o
	}
	full.MaxMessage = cmp.Or(max(full.MaxMessage, 0), DefaultMaxRequest)
	full.Parallel = cmp.Or(max(full.Parallel, 0), DefaultParallel)
	full.ShutdownTimeout = cmp.Or(max(full.ShutdownTimeout, 0), DefaultShutdownTimeout)
	if full.Logger == nil {
		full.Logger = zap.NewNop()
	}
	return full
}

// Server offers what a roster has as the tool service, under both names of it.
// All methods may be called concurrently.
type Server struct {
	options ServerOptions
	log     *zap.Logger
	roster  *ensemble.Roster
	own     *ensemble.Ensemble // of options.Tools
	tools   atomic.Pointer[toolset]

	life context.Context // of the calls
	end  context.CancelCauseFunc

	mu       sync.Mutex
	isClosed bool
	load     map[string]int // calls under way, by client
	running  sync.WaitGroup // calls
	serving  sync.WaitGroup // Serve
	closed   chan struct{}  // isClosed
	over     chan struct{}  // no call is left, or all were cancelled
	ending   sync.Once
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
	s.life, s.end = context.WithCancelCause(context.Background())
	s.load = make(map[string]int)
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

// admission is the right of a call to run.
type admission int

const (
	admitted admission = iota
	tooMany            // of this client
	tooLate            // the server is closed
)

// enter lets a call of a client begin; leave is called when it has ended.
func (s *Server) enter(client string) admission {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isClosed:
		return tooLate
	case s.load[client] >= s.options.Parallel:
		return tooMany
	}
	s.load[client]++
	s.running.Add(1)
	return admitted
}

func (s *Server) leave(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load[client]--; s.load[client] == 0 {
		delete(s.load, client)
	}
	s.running.Done()
}
