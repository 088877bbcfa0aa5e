// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/pins"
	"github.com/consort-go/consort/mcpadapter"
)

// Config is a configuration that was read and checked. The fields document their zero
// values, so a program can also build a Config itself, or change one before it calls
// [Assemble].
type Config struct {
	// Model is the language model; nil if the file has no [model] table.
	Model *Model
	// Conversation holds the settings of each conversation.
	Conversation Conversation
	// Compaction configures how conversations that outgrow their model are shortened; nil
	// lets them fail.
	Compaction *Compaction
	// Budgets limit what conversations may spend; nil means no limit.
	Budgets *Budgets
	// Approval decides which invocations run.
	Approval Approval
	// MCP holds the MCP servers by name, including imported ones. The name of a server is
	// also the name of its ensemble. May be nil.
	MCP map[string]*Server
	// GRPC holds the servers that are reached over gRPC, by name. MCP and GRPC share no
	// names. May be nil.
	GRPC map[string]*GRPCServer
	// ConcurrentStarts is how many server processes start at the same time; 0 means twice
	// the number of processors.
	ConcurrentStarts int
	// PublicVariables lists the environment variables that contain no secrets; their
	// values may be shown.
	PublicVariables []string
	// Import lists the imported configuration files of other MCP hosts, as written in the
	// file. MCP contains their servers.
	Import []string
	// Tools configures tools that are offered in addition to the tools of the servers.
	Tools Tools
	// Trusted holds facts about the person who runs the program, by name. Tools may see
	// them, models may not. May be nil.
	Trusted map[string]Trusted
	// Audit configures the record of each invocation; nil records nothing.
	Audit *Audit
	// History configures where conversations are stored; nil keeps them in memory, unless
	// the program has its own store.
	History *History
	// Serve configures how everything here is offered to other MCP hosts; nil means the
	// defaults, which serve over standard input and output.
	Serve *Serve
	// Log configures logging.
	Log Log
	// Ignored lists keys of imported files that only other hosts understand. They have
	// the form of problems but are not errors.
	Ignored []*Problem

	source *source // the file; source and root are nil without one
	root   *node
}

// Model is a language model behind an OpenAI-compatible API.
type Model struct {
	// Name is the name of the model in the API. Required.
	Name Value
	// BaseURL is the base URL of the API; empty means OpenAI.
	BaseURL Value
	// APIKey is sent as the bearer token. By default [Parse] takes it from the variable
	// OPENAI_API_KEY, but only for OpenAI's own API.
	APIKey Value
	// Headers are sent with each request.
	Headers map[string]Value

	// Organization and Project are specific to OpenAI; may be empty.
	Organization, Project Value

	// The following fields are sent only if they are set.

	Temperature       *float64
	TopP              *float64
	MaxTokens         int    // limit of one answer in tokens; 0 leaves it to the server
	MaxTokensField    string // name of MaxTokens in the request; empty depends on the server
	Stop              []string
	Seed              *int64
	ToolChoice        string // "auto", "none", "required" or the name of a tool
	ParallelToolCalls *bool
	ReasoningEffort   string          // such as "low"; the values depend on the model
	ResponseFormat    *ResponseFormat // nil for plain text
	// ExtraBody holds additional members of the request, for other servers.
	ExtraBody Table

	// NoStream requests the answer in one piece; the key is stream = false.
	NoStream bool
	// NoStreamUsage is for servers that reject a request for the usage of a streamed
	// answer; the key is stream_usage = false.
	NoStreamUsage bool
	// NoImages is for models that do not accept images; the key is images = false.
	NoImages bool
	// Audio is for models that accept audio.
	Audio bool
	// MaxTools and MaxDescription are limits of the server: the number of tools in a
	// request, and the number of characters in a tool's description. 0 depends on the
	// server, -1 means no limit.
	MaxTools, MaxDescription int

	// InlineRefs inlines the references in tool schemas; nil does so for servers other
	// than OpenAI's and Azure's.
	InlineRefs *bool
	// SupervisorRole is the role of instruction messages; empty means system.
	SupervisorRole string

	// MaxRetries is how often a failed exchange is retried; nil means 2.
	MaxRetries *int
	// ResponseTimeout limits the wait for the response header, IdleTimeout the wait for
	// more of the body; 0 means 10 and 5 minutes.
	ResponseTimeout, IdleTimeout time.Duration
}

