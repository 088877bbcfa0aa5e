// SPDX-License-Identifier: Apache-2.0

// Package logevent defines the names of log events: each log line has a sentence as its
// message, for people, and one of these names in the field event, for programs. A test
// checks that docs/observability/logs.md lists all of them.
package logevent

import (
	"context"

	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Key is the name of the field that holds the event name.
const Key = "event"

func named(name string) zap.Field { return zap.String(Key, name) }

// Lists and calls of sources of any kind. The names were taken over from earlier
// programs.
var (
	ListStarted   = named("mcp.tools.list.started")
	ListSucceeded = named("mcp.tools.list.succeeded")
	ListFailed    = named("mcp.tools.list.failed")
	CallStarted   = named("mcp.call.started")
	CallSucceeded = named("mcp.call.succeeded")
	CallFailed    = named("mcp.call.failed")
)

// The life of an ensemble.
var (
	StateChanged       = named("ensemble.state.changed")
	Connected          = named("ensemble.connected")
	ConnectFailed      = named("ensemble.connect.failed")
	Lost               = named("ensemble.lost")
	RetryPlanned       = named("ensemble.retry.planned")
	Parked             = named("ensemble.parked")
	Disconnected       = named("ensemble.disconnected")
	CloseFailed        = named("ensemble.close.failed")
	ToolsChanged       = named("ensemble.tools.changed")
	LibraryFailed      = named("ensemble.library.failed")
	SubscriptionFailed = named("ensemble.subscription.failed")
	SourcePanicked     = named("ensemble.source.panicked")
	MetricsFailed      = named("ensemble.metrics.failed")
)

// Logins.
var (
	LoginRenewed = named("login.renewed")
	LoginEnded   = named("login.ended")
	LoginUnsaved = named("login.unsaved")
	// LoginByPerson is a login of a person behind the gateway.
	LoginByPerson       = named("login.completed")
	LoginByPersonFailed = named("login.failed")
)

// Keys of the issuers of clients' tokens.
var (
	OIDCKeysFetched = named("oidc.keys.fetched")
	OIDCKeysFailed  = named("oidc.keys.failed")
)

// Pins.
var (
	Pinned     = named("pins.pinned")
	PinChanged = named("pins.tool.changed")
	PinsFailed = named("pins.failed")
)

// Conversations.
var (
	InvocationForged    = named("invocation.forged")
	InvocationPanicked  = named("invocation.panicked")
	InvocationFailed    = named("invocation.failed")
	ToolSaid            = named("tool.said")
	ToolRefused         = named("model.tool.refused")
	ModelMoved          = named("model.moved")
	ApprovalFailed      = named("approval.failed")
	SpillFailed         = named("result.spill.failed")
	FunctionPanicked    = named("function.panicked")
	FunctionLeft        = named("function.left")
	InstructionsOmitted = named("instructions.omitted")
	Compacted           = named("conversation.compacted")
	ConversationFailed  = named("conversation.close.failed")
	AuditKept           = named("audit.kept")
	AuditFailed         = named("audit.failed")
	BudgetFailed        = named("budget.settle.failed")
)

// Stored conversations.
var (
	HistoryPruned      = named("history.pruned")
	HistoryPruneFailed = named("history.prune.failed")
	WakeFailed         = named("conversation.wake.failed")
	SenderUnknown      = named("conversation.sender.unknown")
)

// Engines.
var (
	TurnFailed   = named("engine.turn.failed")
	TurnRetried  = named("engine.turn.retried")
	TurnPanicked = named("engine.turn.panicked")
	SearchFailed = named("engine.search.failed")
	DeltaLost    = named("engine.delta.lost")
)

// Client connections to servers.
var (
	StderrRead         = named("mcp.stderr.read")
	StdoutRefused      = named("mcp.stdout.refused")
	FrameRefused       = named("mcp.frame.refused")
	ServerSaid         = named("mcp.server.said")
	VersionRefused     = named("mcp.version.refused")
	LevelRefused       = named("mcp.level.refused")
	ListenRefused      = named("mcp.listen.refused")
	DescriptionRefused = named("mcp.description.refused")
	SchemaRefused      = named("mcp.schema.refused")
)

// Servers.
var (
	ServeExposed           = named("serve.exposed")
	ServeFull              = named("serve.full")
	ServeRequestEnded      = named("serve.request.ended")
	ServeRequestRefused    = named("serve.request.refused")
	ServeRequestFailed     = named("serve.request.failed")
	ServeRequestPanicked   = named("serve.request.panicked")
	APIRequestFailed       = named("api.request.failed")
	ServeCallForged        = named("serve.call.forged")
	ServeCallFailed        = named("serve.call.failed")
	ServeApprovalRequested = named("serve.approval.requested")
	ServeApprovalUsed      = named("serve.approval.used")
	ServeApprovalFailed    = named("serve.approval.failed")
	ServeBudgetFailed      = named("serve.budget.failed")
	ServeListFailed        = named("serve.list.failed")
	ServeToolRefused       = named("serve.tool.refused")
	ServeStreamFailed      = named("serve.stream.failed")
	ServeStreamStalled     = named("serve.stream.stalled")
	ConsoleAction          = named("console.action")
	ConsoleUnread          = named("console.unread")
)

// RequestEndedMessage is the message of [ServeRequestEnded]. The log of the command does
// not leave out any of these lines.
const RequestEndedMessage = "a request ended"

// InvocationMessage is the message of a record of the audit trail. The log of the command does
// not leave out any of these lines either.
const InvocationMessage = "invocation"

// The configuration.
var (
	ImportSkipped       = named("config.import.skipped")
	ConfigReloaded      = named("config.reloaded")
	ConfigRejected      = named("config.rejected")
	ConfigRestartNeeded = named("config.restart.needed")
	ReloadWatchFailed   = named("config.watch.failed")
	ReloadListenFailed  = named("config.listen.failed")
)

// The command.
var (
	CommandSaid   = named("command.said")
	VariableWrong = named("command.variable.wrong")
	ExportFailed  = named("telemetry.export.failed")
	LogSampled    = named("log.sampled")
)

// Log writes a log line with the trace and the conversation of ctx. It computes nothing
// if the level is disabled.
func Log(ctx context.Context, log *zap.Logger, level zapcore.Level, message string, event zap.Field, fields ...zap.Field) {
	if entry := log.Check(level, message); entry != nil {
		entry.Write(append(append(telemetry.Fields(ctx), event), fields...)...)
	}
}
