// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"errors"

	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap/zapcore"
)

// Audit says what is kept of each invocation, and where: in File, or in the log,
// or in both.
type Audit struct {
	// File takes the records as lines of JSON, after those that it has; empty
	// for none.
	File Value
	// NoSync does not wait until a record is on the disk; the key is
	// sync = false.
	NoSync bool
	// Log has the records logged, at level info, or warn where something was
	// forged.
	Log bool
	// Identity are the names of the trusted values that a record shows. None
	// that is secret ever is.
	Identity []string
	// Omit are globs over the names of arguments, at any depth, whose values
	// are not recorded.
	Omit []string
	// ArgumentBytes bounds the arguments of one record; 0 means 4096.
	ArgumentBytes int
}

func (a *Audit) fields() []field {
	return []field{
		{"file", directory(&a.File)},
		{"sync", not(&a.NoSync)},
		{"log", boolean(&a.Log)},
		{"identity", each(&a.Identity, text)},
		{"omit", each(&a.Omit, text)},
		{"argument_bytes", integer(&a.ArgumentBytes, 64)},
	}
}

// check looks at the table as a whole, and at the level from which on is
// logged.
func (a *Audit) check(r *reader, n *node) {
	if n.member("file") == nil {
		if !a.Log {
			r.missing(n, "file", `missing: expected where the records go, such as file = "audit.jsonl", or log = true`)
		}
		if sync := n.member("sync"); sync != nil {
			r.add(r.problem(sync.keyAt, sync.path(), "only for a file"))
		}
	}
	if log := n.parent.member("log"); a.Log && (log == nil || !isLow(log.member("level"))) {
		r.add(r.problem(n.member("log").keyAt, n.under("log"), `records are logged at level info; set level = "info" in [log]`))
	}
}

// isLow reports whether a level lets entries of level info through.
func isLow(level *node) bool {
	return level != nil && (level.value == string(LevelInfo) || level.value == string(LevelDebug))
}

// assembleAudit opens the trail.
func (a *Assembly) assembleAudit(config *Config, o *AssembleOptions) error {
	from := config.Audit
	if from == nil {
		return nil
	}
	var to sinks
	if from.Log {
		if !o.Logger.Core().Enabled(zapcore.InfoLevel) {
			return about("audit.log", errors.New("records are logged at level info, which this log does not take"))
		}
		to = append(to, audit.Zap(o.Logger))
	}
	if path := from.File.Reveal(); path != "" {
		file, err := audit.OpenFile(path, &audit.FileOptions{NoSync: from.NoSync})
		if err != nil {
			return about("audit.file", err)
		}
		a.closers = append(a.closers, file.Close)
		to = append(to, file)
	}
	if len(to) == 0 {
		return about("audit", errors.New("there is neither a file nor log"))
	}
	a.Audit = audit.New(to, &audit.Options{
		Identity:      from.Identity,
		Omit:          from.Omit,
		ArgumentBytes: from.ArgumentBytes,
		Redact:        o.redact,
		Logger:        o.Logger,
	})
	return nil
}

// sinks are several, each of which gets every record.
type sinks []audit.Sink

func (to sinks) Record(ctx context.Context, record *audit.Record) error {
	var errs []error
	for _, sink := range to {
		errs = append(errs, sink.Record(ctx, record))
	}
	return errors.Join(errs...)
}
