// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"

	"github.com/consort-go/consort/config"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger returns the logger to standard error, from the level of the flag, or
// else of the configuration, on.
func (p *program) logger(configured config.Level) (*zap.Logger, error) {
	name := cmp.Or(p.logLevel, string(configured), p.quiet, string(config.LevelWarn))
	switch config.Level(name) {
	case config.LevelDebug, config.LevelInfo, config.LevelWarn, config.LevelError:
	default:
		return nil, usagef("--log-level %s: expected debug, info, warn or error", name)
	}
	level, err := zapcore.ParseLevel(name)
	if err != nil {
		return nil, usagef("--log-level: %w", err)
	}
	format := zap.NewDevelopmentEncoderConfig()
	format.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	if p.screen.notes.on {
		format.EncodeLevel = zapcore.CapitalColorLevelEncoder
	}
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(format), p.screen.logs(), level)
	return zap.New(core), nil
}