// ResponseFormat makes the model answer in JSON.
type ResponseFormat struct {
	Name        string // of the schema; empty means answer
	Description string // for the model; may be empty
	Schema      Table  // JSON Schema; empty allows any JSON object
	Strict      bool   // the server enforces the schema
}

// Conversation holds the settings of a conversation. Zero means the default, as in
// converse.Limits.
type Conversation struct {
	// Instructions begin each conversation; may be empty.
	Instructions string
	// Exchanges is how often the model may be called in a turn; default 16.
	Exchanges int
	// Time is how long a turn may take; no limit by default.
	Time time.Duration
	// Tokens is how many tokens a turn may use; no limit by default.
	Tokens int64
	// Parallel is how many invocations may run at the same time; default 8.
	Parallel int
	// FinalAnswer requests one more answer, without tools, when Exchanges or Tokens is
	// reached.
	FinalAnswer bool
	// ResultBytes limits the size of one result; default 1 MiB.
	ResultBytes int
	// Spill is the folder for the text that ResultBytes cuts off, as converse.SpillFolder
	// stores it; empty for none.
	Spill Value
	// Tools is how many tools a model is offered in total; default 1000.
	Tools int
	// Identity lists the names of the trusted values that identify a person. Approvals,
	// budgets and the conversations of served clients are bound to them. Nil means all.
	Identity []string
}

// Approval decides about each invocation before it runs. The first matching rule decides,
// or Default if none matches.
type Approval struct {
	Default Action // empty means [ActionAllow]
	// Within is how long to wait for a decision if the rule does not say; 0 means 24
	// hours.
	Within time.Duration
	Rules  []Rule
}

// Action is what a rule does with an invocation.
type Action string

// The actions of a rule.
const (
	ActionAllow Action = "allow" // run it
	ActionDeny  Action = "deny"  // do not run it, and tell the model why
	ActionAsk   Action = "ask"   // ask a person, through the program
	// ActionDefer lets the turn wait for a decision, which may come from another process,
	// days later. If the program can ask a person, it asks first, and that person can
	// postpone. If conversations are not stored ([Config.Keeps]) it is the same as
	// ActionAsk.
	ActionDefer Action = "defer"
)

// Rule decides about the invocations that meet all its conditions. An empty or nil
// condition is always met.
type Rule struct {
	// Action is the decision. Required.
	Action Action
	// Reason is sent to the model if Action is [ActionDeny]; may be empty.
	Reason string
	// Within is how long to wait with [ActionDefer]; 0 means [Approval].Within.
	Within time.Duration
	// Who names the person who may decide with [ActionDefer]; empty allows anyone.
	Who string
	// Ensembles and Tools are globs for the name of the ensemble and for the tool's own
	// name in it; one of each must match. * matches any run of characters and ? any
	// single one.
	Ensembles, Tools []string
	// The tool must have these hints, with the defaults of MCP applied. Hints are claims
	// of the tool's author.
	ReadOnly, Idempotent, Destructive, OpenWorld *bool
}

// Tools configures tools that are offered in addition to the tools of the servers.
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

// Restart is the policy for reconnecting to a server after the connection was lost or
// could not be established.
type Restart string

// The restart policies.
const (
	RestartOnUse  Restart = "on_use" // when the server is next used; the default
	RestartAlways Restart = "always" // automatically, after increasing delays
	RestartNever  Restart = "never"  // only on request
)

