// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"go.uber.org/zap"
)

const defaultMaxMessage = 16 << 20 // bytes

// ClientOptions are the options that all transports share. With the zero value, a
// server can ask only the person of a call.
type ClientOptions struct {
	// Server is the name of the server in errors and logs; default the command's name
	// or the URL's host.
	Server string
	// Logger receives the server's own log, the lines of its stderr, and events of the
	// connection; nil discards them.
	Logger *zap.Logger
	// LogLevel asks the server to send log messages of this level and above: debug,
	// info, notice, warning, error, critical, alert or emergency. If empty, the server
	// decides.
	LogLevel string

	// ClientName and ClientVersion identify the client to the server; default "consort"
	// and "0".
	ClientName, ClientVersion string
	// Protocol pins a version of the protocol, such as "2025-11-25". If empty, the
	// version is negotiated as the package comment describes.
	Protocol string
	// ProbeTimeout is how long the server may take to answer the request for the newest
	// protocol before it is asked for an older one. Over stdio and in memory, that
	// happens on the same connection, so that a server that is slow to start is not
	// started again; over HTTP, on a new one. Default: a third of the time left to
	// connect, or 5 s if that is unbounded.
	ProbeTimeout time.Duration
	// MaxMessage bounds one message from the server, in bytes; default 16 MiB. A list
	// may have four times as many bytes, over all its pages, and so may the parameters of
	// all requests of the server that wait for answers; more end the connection.
	MaxMessage int

	// Roots are the locations that the server may work in. If nil, roots are not
	// offered, unless CallRoots is set; a server that asks anyway gets an empty list.
	Roots []Root
	// CallRoots answers a server's request for roots with the roots of the client whose
	// call it runs, if that client is connected through mcpadapter/server and offers
	// roots (see ClientRoots there), and if the call is the only one in flight on the
	// connection; otherwise with Roots. It is off by default because the server learns
	// paths of that client, and a server that stores them applies them to the calls of
	// all clients. It has no effect on servers of protocol 2026-07-28, which always get
	// Roots.
	CallRoots bool
	// Sample lets the server ask for an exchange with a model (MCP 2025-11-25,
	// client/sampling). If nil, the server is offered no model, unless SampleCalls is
	// set.
	Sample func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error)
	// SampleCalls lets the server use the model of the call that its request belongs to
	// ([invoker.Call].Model), if Sample is nil; in a conversation, that is the
	// conversation's model. It is off by default because a server could spend the
	// conversation's tokens and send its model text that the user does not see. A call
	// without a model refuses. Elicit documents which call a request belongs to.
	SampleCalls bool
	// SampleTools lets the server give the model its own tools, which the server runs
	// (MCP 2025-11-25, client/sampling § Sampling with Tools), and declares the
	// capability sampling.tools. Sample must then accept requests with tools; with
	// SampleCalls, a call whose model takes no tools ([invoker.Call].ModelTools)
	// refuses them. If false, requests with tools are refused. Requests that break the
	// protocol's rules for tools reach neither Sample nor the model of a call.
	SampleTools bool
	// Elicit lets the server ask the person a question. If nil, the question goes to
	// the call that it belongs to ([invoker.Call].Person), if that is known: the call
	// that it is a round of (MCP 2026-07-28, SEP-2322), or the only call in flight. A
	// call that was given up still counts as in flight for ten minutes if it was for
	// another client of mcpadapter/server, or another conversation, and the server has
	// not answered it with a result. A call without a Person declines. If no call is
	// known, the question is refused.
	Elicit func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error)
	// AnswerTimeout bounds each call of Sample and Elicit; default 10 min. Each runs in
	// its own goroutine. Its ctx ends after this time, with the connection, or when the
	// server withdraws the request; if the function still does not return, Close
	// returns an error. Until it returns, the time limits of the call that the request
	// belongs to are suspended. If the protocol does not say which call that is, the
	// limits of all calls in flight are.
	AnswerTimeout time.Duration
}

// Root is a location that a server may work in.
type Root struct {
	URI  string // for example file:///home/ada/project
	Name string // to show to people; may be empty
}

