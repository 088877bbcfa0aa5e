// SPDX-License-Identifier: Apache-2.0

// Package event has the names of what the log tells: each line has a sentence
// for people as its message and one of these, in the field event, for programs.
// The table of docs/observability/logs.md has them all, which a test sees to.
package event

import (
	"context"

	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Key is the field that has the name.
const Key = "event"

func named(name string) zap.Field { return zap.String(Key, name) }

// Requests to servers.
var (
	ListStarted   = named("mcp.tools.list.started")
	ListSucceeded = named("mcp.tools.list.succeeded")
	ListFailed    = named("mcp.tools.list.failed")
	CallStarted   = named("mcp.call.started")
	CallSucceeded = named("mcp.call.succeeded")
	CallFailed    = named("mcp.call.failed")
)

// Log writes a line that belongs to the work of ctx: it says of which trace and
// conversation it is. Nothing is computed if the log does not take the level.
func Log(ctx context.Context, log *zap.Logger, level zapcore.Level, message string, event zap.Field, fields ...zap.Field) {
	if entry := log.Check(level, message); entry != nil {
		entry.Write(append(append(telemetry.Fields(ctx), event), fields...)...)
	}
}