// Server is one MCP server.
type Server struct {
	Transport Transport
	// Command is the program and its arguments. Required for [Stdio]. Command,
	// Environment, Directory and Limits are only allowed for [Stdio].
	Command []Value
	// Environment holds variables for the process, in addition to a small safe set.
	Environment map[string]Value
	// Directory is the working directory of the process; empty means that of this
	// process.
	Directory Value
	// Limits are resource limits for each process of the server. They work only on Linux.
	Limits mcpadapter.ResourceLimits
	// URL is the address of the server. Required for [HTTP] and [SSE]. Headers are sent
	// with each request. Both are only allowed for [HTTP] and [SSE].
	URL     Value
	Headers map[string]Value
	// Roots are the places that the server is told it may work in; see
	// [mcpadapter.ClientOptions].
	Roots []Root
	// ClientRoots passes the roots of a client of [Serve] to the server; see
	// mcpadapter.ClientOptions.CallRoots.
	ClientRoots bool
	// Sampling lets the server ask the conversation's model; see
	// mcpadapter.ClientOptions.SampleCalls.
	Sampling bool
	// Trusted configures how trusted values are passed to its tools.
	Trusted Passing
	// Protocol fixes the protocol version, such as 2025-11-25; empty negotiates it.
	Protocol string
	Supervision
}

// Supervision configures how the connection to a server is managed, and which of its
// tools are offered.
type Supervision struct {
	// ConnectTimeout limits an attempt to connect; 0 means 5 s, and 30 s for a [Stdio]
	// server.
	ConnectTimeout time.Duration
	// CallTimeout limits how long a call may be silent, CallLimit how long it may take in
	// total; 0 means 30 s and 10 min.
	CallTimeout, CallLimit time.Duration
	// Restart says when a lost server is reconnected.
	Restart Restart
	// ParkAfter is how many losses and failed attempts within ParkWindow park the server;
	// 0 never parks it. Nil means 5 with [RestartAlways], and never with [RestartOnUse].
	// It has no effect with [RestartNever].
	ParkAfter *int
	// ParkWindow is the time window for counting losses and failed attempts; 0 means 5
	// min.
	ParkWindow time.Duration
	// KeepAlive is how long the server may be silent before it is pinged (see
	// ensemble.Options.KeepAlive). IdleDisconnect is how long it may be unused before it
	// is disconnected until its next use. 0 means never.
	KeepAlive, IdleDisconnect time.Duration
	// Refresh is how long the lists of the server are valid if it announces no change; 0
	// means as long as it is connected.
	Refresh time.Duration
	// Trust says which hints of its tools are believed when deciding whether a call may
	// be repeated; empty means ensemble.TrustReads.
	Trust ensemble.Trust
	// MaxTools is how many of its tools are offered; 0 means 1000.
	MaxTools int
	// Allow and Deny are globs over the names that the server gives its tools. An empty
	// Allow allows all; Deny takes precedence.
	Allow, Deny []string
	// Pin is the file with the pinned definitions of its tools. Several servers may share
	// it. If it is not set, nothing is pinned. PinPolicy says what happens to a tool that
	// has changed; empty means pins.SetAside.
	Pin       Value
	PinPolicy pins.Policy
	// Settings belong to the ensemble; its invokers can read them.
	Settings Table
	// Required makes an unreachable server an error.
	Required bool
	// OmitInstructions withholds the server's instructions from models and clients; the
	// key is instructions = false.
	OmitInstructions bool
	// Disabled leaves the server out; the key is enabled = false.
	Disabled bool
	// Origin is where the server was defined, as FILE:LINE, for messages; may be empty.
	Origin string
}

// Log configures logging.
type Log struct {
	Level  Level  // empty means [LevelWarn]
	Format Format // empty means [FormatConsole]
}

// Format is the format of log lines.
type Format string

// The log formats.
const (
	FormatConsole Format = "console" // for people
	FormatJSON    Format = "json"    // one object per line
)

// Level is the lowest level that is logged.
type Level string

// The log levels.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)
