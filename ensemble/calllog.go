// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"encoding/json"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The maximum length in the log, in bytes, of the arguments of a call and of an error.
const (
	maxArgumentsLogged = 200
	maxErrorLogged     = 1000
)

// logBegin logs that a call begins. It does no work if the log level is disabled.
func (t *Tool) logBegin(ctx context.Context, call *invoker.Call) {
	e := t.ensemble
	if e.log.Core().Enabled(zapcore.DebugLevel) {
		logevent.Log(ctx, e.log, zapcore.DebugLevel, "a call begins", logevent.CallStarted,
			zap.String("tool", t.definition.Name), zap.String("invocation", call.ID), zap.String("arguments", t.summary(ctx, call.Arguments)))
	}
}

// logEnd logs the result of a call. A failure is logged with all details, because that
// may be the call's only line in the log.
func (t *Tool) logEnd(ctx context.Context, call *invoker.Call, took time.Duration, err error) {
	e := t.ensemble
	if err == nil {
		if e.log.Core().Enabled(zapcore.DebugLevel) {
			logevent.Log(ctx, e.log, zapcore.DebugLevel, "a call succeeded", logevent.CallSucceeded,
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
	logevent.Log(ctx, e.log, level, "a call failed", logevent.CallFailed,
		zap.String("tool", t.definition.Name), zap.String("invocation", call.ID), zap.String("arguments", t.summary(ctx, call.Arguments)),
		zap.Duration("took", took), zap.String("code", string(failure.Code)), zap.Bool("retryable", failure.Retryable),
		zap.String("error", textcut.Bytes(t.clean(ctx)(failure.Error()), maxErrorLogged)))
}

// isRuntimes reports whether a failure arose between the model and the tool, and so
// deserves attention.
func isRuntimes(code invoker.Code) bool {
	switch code {
	case invoker.Unavailable, invoker.Protocol, invoker.Internal, invoker.OutcomeUnknown, invoker.Timeout:
		return true
	}
	return false
}

// clean returns a function that removes secrets from a text.
func (t *Tool) clean(ctx context.Context) func(text string) string {
	return redact.Trusted(ctx, t.ensemble.options.Redact)
}

// summary returns the beginning of the arguments of a call, without secrets.
func (t *Tool) summary(ctx context.Context, arguments json.RawMessage) string {
	return textcut.Bytes(string(redact.JSON(arguments, t.clean(ctx))), maxArgumentsLogged)
}
