// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/mcpadapter"
)

// Config is a configuration that was read and checked. Its zero values mean
// what the fields say, so that a program can also make one by hand, or change
// what it read before it calls [Assemble].
type Config struct {
	// Model is the language model; nil when the file has no [model] table.
	Model *Model
	// Conversation are the choices of each conversation.
	Conversation Conversation
	// Compaction says what becomes of a conversation that outgrows its model;
	// nil for nothing, so that it fails.
	Compaction *Compaction
	// Budgets say what conversations may spend; nil does not bound it.
	Budgets *Budgets
	// Approval says which invocations run.
	Approval Approval
	// MCP are the servers by name, those that were imported included. The name
	// is that of the ensemble. May be nil.
	MCP map[string]*Server
	// GRPC are the servers that are reached over gRPC, in the same way; no name
	// is in both. May be nil.
	GRPC map[string]*GRPCServer
	// ConcurrentStarts is how many servers that are processes are started at a
	// time; 0 means twice the number of processors.
	ConcurrentStarts int
	// PublicVariables are the environment variables that hold no secrets: what
	// they stand for may be shown.
	PublicVariables []string
	// Import are the files in the form of other MCP hosts whose servers are
	// in MCP, as they were written.
	Import []string
	// Tools are tools that are offered beside those of the servers.
	Tools Tools
	// Trusted is what tools may know, and models not, of whoever runs the
	// program; by name. May be nil.
	Trusted map[string]Trusted
	// Audit says what is kept of each invocation; nil for nothing.
	Audit *Audit
	// History says where conversations are kept; nil keeps them in memory, unless
	// the program has a place of its own for them.
	History *History
	// Serve says how all of this is offered to other MCP hosts; nil means the
	// defaults, which serve over standard input and output.
	Serve *Serve
	// Log says what is logged.
	Log Log
	// Ignored are the keys of imported files that mean something to other
	// hosts only, as problems that are none.
	Ignored []*Problem

	source *source // the file; nil if there is none, as root
	root   *node
}

// Model is a language model behind an OpenAI-compatible API.
type Model struct {
	// Name is what the API calls the model. Required.
	Name Value
	// BaseURL is where the API is; empty means OpenAI.
	BaseURL Value
	// APIKey is sent as the bearer token. [Parse] takes it from the variable
	// OPENAI_API_KEY by default, but for OpenAI's own API only.
	APIKey Value
	// Headers are sent with each request.
	Headers map[string]Value

	// Organization and Project are OpenAI's own; may be empty.
	Organization, Project Value

	// What follows is sent only if it is set.

	Temperature       *float64
	TopP              *float64
	MaxTokens         int    // tokens of one answer; 0 leaves it to the server
	MaxTokensField    string // the request's name for it; empty chooses by server
	Stop              []string
	Seed              *int64
	ToolChoice        string // "auto", "none", "required" or the name of a tool
	ParallelToolCalls *bool
	ReasoningEffort   string          // such as "low"; which ones there are is the model's affair
	ResponseFormat    *ResponseFormat // nil for plain text
	// ExtraBody are further members of the request, for other servers.
	ExtraBody Table

	// NoStream asks for the answer in one piece; the key is stream = false.
	NoStream bool
	// NoStreamUsage is for servers that refuse to be asked for the usage of a
	// streamed answer; the key is stream_usage = false.
	NoStreamUsage bool
	// NoImages is for models that cannot see; the key is images = false.
	NoImages bool
	// Audio is for models that can hear.
	Audio bool
	// MaxTools and MaxDescription are limits of the server: of the tools in a
	// request, and of the characters in a tool's description. 0 chooses by
	// server, -1 is no limit.
	MaxTools, MaxDescription int

	// InlineRefs writes out the references in tool schemas; nil does so for
	// servers other than OpenAI's and Azure's.
	InlineRefs *bool
	// SupervisorRole is the role of instructions; empty means system.
	SupervisorRole string

	// MaxRetries is how often an exchange that failed is tried again; nil
	// means the default of 2.
	MaxRetries *int
	// ResponseTimeout bounds the wait for the head of a response, IdleTimeout
	// the wait for more of its body; 0 means 10 and 5 minutes.
	ResponseTimeout, IdleTimeout time.Duration
}

