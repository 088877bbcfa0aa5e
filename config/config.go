// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/consort-go/consort/config/serve"

	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/overrides"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
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
	// Budgets limit what conversations may spend; nil means no limit. If Ledger is nil, the
	// accounts are stored together with the conversations, or in memory if conversations
	// are not stored.
	Budgets *budget.Policy
	// Approval decides which invocations run.
	Approval Approval
	// MCP holds the MCP servers by name, including imported ones. The name of a server is
	// also the name of its ensemble. May be nil.
	MCP map[string]*Server
	// GRPC holds the servers that are reached over gRPC, by name. MCP and GRPC share no
	// names. May be nil.
	GRPC map[string]*GRPCServer
	// Logins configures how a program stores the logins at servers.
	Logins Logins
	// ConcurrentStarts is how many server processes start at the same time; 0 means twice
	// the number of processors.
	ConcurrentStarts int
	// PublicVariables lists the environment variables that contain no secrets; their
	// values may be shown.
	PublicVariables []string
	// Import lists the imported configuration files of other MCP hosts, as written in the
	// file. MCP contains their servers.
	Import []string
	// Tools configures how tools are offered, and tools in addition to those of the servers.
	Tools Tools
	// Trusted holds facts about the person who runs the program, by name. Tools may see
	// them, models may not. May be nil.
	Trusted map[string]values.Trusted
	// Audit configures the record of each invocation; nil records nothing.
	Audit *Audit
	// History configures where conversations are stored; nil keeps them in memory, unless
	// the program has its own store.
	History *History
	// Serve configures how everything here is offered to other MCP hosts; nil means the
	// defaults, which serve over standard input and output.
	Serve *serve.Options
	// Log configures logging.
	Log Log
	// Ignored lists keys of imported files that only other hosts understand. They have
	// the form of problems but are not errors.
	Ignored []*Problem

	source *document.Source // the file; source and root are nil without one
	root   *document.Node
}

// Conversation holds the settings of a conversation.
type Conversation struct {
	converse.Limits
	// Instructions begin each conversation; may be empty.
	Instructions string
	// Spill is the folder for the text that ResultBytes cuts off, as spill.Folder
	// stores it; empty for none.
	Spill values.Value
	// Identity lists the names of the trusted values that identify a person. Approvals,
	// budgets and the conversations of served clients are bound to them. Nil means all.
	Identity []string
}

// Approval decides about each invocation before it runs. The first matching rule decides,
// or Default if none matches.
type Approval struct {
	// Default is what happens if no rule matches. Empty means [ActionAllow], or what
	// [AssembleOptions].AskWrites says.
	Default Action
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
	// days later. If the program can ask a person and the rule does not name one in Who, it
	// asks first, and that person can postpone. If conversations are not stored
	// ([Config.Keeps]) it is the same as ActionAsk. A program that stores them must set ID and
	// Log of Assembly.Options; see [Assembly.History].
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

// Server is one MCP server.
type Server struct {
	Transport Transport
	// Command is the program and its arguments. Required for [Stdio]. Command,
	// Environment, Directory and Limits are only allowed for [Stdio].
	Command []values.Value
	// Environment holds variables for the process, in addition to a small safe set.
	Environment map[string]values.Value
	// Directory is the working directory of the process; empty means the one of this
	// process.
	Directory values.Value
	// Limits are resource limits for each process of the server. They work only on Linux.
	Limits mcpadapter.ResourceLimits
	// URL is the address of the server. Required for [HTTP] and [SSE]. Headers are sent
	// with each request. Both are only allowed for [HTTP] and [SSE].
	URL     values.Value
	Headers map[string]values.Value
	// OAuth is the login at the server, for [HTTP] and [SSE] only; nil without a login.
	OAuth *OAuth
	// Roots are the places that the server is told it may work in; see
	// [mcpadapter.ClientOptions].
	Roots []Root
	// ClientRoots passes the roots of a client of [Serve] to the server; see
	// mcpadapter.ClientOptions.CallRoots.
	ClientRoots bool
	// Sampling lets the server ask the conversation's model; see
	// mcpadapter.ClientOptions.SampleCalls.
	Sampling bool
	// TrustedHeaders maps headers of the requests that call a tool to the names of trusted
	// values; for [HTTP] and [SSE] only. Fill passes trusted values as arguments.
	TrustedHeaders map[string]string
	// Protocol fixes the protocol version, such as 2025-11-25; empty negotiates it.
	Protocol string
	Supervision
}

// Supervision configures how the connection to a server is managed, and which of its
// tools are offered. [Assemble] sets Starts, Screen, Redact, Logger and Telemetry.
type Supervision struct {
	// The default of ConnectTimeout is 30 s for a [Stdio] server.
	ensemble.Options
	// Pin is the file with the pinned definitions of its tools. Several servers may share
	// it. If it is not set, nothing is pinned. PinPolicy says what happens to a tool that
	// has changed; empty means pins.SetAside.
	Pin       values.Value
	PinPolicy pins.Policy
	// Tools has names and descriptions for tools, by the server's own names. The new name of
	// a tool is its name everywhere else, also in Allow, Deny and Pin. May be nil.
	Tools map[string]Override
	// Settings belong to the ensemble; its invokers can read them.
	Settings values.Table
	// Disabled leaves the server out; the key is enabled = false.
	Disabled bool
	// Origin is where the server was defined, as FILE:LINE, for messages; may be empty.
	Origin string
}

// Override replaces the name or the description of a tool. An empty field changes nothing.
type Override = overrides.Override

// Log configures logging.
type Log struct {
	Level Level // empty means [LevelWarn]
	JSON  bool  // a line is a JSON object, and not for people; the key is format
}

// Level is the lowest level that is logged.
type Level string

// The log levels.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)
