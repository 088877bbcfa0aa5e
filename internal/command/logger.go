// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/logsetup"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger returns the logger to standard error, configured by the flags or else by the
// configuration. The function end reports dropped lines that were not reported yet.
func (p *program) logger(configured config.Log) (logger *zap.Logger, end func(), err error) {
	level, err := p.levelOf(configured)
	if err != nil {
		return nil, nil, err
	}
	p.level.SetLevel(level)
	options := logsetup.Options{Level: p.level, JSON: p.inJSON(configured.JSON), Colours: p.screen.Notes.On}
	if p.needs.view && p.screen.Live && !options.JSON && p.logLevel == "" && configured.Level == "" {
		options.Person = func(server, text string) {
			p.screen.Note("%s %s: %s", p.screen.Notes.Bad("✗"), server, display.Text(text))
		}
	}
	logger, end = logsetup.New(p.screen.LogWriter(), options)
	return logger, end, nil
}

// levelOf returns the level of the log: the flag's, or else the configuration's.
func (p *program) levelOf(configured config.Log) (zapcore.Level, error) {
	name := cmp.Or(p.logLevel, string(configured.Level), string(p.needs.quiet), string(config.LevelWarn))
	switch config.Level(name) {
	case config.LevelDebug, config.LevelInfo, config.LevelWarn, config.LevelError:
		return zapcore.ParseLevel(name)
	}
	return 0, exit.Usagef("--log-level %s: expected debug, info, warn or error", name)
}

// inJSON switches the log, and with it all of standard error, to lines of JSON if the
// flag or else the configuration says so. It reports whether JSON is on.
func (p *program) inJSON(configured bool) bool {
	if p.logFormat != "json" && (p.logFormat != "" || !configured) {
		return false
	}
	p.screen.EncodeNotes(logsetup.NoteJSON)
	return true
}
