// SPDX-License-Identifier: Apache-2.0

package logevent

import (
	"errors"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger returns the logger for a component whose options contain log: a silent one if
// log is nil, and otherwise log with a core whose panics lose only a log line. Zap
// reports such a panic like a failed write, by default on standard error.
func Logger(log *zap.Logger) *zap.Logger {
	if log == nil {
		return zap.NewNop()
	}
	return log.WithOptions(zap.WrapCore(func(inner zapcore.Core) zapcore.Core {
		if _, ok := inner.(*containedCore); ok {
			return inner
		}
		return &containedCore{inner}
	}))
}

// containedCore is a core of an embedding program, whose methods may panic.
type containedCore struct{ inner zapcore.Core }

const theCore = "the logger's core"

// Enabled implements [zapcore.Core].
func (c *containedCore) Enabled(level zapcore.Level) (enabled bool) {
	_ = contain.Call(theCore, func() { enabled = c.inner.Enabled(level) })
	return enabled
}

// With implements [zapcore.Core].
func (c *containedCore) With(fields []zapcore.Field) zapcore.Core {
	with := c.inner
	_ = contain.Call(theCore, func() { with = c.inner.With(fields) })
	return &containedCore{with}
}

// Check implements [zapcore.Core]. It asks the inner core, which may consist of several
// cores that do not all take the entry.
func (c *containedCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	var accepted *zapcore.CheckedEntry
	if err := contain.Call(theCore, func() { accepted = c.inner.Check(entry, nil) }); err != nil {
		return checked.AddCore(entry, &failedCore{Core: c, err: err})
	}
	if accepted == nil {
		return checked
	}
	return checked.AddCore(entry, &acceptedCore{Core: c, accepted: accepted})
}

// Write implements [zapcore.Core].
func (c *containedCore) Write(entry zapcore.Entry, fields []zapcore.Field) (err error) {
	panicked := contain.Call(theCore, func() { err = c.inner.Write(entry, fields) })
	return errors.Join(panicked, err)
}

// Sync implements [zapcore.Core].
func (c *containedCore) Sync() (err error) {
	panicked := contain.Call(theCore, func() { err = c.inner.Sync() })
	return errors.Join(panicked, err)
}

// acceptedCore writes an entry to the inner cores that accepted it.
type acceptedCore struct {
	zapcore.Core // a containedCore
	accepted     *zapcore.CheckedEntry
}

func (c *acceptedCore) Write(entry zapcore.Entry, fields []zapcore.Field) (err error) {
	panicked := contain.Call(theCore, func() { err = redact.WriteChecked(c.accepted, entry, fields) })
	return errors.Join(panicked, err)
}

// failedCore reports that the inner core panicked while checking the entry.
type failedCore struct {
	zapcore.Core // a containedCore
	err          error
}

func (c *failedCore) Write(zapcore.Entry, []zapcore.Field) error { return c.err }
