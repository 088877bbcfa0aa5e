// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/internal/tally"
	"github.com/consort-go/consort/converse/internal/toolspans"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// auditor records the outcomes of calls for a piece of work: in the audit, in the log
// entries and in the traces. Its methods may be called from any goroutine of the work.
type auditor struct {
	opts  *Options
	guard *guard
	spent *tally.Tally
	spans toolspans.Spans
}

// recordUnstarted is [auditor.record] for a call that this work did not make.
func (a *auditor) recordUnstarted(ctx context.Context, o *outcome, failure *invoker.Failure) {
	ctx, span := a.startTool(ctx, o.call, json.RawMessage(o.call.invocation.Arguments))
	toolspans.End(span, &o.result, failure)
	a.record(ctx, o, failure)
}

// record writes the outcome of a call to the audit and to the log. It is called once
// for each result. Ctx is the context of the call.
func (a *auditor) record(ctx context.Context, o *outcome, failure *invoker.Failure) {
	if o.call.recorded.Swap(true) {
		return // a call that was left behind has returned
	}
	a.spent.Invocation()
	if failure != nil {
		a.logFailure(ctx, o.call.invocation, failure)
	}
	if a.opts.Audit == nil {
		return
	}
	o.call.at.Store("Options.Audit")
	a.guard.watched(ctx, "Options.Audit", func() { a.keep(ctx, o, failure) })
}

// keep passes the record of a call to the audit.
func (a *auditor) keep(ctx context.Context, o *outcome, failure *invoker.Failure) {
	invocation := o.call.invocation
	record := audit.Record{
		Time:         invocation.Time,
		Asker:        "model",
		Conversation: a.opts.ID,
		Invocation:   invocation.ID,
		Parent:       invocation.Parent,
		Tool:         invocation.Name,
		Arguments:    json.RawMessage(invocation.Arguments),
		Approved:     o.approved,
		By:           o.by,
		Duration:     o.duration,
	}
	if o.call.client != nil {
		record.Ensemble = clienttools.Ensemble
	} else if tool := o.call.tool; tool != nil {
		record.Ensemble, record.Tool = tool.Ensemble().Name(), tool.Definition().Name
	}
	if failure == nil {
		record.Ended(o.result.Content, nil)
	} else {
		record.Ended(o.result.Content, failure)
	}
	a.opts.Audit.Keep(ctx, record)
}

// maxLogged bounds logged texts of a tool, in bytes.
const maxLogged = 4096

// logFailure logs a failure, as a warning if it needs attention.
func (a *auditor) logFailure(ctx context.Context, invocation canister.Invocation, failure *invoker.Failure) {
	fields := append(fieldsOf(invocation), zap.String("code", string(failure.Code)))
	var forged *invoker.Forged
	var panicked *invoker.Panic
	switch {
	case errors.As(failure, &forged):
		logevent.Log(ctx, a.guard.log, zapcore.WarnLevel, "the model tried to set trusted values", logevent.InvocationForged, append(fields, zap.Strings("forged", forged.Names))...)
	case errors.As(failure, &panicked):
		fields = append(fields, zap.String("cause", a.guard.logged(panicked.Error())), zap.String("stack", a.guard.logged(string(panicked.Stack))))
		logevent.Log(ctx, a.guard.log, zapcore.WarnLevel, "a tool panicked", logevent.InvocationPanicked, fields...)
	case isUntold(failure):
		fields = append(fields, zap.String("cause", a.guard.logged(failure.Cause.Error())))
		logevent.Log(ctx, a.guard.log, zapcore.WarnLevel, "a tool failed; the model was not given the reason", logevent.InvocationFailed, fields...)
	default:
		logevent.Log(ctx, a.guard.log, zapcore.DebugLevel, "invocation failed", logevent.InvocationFailed, append(fields, zap.Error(failure))...)
	}
}

// isUntold reports whether a failure has an unexpected cause that its message does not
// contain.
func isUntold(failure *invoker.Failure) bool {
	switch failure.Code {
	case invoker.ExecutionFailed, invoker.Internal:
		return failure.Cause != nil && !strings.Contains(failure.Error(), failure.Cause.Error())
	}
	return false
}

// causeOf describes how the process of the server that a call depended on ended, for
// people. It is empty if the model is told in the same words.
func (g *guard) causeOf(failure *invoker.Failure) string {
	if failure == nil {
		return ""
	}
	lost, ok := errors.AsType[*ensemble.ProcessError](failure)
	if !ok || strings.Contains(failure.Message, lost.Error()) {
		return ""
	}
	return g.logged(lost.Error())
}

// fieldsOf returns the fields of log entries about an invocation; the turn's logger
// adds others.
func fieldsOf(invocation canister.Invocation) []zap.Field {
	return []zap.Field{
		zap.String("tool", textcut.Bytes(invocation.Name, bounds.MaxQuoted)),
		zap.String("invocation", invocation.ID),
	}
}

// logged redacts and shortens a text for the log.
func (g *guard) logged(text string) string { return textcut.Prefix(g.clean.Text(text), maxLogged) }

// logEntry logs a log message of a tool.
func (b *batch) logEntry(ctx context.Context, c *call, entry invoker.LogEntry) {
	level := levelOf(entry.Level)
	if entry.Logged || !b.turn.guard.log.Core().Enabled(level) {
		return
	}
	text := string(entry.Data)
	if unquoted := ""; json.Unmarshal(entry.Data, &unquoted) == nil {
		text = unquoted
	}
	fields := append(fieldsOf(c.invocation), zap.String("data", b.turn.guard.logged(text)))
	if entry.Logger != "" {
		fields = append(fields, zap.String("logger", textcut.Bytes(b.clean.Text(entry.Logger), bounds.MaxQuoted)))
	}
	logevent.Log(ctx, b.turn.guard.log, level, "a tool says", logevent.ToolSaid, fields...)
}

// levelOf translates the levels of RFC 5424.
func levelOf(level string) zapcore.Level {
	switch level {
	case "debug":
		return zapcore.DebugLevel
	case "warning":
		return zapcore.WarnLevel
	case "error", "critical", "alert", "emergency":
		return zapcore.ErrorLevel
	}
	return zapcore.InfoLevel
}
