// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"fmt"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLogger returns a logger for the options of a client, so that the SDK's log entries
// go to the same log as all others: each has the SDK's message in the field "said".
func NewLogger(logger *zap.Logger) log.Logger {
	return sdkLogger{logger.WithOptions(zap.AddCallerSkip(2))}
}

type sdkLogger struct{ *zap.Logger }

func (l sdkLogger) say(level zapcore.Level, said string, pairs []any) {
	entry := l.Check(level, "a message of Temporal's SDK")
	if entry == nil {
		return
	}
	fields := []zap.Field{eventSDKSaid, zap.String("said", said)}
	for i := 0; i+1 < len(pairs); i += 2 {
		fields = append(fields, zap.Any(fmt.Sprint(pairs[i]), pairs[i+1]))
	}
	entry.Write(fields...)
}

func (l sdkLogger) Debug(said string, pairs ...any) { l.say(zapcore.DebugLevel, said, pairs) }
func (l sdkLogger) Info(said string, pairs ...any)  { l.say(zapcore.InfoLevel, said, pairs) }
func (l sdkLogger) Warn(said string, pairs ...any)  { l.say(zapcore.WarnLevel, said, pairs) }
func (l sdkLogger) Error(said string, pairs ...any) { l.say(zapcore.ErrorLevel, said, pairs) }
