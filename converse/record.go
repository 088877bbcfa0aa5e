// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// recordUnstarted is [turn.record] for a call that was not made in this work.
func (t *turn) recordUnstarted(o outcome, failure *invoker.Failure) {
	ctx, span := t.startTool(t.ctx, o.call, json.RawMessage(o.call.invocation.Arguments))
	t.endTool(span, &o.result, failure)
	t.record(ctx, o, failure)
}

// record keeps what came of a call, in the audit and in the log. There is one
// call of it for each result. The context is that of the call.
func (t *turn) record(ctx context.Context, o outcome, failure *invoker.Failure) {
	invocation := o.call.invocation
	record := audit.Record{
		Time:         invocation.Time,
		Asker:        "model",
		Conversation: t.opts.ID,
		Invocation:   invocation.ID,
		Tool:         invocation.Name,
		Arguments:    json.RawMessage(invocation.Arguments),
		Approved:     o.approved,
		Duration:     o.duration,
	}
	if tool := o.call.tool; tool != nil {
		record.Ensemble, record.Tool = tool.Ensemble().Name(), tool.Definition().Name
	}
	if failure == nil {
		record.Ended(o.result.Content, nil)
	} else {
		record.Ended(o.result.Content, failure)
		t.logFailure(ctx, invocation, failure)
	}
	t.opts.Audit.Keep(ctx, record)
}

// maxLogged bounds what is logged of what a tool says, in bytes.
const maxLogged = 4096

// logFailure logs a failure: as a warning if somebody should look into it.
func (t *turn) logFailure(ctx context.Context, invocation canister.Invocation, failure *invoker.Failure) {
	log := t.log.With(t.fieldsOf(invocation)...).With(zap.String("code", string(failure.Code)))
	var forged *invoker.Forged
	var panicked *invoker.Panic
	switch {
	case errors.As(failure, &forged):
		log.Warn("the model tried to choose trusted values", zap.Strings("forged", forged.Names))
	case errors.As(failure, &panicked):
		log.Warn("a tool panicked", zap.String("cause", t.logged(panicked.Error())), zap.String("stack", t.logged(string(panicked.Stack))))
	case isUntold(failure):
		log.Warn("a tool failed for a reason that the model was not told", zap.String("cause", t.logged(failure.Cause.Error())))
	default:
		log.Debug("invocation failed", zap.Error(failure))
	}
}

// isUntold reports whether a failure has a cause that nobody expected, and that
// its words do not tell.
func isUntold(failure *invoker.Failure) bool {
	switch failure.Code {
	case invoker.ExecutionFailed, invoker.Internal:
		return failure.Cause != nil && !strings.Contains(failure.Error(), failure.Cause.Error())
	}
	return false
}

// fieldsOf are what a log entry about an invocation has.
func (t *turn) fieldsOf(invocation canister.Invocation) []zap.Field {
	return []zap.Field{
		zap.String("tool", clip(invocation.Name)),
		zap.String("invocation", invocation.ID),
		zap.String("conversation", t.opts.ID),
	}
}

// logged is a text as it may be logged.
func (t *turn) logged(text string) string { return cutText(t.clean.text(text), maxLogged) }

// logEntry logs what a tool says to whoever watches it.
func (b *batch) logEntry(c *call, entry invoker.LogEntry) {
	checked := b.log.Check(levelOf(entry.Level), "a tool says")
	if checked == nil {
		return
	}
	text := string(entry.Data)
	if unquoted := ""; json.Unmarshal(entry.Data, &unquoted) == nil {
		text = unquoted
	}
	fields := append(b.fieldsOf(c.invocation), zap.String("data", b.logged(text)))
	if entry.Logger != "" {
		fields = append(fields, zap.String("logger", clip(b.clean.text(entry.Logger))))
	}
	checked.Write(fields...)
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
