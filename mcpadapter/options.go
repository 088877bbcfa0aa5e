// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"go.uber.org/zap"
)

// defaultAnswer is how long a person may think.
const defaultAnswer = 10 * time.Minute

// ClientOptions are what every transport has in common. The zero value is a
// client that lets a server ask nobody but the person of a call.
type ClientOptions struct {
	// Server is what the server is called in errors and logs; default the
	// command's name or the URL's host.
	Server string
	// Logger takes the server's own log, the lines of its stderr, and what is
	// worth knowing about the connection; nil is silent.
	Logger *zap.Logger
	// LogLevel asks the server to send its log from this level on: debug,
	// info, notice, warning, error, critical, alert or emergency. Empty leaves
	// it to the server.
	LogLevel string

	// ClientName and ClientVersion are what the client calls itself; default
	// "consort" and "0".
	ClientName, ClientVersion string
	// Protocol pins a version of the protocol, such as "2025-11-25". Empty
	// negotiates, as the package comment says.
	Protocol string
	// ProbeTimeout is how long a server may keep silent when it is asked for
	// the newest protocol, before it is asked for an older one: over stdio and
	// in memory on the same connection, so that a server that is slow to start
	// is not started again, and over HTTP on a fresh one. Default: a third of
	// the time left to connect, or 5 s if that is unbounded.
	ProbeTimeout time.Duration
	// MaxMessage bounds one message from the server, in bytes; default 16 MiB.
	// A list of what it offers may have four times as many, on all its pages.
	MaxMessage int

	// Roots are the places that the server may work in. Nil means that roots
	// are not offered, unless CallRoots is set; a server that asks all the same gets an empty list.
	Roots []Root
	// CallRoots answers a server's question for roots with those of the client of
	// a [Server] that runs the call (see [ClientRoots]), if its call is the only
	// one in flight on the connection and that client tells roots; otherwise with
	// Roots. False by default, because the server learns paths of that client, and
	// one that keeps them applies them to the calls of all clients. It has no effect
	// on servers of protocol 2026-07-28, which always get Roots.
	CallRoots bool
	// Sample lets the server ask for an exchange with a model (MCP 2025-11-25,
	// client/sampling). Nil offers the server no model, unless SampleCalls does.
	Sample func(context.Context, *invoker.SampleRequest) (*invoker.SampleResult, error)
	// SampleCalls lets the server ask the model of the call that it asks for
	// ([invoker.Call].Model), where Sample is nil: in a conversation that is
	// the conversation's own. False by default, because a server that may could
	// spend the tokens of the conversation, and put words to its model that
	// nobody sees. A call that has no model refuses; see Elicit for which call
	// it is.
	SampleCalls bool
	// SampleTools lets the server give the model that it asks tools of its own, which
	// the server runs (MCP 2025-11-25, client/sampling § Sampling with Tools), and
	// declares the capability sampling.tools. Sample must then take requests with
	// tools; with SampleCalls, a call whose model takes none
	// ([invoker.Call].ModelTools) refuses them. False by default: a request with tools
	// is refused. Requests that break the protocol's rules for tools get to neither.
	SampleTools bool
	// Elicit lets the server ask the person something. Nil leaves it to the
	// call that the server asks for ([invoker.Call].Person), where it is known:
	// the one that the question is a part of (MCP 2026-07-28, SEP-2322), or the
	// only one in flight, among which for ten minutes counts one that was given up
	// for another client of a [Server], or another conversation, and that the server
	// has not answered with a result. A call that has
	// nobody to ask declines, and what no call is known for is not answered.
	Elicit func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error)
	// AnswerTimeout is how long Sample and Elicit may take; default 10 min.
	// Both are called from goroutines of their own. Their ctx ends then, with
	// the connection, or when the server takes the question back; one that
	// does not return all the same is the error of Close. Until they return,
	// the time limits of the call that the server asks for stand still: of all
	// calls in flight where the protocol does not say which one it is.
	AnswerTimeout time.Duration
}

