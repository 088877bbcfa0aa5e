// SPDX-License-Identifier: Apache-2.0

package accesslog_test

import (
	"testing"

	"github.com/consort-go/consort/internal/accesslog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// A level that changes while the server runs turns the access log on and off.
func TestLevelChanges(t *testing.T) {
	level := zap.NewAtomicLevelAt(zap.WarnLevel)
	core, lines := observer.New(level)
	logs := accesslog.New(true, zap.New(core), zap.New(core))
	for _, step := range []struct {
		level zapcore.Level
		want  int
	}{{zap.WarnLevel, 0}, {zap.InfoLevel, 1}, {zap.WarnLevel, 1}} {
		level.SetLevel(step.level)
		accesslog.Begin("tools/call").End(logs, "http", "", 0)
		if lines.Len() != step.want {
			t.Errorf("at the level %v there are %d lines, want %d", step.level, lines.Len(), step.want)
		}
	}
}
