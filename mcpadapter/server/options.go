// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"slices"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"go.uber.org/zap"
)

// The default limits of a [Server].
const (
	defaultMaxBody     = 4 << 20  // bytes
	defaultMaxBodies   = 64 << 20 // bytes
	defaultParallel    = 128
	defaultPageSize    = 1000
	defaultMaxSessions = 1000
	defaultSessionIdle = 30 * time.Minute
)

// DefaultShutdownTimeout is the default of [Options.ShutdownTimeout].
const DefaultShutdownTimeout = 30 * time.Second

// Options configure a [Server]. Nil, and the zero value of a field, mean the
// documented default.
type Options struct {
	// Name and Version identify the server to clients; default "consort" and "0". Title
	// is the display name, and Instructions tell clients how to use the server; both
	// may be empty. The instructions of the roster's servers
	// ([ensemble.Catalog.Instructions]) follow Instructions.
	Name, Title, Version, Instructions string
	// Tools are offered under their own names, in addition to the tools of the roster.
	// They take precedence over roster tools with the same name. Their calls time out
	// after 10 minutes without a progress report, and after an hour in any case.
	Tools []invoker.Invoker
	// OwnNames offers tools and prompts of the roster under their own names instead of
	// ensemble.NameFor, if they are unique and legal in MCP.
	OwnNames bool

	// Authenticate turns the bearer token of an HTTP request into trusted values: the
	// identity of the caller and anything else the tools may rely on. If it returns an
	// error, the request is refused with status 401, or 403 if a [ScopeError] is in the
	// chain, or 503 if an [invoker.Failure] with the code UNAVAILABLE is; the text of the
	// error is logged and not sent to the caller. It must return an error for an expired
	// token: it is called for each request. The name and the values identify the caller; if
	// there are none, the token does. The name, for logs and the audit, may be empty.
	// Package oidc has such a function. It may be called concurrently.
	Authenticate func(ctx context.Context, token string, r *http.Request) (name string, values []invoker.Value, err error) `json:"-"`
	// Token is a bearer token for a single client, without trusted values of its own.
	// Tokens are bearer tokens for several clients. Both are compared in constant time
	// and checked before Authenticate. If none of the three is set, and Certificate is not,
	// an HTTP server is open to anyone who can reach it.
	Token  string
	Tokens []BearerToken
	// Certificate turns the certificate of a client, which TLS has verified, into the name of
	// the client and trusted values, as Authenticate does with a token; an error refuses the
	// request with status 403. A client needs a certificate, or else a token, if there are
	// any; the values of a token are added to those of the certificate. It may be called concurrently.
	Certificate func(ctx context.Context, certificate *x509.Certificate) (name string, values []invoker.Value, err error) `json:"-"`
	// TLS is used by [Server.ServeListener]; nil disables it. ClientAuth must be
	// [tls.RequireAndVerifyClientCert] or [tls.VerifyClientCertIfGiven] for Certificate.
	TLS *tls.Config `json:"-"`
	// Trusted are attached to each call, over stdio and over HTTP. Values in the
	// request's context (set with invoker.WithTrusted by a handler that wraps the
	// server's) and values of the token take precedence.
	Trusted []invoker.Value
	// Select returns the part of the roster, and of Tools, that a caller may use; nil means
	// everything. All else does not exist for the caller: it is not listed, and requests
	// for it are answered like requests for something unknown. ctx carries the trusted
	// values of the caller. Select is called for each request and notification: it should
	// return one of a few selections of the same roster that were made before. A tool of
	// Tools is an item without an ensemble. It may be called concurrently.
	Select func(ctx context.Context) *ensemble.Selection `json:"-"`
	// Profile is like Select for requests to the path /mcp/NAME of [Server.ServeListener], or
	// with the path value mcp_profile ([http.Request.PathValue]) in another server: it
	// returns the part of the roster that a caller may use there. If ok is false, the
	// profile does not exist for the caller, and the status is 404. Nil has no profiles.
	Profile func(ctx context.Context, name string) (part *ensemble.Selection, ok bool) `json:"-"`
	// Finds reports whether a caller is shown only find_tools, call_tool and the tools with a
	// name that a glob of Pinned matches. Such a caller finds and calls the other tools that
	// it may use with these two. Rules, audit, access log and telemetry treat a call through
	// call_tool like a direct call. profile is the profile of the request, or empty. Nil shows
	// all callers all tools. Finds is called for each request, also concurrently.
	Finds  func(ctx context.Context, profile string) bool `json:"-"`
	Pinned []string                                       `json:"-"`
	// Invoke makes a call of a client, or returns a [*invoker.Failure] that says why not: it
	// may ask the client's user ([invoker.Call.Ask]). ctx carries the trusted values of the
	// caller. Nil calls the tool. It may be called concurrently.
	Invoke func(ctx context.Context, call *ToolCall) (invoker.Output, error) `json:"-"`
	// Others answers the requests to paths other than the ones of MCP in
	// [Server.ServeListener]; [Server.Identify] has the checks that MCP's requests pass. Nil
	// refuses them (404).
	Others http.Handler `json:"-"`
	// ResourceMetadata tells clients where to get tokens. Nil publishes nothing.
	ResourceMetadata *ResourceMetadata
	// Hosts are the host names of an HTTP server, with or without a port: a request
	// with any other Host is refused (403), as a defence against DNS rebinding.
	// Default: any name if requests need a token, which a web page does not have;
	// otherwise the loopback names of this machine. "*" allows any name and disables
	// the defence.
	Hosts []string
	// Origins are the web origins, such as "https://app.example.com", whose scripts may
	// send requests. The server's own host is always allowed. Requests from other
	// origins are refused (403). "*" allows any.
	Origins []string
	// MaxBody bounds one message of a client, in bytes; default 4 MiB.
	MaxBody int64
	// MaxBodies bounds the total size of the bodies of all HTTP requests under way, in
	// bytes; default 64 MiB, or four times MaxBody if that is more. One client may use
	// a quarter of it, and at least one body of MaxBody. A request that exceeds the
	// quarter is refused with 429, and one that exceeds the total with 503, both with
	// Retry-After. Calls of protocol 2026-07-28 that may ask their client have the same
	// limits for themselves, until they end, and one too many fails (UNAVAILABLE).
	MaxBodies int64
	// MaxConnections bounds the connections that ListenAndServe and ServeListener hold,
	// and MaxConnectionsPerAddress those of one IP address or IPv6 /64. The defaults
	// are 4096, but at most half of the file limit of the process, and 1024. At a
	// bound, the connection that has been idle for longest is closed: of that address,
	// or of the address with the most idle ones. If none is idle, the new one is
	// closed.
	MaxConnections, MaxConnectionsPerAddress int
	// Rate is how many HTTP requests a client may send each second. Burst is how many
	// it may send at once; default as many as in a second. A Rate of zero is unlimited.
	// Each message of a batch counts; one with more messages than Burst is refused. Requests with the same identity, or without any
	// identity the same IP address or IPv6 /64, belong to the same client.
	Rate  float64
	Burst int
	// Parallel is how many requests of a client may be under way at once; default 128.
	// Streams that wait for notifications, and requests that are still being read, each
	// have a separate limit of the same size.
	Parallel int
	// MaxSessions bounds the HTTP sessions of protocols before 2026-07-28, and one
	// client may have a quarter of them; default 1000. At these bounds a new session
	// replaces the oldest idle session of that client, or of the client with the most
	// sessions. A session without requests and streams for SessionIdle ends; default 30
	// min.
	MaxSessions int
	SessionIdle time.Duration
	// Stateless keeps no state of an HTTP client between two requests, in all protocol
	// versions: several copies of the server may then run behind one address. Tools
	// cannot ask the user or the model of such a client.
	Stateless bool
	// AnswerTimeout is how long a client may take to answer a question of a tool to its
	// user or its model; default 10 min.
	AnswerTimeout time.Duration
	// PageSize is how many tools, resources or prompts one response lists; default
	// 1000.
	PageSize int
	// ShutdownTimeout is how long ListenAndServe and ServeListener let calls
	// finish when their context ends; default 30 s.
	ShutdownTimeout time.Duration
	// AccessLog logs each request at the level info, with the event serve.request.ended:
	// the name of the client's token, the method and the tool, the status, the duration
	// and the size of the response. Requests over HTTP that are refused before the client
	// is known have at most ten lines a second, and then every thousandth.
	AccessLog bool
	// Audit keeps a record of each call of a tool. Nil keeps none.
	Audit *audit.Trail
	// Telemetry records a span and a metric for each request, as part of the client's
	// trace if the request carries one, and measures the duration of sessions. Nil
	// records nothing.
	Telemetry *telemetry.Telemetry
	// Logger receives the server's log entries, including errors that are not sent to
	// clients; nil is silent.
	Logger *zap.Logger
}