// Root is a place that a server may work in.
type Root struct {
	URI  string // such as file:///home/ada/project
	Name string // for people; may be empty
}

// StdioOptions describe a server that runs as a subprocess.
type StdioOptions struct {
	ClientOptions
	// Environment is given to the server, besides a few harmless variables
	// (PATH, HOME, the locale, the place of temporary files) of this program.
	Environment map[string]string
	// Directory is where the server runs; default the directory of this program.
	Directory string
	// Grace is how long the server may take for each step of ending it: after
	// its stdin is closed, and after SIGTERM; default 2 s.
	Grace time.Duration
	// Limits bound what the server takes of the machine.
	Limits ResourceLimits
}

// ResourceLimits bound what each process of a server may take of the machine,
// as setrlimit(2) describes it. Zero or less leaves the limit that this program
// has itself. Only Linux can set them on a process that is not of this program;
// elsewhere any limit is an error of Open.
//
// They are set right after the server was started, before anything is sent to
// it. What it does in that instant is not bounded, and neither is a child that
// it starts then; all later ones inherit the limits. A server that is ended by
// one is lost like any that exits, and the error names the signal or status.
//
// There is no limit for the number of processes: the system counts those of the
// user (RLIMIT_NPROC), not of the server, so that what else runs would use it up.
type ResourceLimits struct {
	// Memory is how much address space a process may have, in bytes
	// (RLIMIT_AS). That is more than the memory in use: a runtime reserves far
	// more than it touches, and ends when it cannot. Leave 1 GiB and more to
	// Go, and more than 8 GiB to Node, whose WebAssembly reserves as much; its
	// --max-old-space-size is the better limit.
	Memory int64
	// OpenFiles is how many files, pipes and sockets a process may have open at
	// a time (RLIMIT_NOFILE).
	OpenFiles int
	// CPU is the processor time that a process may use up in its life
	// (RLIMIT_CPU), in seconds, rounded up. Then it gets SIGXCPU, and one that
	// withstands it SIGKILL a second of processor time later.
	CPU time.Duration
}

// HTTPOptions describe a server that is reached over HTTP.
type HTTPOptions struct {
	ClientOptions
	// Headers are sent with every request to the server's own origin, and to
	// no other.
	Headers map[string]string
	// TrustedHeaders say for whom a call of a tool is, a read of a resource, a
	// prompt or a completion: the name of the header, and that of the trusted
	// value ([invoker.Trusted]) in it, a string as it is and anything else as
	// JSON. They win over Headers and tokens, and without the value the call
	// fails with UNAUTHORIZED. All other requests serve all who share the
	// connection, and have none of them: connecting, listing, subscriptions,
	// the streams on which the server speaks by itself, answers to its
	// questions. A redirect of a request that has one is refused.
	TrustedHeaders map[string]string
	// BearerToken is sent as the Authorization header.
	BearerToken string
	// Token is asked for the bearer token of each request; it wins over
	// BearerToken. It is called concurrently.
	Token func(context.Context) (string, error)
	// OAuth obtains tokens when the server asks for authorization, by whatever
	// flow it stands for (MCP 2025-11-25, basic/authorization); package auth of
	// the SDK has several. It wins over Token. It is called concurrently.
	OAuth auth.OAuthHandler
	// Client takes the place of the HTTP client, for proxies and certificates.
	// Its Timeout would cut streams and is not used; its CheckRedirect is
	// not used either, since redirects to another origin are refused.
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
	full.Logger = event.Logger(full.Logger)
	full.Logger = full.Logger.With(zap.String("server", full.Server))
	if full.AnswerTimeout <= 0 {
		full.AnswerTimeout = defaultAnswer
	}
	if full.MaxMessage <= 0 {
		full.MaxMessage = defaultMaxMessage
	}
	return full
}