// ResponseFormat makes the model answer in JSON.
type ResponseFormat struct {
	Name        string // of the schema; empty means answer
	Description string // for the model; may be empty
	Schema      Table  // JSON Schema; when empty, any JSON object will do
	Strict      bool   // the server enforces the schema
}

// Conversation are the choices of a conversation. Zero means the default, as
// in converse.Limits.
type Conversation struct {
	// Instructions open each conversation; may be empty.
	Instructions string
	// Exchanges is how often the model may be asked in a turn; default 16.
	Exchanges int
	// Time is how long a turn may take; default none.
	Time time.Duration
	// Tokens is how many tokens a turn may use; default none.
	Tokens int64
	// Parallel is how many invocations may run at the same time; default 8.
	Parallel int
	// FinalAnswer asks for one more answer, without tools, when Exchanges or
	// Tokens is reached.
	FinalAnswer bool
	// ResultBytes bounds one result; default 1 MiB.
	ResultBytes int
	// Spill is the folder for what ResultBytes cuts off, as converse.SpillFolder
	// keeps it; empty for none.
	Spill Value
	// Tools is how many tools a model is offered in all; default 1000.
	Tools int
	// Identity are the names of the trusted values that say who somebody is:
	// approvals, budgets and the conversations of those who are served are
	// bound to these. Nil means all.
	Identity []string
}

// Approval decides about each invocation before it runs: the first rule that
// fits does, and Default does where none fits.
type Approval struct {
	Default Action // empty means [ActionAllow]
	// Within is how long is waited for somebody where a rule does not say; 0
	// means 24 hours.
	Within time.Duration
	Rules  []Rule
}

// Action is what a rule does with an invocation.
type Action string

// The actions.
const (
	ActionAllow Action = "allow" // it runs
	ActionDeny  Action = "deny"  // it does not, and the model is told why
	ActionAsk   Action = "ask"   // the program asks somebody
	// ActionDefer lets the turn wait for somebody, who may answer in another
	// process, days later. Whoever is there is asked first, and can put it off.
	// Where nothing is kept ([Config.Keeps]) it is ActionAsk.
	ActionDefer Action = "defer"
)

// Rule decides about the invocations that meet all its conditions. A condition
// that is empty or nil is met by every invocation.
type Rule struct {
	// Action is what is decided. Required.
	Action Action
	// Reason is told to the model when Action is [ActionDeny]; may be empty.
	Reason string
	// Within is how long is waited with [ActionDefer]; 0 means [Approval].Within.
	Within time.Duration
	// Who names the one who may answer then; empty lets anybody.
	Who string
	// Ensembles and Tools are globs, of which one must match: the ensemble's
	// name and the tool's own name in it. * matches any run of characters and
	// ? any one.
	Ensembles, Tools []string
	// The hints of the tool must be these, the defaults of MCP applied. They
	// are claims of the tool's author.
	ReadOnly, Idempotent, Destructive, OpenWorld *bool
}

// Tools are tools that are offered beside those of the servers.
type Tools struct {
	// Resources offers a model two tools that list and read the resources of
	// all servers.
	Resources bool
}

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // a subprocess, over its standard input and output
	HTTP  Transport = "http"  // MCP's streamable HTTP
	SSE   Transport = "sse"   // HTTP with server-sent events, of protocol 2024-11-05
)

// Restart says when a server that was lost, or could not be reached, is
// connected again.
type Restart string

// When a server is connected again.
const (
	RestartOnUse  Restart = "on_use" // when it is next used; the default
	RestartAlways Restart = "always" // by itself, after a while that grows
	RestartNever  Restart = "never"  // only by hand
)