// StdioOptions describe a server that runs as a subprocess.
type StdioOptions struct {
	ClientOptions
	// Environment is added to the few harmless variables that the server inherits from
	// this program (PATH, HOME, the locale, the directory for temporary files).
	Environment map[string]string
	// Directory is the server's working directory; default that of this program.
	Directory string
	// Grace bounds each step of shutting the server down: the wait after closing its
	// stdin, and the wait after SIGTERM; default 2 s.
	Grace time.Duration
	// Limits bound the resources of the server's processes.
	Limits ResourceLimits
}

// ResourceLimits bound the resources of each process of a server, as setrlimit(2)
// describes. A limit of zero or less leaves the limit that this program itself has.
// Only Linux can set limits on another process; elsewhere Open returns an error if any
// limit is set.
//
// The limits are set right after the server was started, before anything is sent to it.
// Anything that it does before that is not limited, and neither is a child that it
// starts before that; children that it starts later inherit the limits. A server that a
// limit kills is lost like one that exits, and the error names the signal or status.
//
// The number of processes cannot be limited: the system counts the processes of the
// user (RLIMIT_NPROC), not of the server, so that other programs would use it up.
type ResourceLimits struct {
	// Memory is the address space that a process may have, in bytes (RLIMIT_AS). That
	// is more than the memory in use: a runtime reserves far more than it touches, and
	// exits when it cannot. Allow Go at least 1 GiB, and Node more than 8 GiB, because
	// its WebAssembly reserves that much; for Node, its option --max-old-space-size is
	// the better limit.
	Memory int64
	// OpenFiles is the number of files, pipes and sockets that a process may have open
	// at a time (RLIMIT_NOFILE).
	OpenFiles int
	// CPU is the total processor time that a process may use (RLIMIT_CPU), rounded up
	// to seconds. At the limit it gets SIGXCPU and, if it survives that, SIGKILL after
	// one more second of processor time.
	CPU time.Duration
}

// HTTPOptions describe a server that is reached over HTTP.
type HTTPOptions struct {
	ClientOptions
	// Headers are sent with every request to the server's own origin, and to no other.
	Headers map[string]string
	// TrustedHeaders say on whose behalf a request is made. They map the name of a
	// header to the name of a trusted value ([invoker.Trusted]); a string is sent as it
	// is, anything else as JSON. They are sent with calls of tools, reads of resources,
	// prompts and completions, and override Headers and tokens. If the value is
	// missing, the call fails with UNAUTHORIZED. Requests that serve all users of the
	// connection do not have them: connecting, listing, subscriptions, the streams for
	// messages that the server sends on its own, and answers to its questions. A
	// redirect of a request that has one is refused.
	TrustedHeaders map[string]string
	// BearerToken is sent as the Authorization header.
	BearerToken string
	// Token returns the bearer token for each request and overrides BearerToken. It is
	// called concurrently. If its error has an [invoker.Failure] in its chain, calls fail
	// with that one.
	Token func(context.Context) (string, error)
	// OAuth obtains tokens when the server asks for authorization (MCP 2025-11-25,
	// basic/authorization), by the flow that it implements. Package login has one that
	// stores logins, and package auth of the SDK has several that end with the process.
	// Its TokenSource is not used if Token is set. It is called concurrently.
	OAuth auth.OAuthHandler
	// Client replaces the HTTP client, for example to set proxies and certificates. Its
	// Timeout is not used, because it would cut streams; neither is its CheckRedirect,
	// because redirects to another origin are refused.
	Client *http.Client
}

func (o *ClientOptions) withDefaults(server string) ClientOptions {
	var full ClientOptions
	if o != nil {
		full = *o
	}
	full.Server = cmp.Or(full.Server, server)
	full.ClientName = cmp.Or(full.ClientName, "consort")
	full.ClientVersion = cmp.Or(full.ClientVersion, "0")
	full.Roots = slices.Clone(full.Roots)
	full.Logger = logevent.Logger(full.Logger).With(zap.String("server", full.Server))
	if full.AnswerTimeout <= 0 {
		full.AnswerTimeout = wire.AnswerTimeout
	}
	if full.MaxMessage <= 0 {
		full.MaxMessage = defaultMaxMessage
	}
	return full
}
