// SPDX-License-Identifier: Apache-2.0

package logevent_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// brokenCore panics in the method that is named.
type brokenCore struct {
	inner zapcore.Core
	in    string
}

func (c brokenCore) fail(method string) {
	if c.in == method {
		panic("boom in " + method)
	}
}

func (c brokenCore) Enabled(level zapcore.Level) bool {
	c.fail("Enabled")
	return c.inner.Enabled(level)
}

func (c brokenCore) With(fields []zapcore.Field) zapcore.Core {
	c.fail("With")
	return brokenCore{c.inner.With(fields), c.in}
}

func (c brokenCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	c.fail("Check")
	return checked.AddCore(entry, c)
}

func (c brokenCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	c.fail("Write")
	if c.in == "fails" {
		return errors.New("the disk is full")
	}
	return c.inner.Write(entry, fields)
}

func (c brokenCore) Sync() error {
	c.fail("Sync")
	return c.inner.Sync()
}

func TestAPanicOfALoggerCostsALine(t *testing.T) {
	for in, want := range map[string]struct {
		lines int
		said  string
	}{
		"":        {lines: 1},
		"Enabled": {},
		"With":    {lines: 1},
		"Check":   {said: "the logger's core panicked: boom in Check\n"},
		"Write":   {said: "the logger's core panicked: boom in Write\n"},
		"Sync":    {lines: 1},
		"fails":   {said: " write error: the disk is full\n"},
	} {
		inner, lines := observer.New(zap.InfoLevel)
		var said bytes.Buffer
		log := logevent.Logger(zap.New(brokenCore{inner, in}, zap.ErrorOutput(zapcore.AddSync(&said))))
		log = logevent.Logger(log).With(zap.String("ensemble", "e"))
		log.Info("connected", logevent.Connected)
		log.Debug("not asked for")
		_ = log.Sync()
		if lines.Len() != want.lines || want.said == "" && said.Len() > 0 || !strings.HasSuffix(said.String(), want.said) ||
			strings.Count(said.String(), "write error") > 1 {
			t.Errorf("%q: %d lines, and zap says %q", in, lines.Len(), said.String())
		}
	}
}

func TestNoLoggerIsSilent(t *testing.T) {
	logevent.Logger(nil).Error("nobody hears this")
}