// Server is one MCP server.
type Server struct {
	Transport Transport
	// Command is the program and its arguments. Required for [Stdio], as are
	// the next three only allowed for it.
	Command []Value
	// Environment is what the process gets beside a small safe set.
	Environment map[string]Value
	// Directory is where the process runs; empty means where this one does.
	Directory Value
	// Limits bound what each of its processes takes of the machine; on Linux
	// only.
	Limits mcpadapter.ResourceLimits
	// URL is where the server is. Required for [HTTP] and [SSE], and Headers,
	// which are sent with each request, are allowed for those only.
	URL     Value
	Headers map[string]Value
	// Roots are the places that the server may work in, as it is told; see
	// [mcpadapter.ClientOptions].
	Roots []Root
	// ClientRoots passes the roots of a client of [Serve] on to the server; see
	// mcpadapter.ClientOptions.CallRoots.
	ClientRoots bool
	// Sampling lets the server ask the conversation's model; see
	// mcpadapter.ClientOptions.SampleCalls.
	Sampling bool
	// Trusted says how trusted values reach its tools.
	Trusted Passing
	// Protocol pins the protocol version, such as 2025-11-25; empty lets the
	// two sides agree.
	Protocol string
	Supervision
}

// Supervision says how a server is kept, and which of its tools are offered.
type Supervision struct {
	// ConnectTimeout bounds an attempt to connect; 0 means 5 s, and 30 s for a
	// server that is [Stdio].
	ConnectTimeout time.Duration
	// CallTimeout bounds how long a call may give no sign of life, CallLimit
	// how long it may take; 0 means 30 s and 10 min.
	CallTimeout, CallLimit time.Duration
	// Restart says when a server that was lost is connected again.
	Restart Restart
	// ParkAfter is how many losses and failed attempts within ParkWindow park
	// the server; 0 means that none do. Nil means 5 with [RestartAlways], and
	// none with [RestartOnUse]. [RestartNever] has no use for it.
	ParkAfter *int
	// ParkWindow is the time in which they are counted; 0 means 5 min.
	ParkWindow time.Duration
	// KeepAlive is how long the server may be silent before it is asked for a
	// sign of life (see ensemble.Options.KeepAlive), IdleDisconnect how long it may be unused before it is
	// disconnected until the next use; 0 is never.
	KeepAlive, IdleDisconnect time.Duration
	// Refresh is how long its lists stand although it has not said that they
	// changed; 0 is for as long as it is connected.
	Refresh time.Duration
	// Trust says which hints of its tools are believed when it is to be
	// decided whether a call may be made twice; empty means
	// ensemble.TrustReads.
	Trust ensemble.Trust
	// MaxTools is how many of its tools are offered; 0 means 1000.
	MaxTools int
	// Allow and Deny are globs over the server's own names of its tools. An
	// empty Allow allows all; Deny wins.
	Allow, Deny []string
	// Pin is the file that remembers the definitions of its tools, which
	// several servers may share; not set means that none does. PinPolicy says
	// what happens to a tool that has changed; empty means pins.SetAside.
	Pin       Value
	PinPolicy pins.Policy
	// Settings belong to the ensemble; its invokers can read them.
	Settings Table
	// Required makes it an error when the server cannot be reached.
	Required bool
	// OmitInstructions keeps what the server says about its use from models and
	// clients; the key is instructions = false.
	OmitInstructions bool
	// Disabled leaves the server out; the key is enabled = false.
	Disabled bool
	// Origin is where the server was defined, as FILE:LINE, for messages; may
	// be empty.
	Origin string
}

// Log says what is logged.
type Log struct {
	Level  Level  // empty means [LevelWarn]
	Format Format // empty means [FormatConsole]
}

// Format is what a line of the log looks like.
type Format string

// The formats.
const (
	FormatConsole Format = "console" // for people
	FormatJSON    Format = "json"    // an object a line
)

// Level is the least weight of an entry that is logged.
type Level string

// The levels.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)
