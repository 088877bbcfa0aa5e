// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"encoding/json"
	"time"

	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The most that the log says, in bytes, of the arguments of a call and of what
// went wrong.
const (
	maxArgumentsLogged = 200
	maxErrorLogged     = 1000
)

// logBegin logs that a call begins. Nothing is made for lines that the log does
// not take.
func (t *Tool) logBegin(ctx context.Context, call *invoker.Call) {
	e := t.ensemble
	if e.log.Core().Enabled(zapcore.DebugLevel) {
		event.Log(ctx, e.log, zapcore.DebugLevel, "a call begins", event.CallStarted,
			zap.String("tool", t.definition.Name), zap.String("invocation", call.ID), zap.String("arguments", e.summary(ctx, call.Arguments)))
	}
}

// logEnd logs what came of a call: all there is to say if it failed, because the
// log may have nothing else of it.
func (t *Tool) logEnd(ctx context.Context, call *invoker.Call, took time.Duration, err error) {
	e := t.ensemble
	if err == nil {
		if e.log.Core().Enabled(zapcore.DebugLevel) {
			event.Log(ctx, e.log, zapcore.DebugLevel, "a call succeeded", event.CallSucceeded,
				zap.String("tool", t.definition.Name), zap.String("invocation", call.ID), zap.Duration("took", took))
		}
		return
	}
	failure := invoker.AsFailure(err)
	level := zapcore.InfoLevel
	if isRuntimes(failure.Code) {
		level = zapcore.WarnLevel
	}
	if !e.log.Core().Enabled(level) {
		return
	}
	event.Log(ctx, e.log, level, "a call failed", event.CallFailed,
		zap.String("tool", t.definition.Name), zap.String("invocation", call.ID), zap.String("arguments", e.summary(ctx, call.Arguments)),
		zap.Duration("took", took), zap.String("code", string(failure.Code)), zap.Bool("retryable", failure.Retryable),
		zap.String("error", textcut.Bytes(e.clean(ctx)(failure.Error()), maxErrorLogged)))
}

// isRuntimes reports whether a failure is that of what lies between model and
// tool, and so worth a look.
func isRuntimes(code invoker.Code) bool {
	switch code {
	case invoker.Unavailable, invoker.Protocol, invoker.Internal, invoker.OutcomeUnknown, invoker.Timeout:
		return true
	}
	return false
}

// clean takes out of a text what is secret.
func (e *Ensemble) clean(ctx context.Context) func(text string) string {
	return redact.Trusted(ctx, e.options.Redact)
}

// summary is the beginning of the arguments of a call, without what is secret.
func (e *Ensemble) summary(ctx context.Context, arguments json.RawMessage) string {
	return textcut.Bytes(string(redact.JSON(arguments, e.clean(ctx))), maxArgumentsLogged)
}

// logList logs that a connection is asked for its tools, and, by what it
// returns, what came of it. When it fails later than at first, the old list
// stands.
func (e *Ensemble) logList(ctx context.Context) (ended func(*offer, error)) {
	began := time.Now()
	event.Log(ctx, e.log, zapcore.DebugLevel, "the tools are asked for", event.ListStarted)
	return func(o *offer, err error) {
		took := zap.Duration("took", time.Since(began))
		if err != nil {
			event.Log(ctx, e.log, zapcore.WarnLevel, "the tools could not be listed", event.ListFailed, zap.Error(err), took)
			return
		}
		event.Log(ctx, e.log, zapcore.DebugLevel, "the tools were listed", event.ListSucceeded, zap.Int("tools", len(o.tools)), zap.Int("aside", len(o.aside)), took)
	}
}