// ToolCall is a call of a client, for [Options].Invoke.
type ToolCall struct {
	// Tool is the tool, and Item how selections see it. A tool of [Options].Tools has no
	// ensemble there.
	Tool *ensemble.Tool
	Item ensemble.Item
	Call *invoker.Call
	// Record is the audit record of the call. Invoke may set By and Approved.
	Record *audit.Record

	instead func(context.Context) error // is called instead of the tool; see Server.Perform
}

// Make calls the tool, and sets the duration in the record.
func (c *ToolCall) Make(ctx context.Context) (invoker.Output, error) {
	start := time.Now()
	defer func() { c.Record.Duration = time.Since(start) }()
	switch {
	case c.instead != nil && c.Record.Approved != nil: // it has the arguments that were sent
		return invoker.Output{}, invoker.Failf(invoker.Denied, "The approval has other arguments, which this call cannot take. It was not started. Send it with those.")
	case c.instead != nil:
		return invoker.Output{}, c.instead(ctx)
	}
	return c.Tool.Invoke(ctx, c.Call)
}

func makeCall(ctx context.Context, c *ToolCall) (invoker.Output, error) { return c.Make(ctx) }

func (o *Options) withDefaults() Options {
	var full Options
	if o != nil {
		full = *o
	}
	full.Trusted, full.Pinned = slices.Clone(full.Trusted), slices.Clone(full.Pinned)
	full.Hosts, full.Origins = slices.Clone(full.Hosts), slices.Clone(full.Origins)
	full.Name = cmp.Or(full.Name, "consort")
	full.Version = cmp.Or(full.Version, "0")
	full.MaxBody = positive(full.MaxBody, defaultMaxBody)
	full.MaxBodies = positive(full.MaxBodies, max(defaultMaxBodies, 4*full.MaxBody))
	full.Parallel = positive(full.Parallel, defaultParallel)
	full.MaxSessions = positive(full.MaxSessions, defaultMaxSessions)
	full.SessionIdle = positive(full.SessionIdle, defaultSessionIdle)
	full.AnswerTimeout = positive(full.AnswerTimeout, wire.AnswerTimeout)
	full.PageSize = positive(full.PageSize, defaultPageSize)
	full.ShutdownTimeout = positive(full.ShutdownTimeout, DefaultShutdownTimeout)
	full.Logger = logevent.Logger(full.Logger)
	if full.Invoke == nil {
		full.Invoke = makeCall
	}
	return full
}

// positive returns value if it is positive, and byDefault otherwise.
func positive[T int | int64 | time.Duration](value, byDefault T) T {
	if value > 0 {
		return value
	}
	return byDefault
}
