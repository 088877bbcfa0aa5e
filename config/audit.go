// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/consort-go/consort/config/internal/grammar"
	"github.com/consort-go/consort/config/values"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/sinks"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap/zapcore"
)

// Audit configures the audit trail: which parts of an invocation are recorded, and
// whether records go to File, to the log, or to both. [Assemble] sets Redact and Logger.
type Audit struct {
	audit.Options
	audit.FileOptions
	// File is the JSON Lines file that records are appended to; empty for none.
	File values.Value
	// Log writes the records to the log at level info, or at warn if a trusted value was
	// forged.
	Log bool
}

func (a *Audit) fields() []grammar.Field {
	return []grammar.Field{
		grammar.Key("file", grammar.Path(&a.File)),
		grammar.Key("sync", grammar.Not(&a.NoSync)),
		grammar.Key("log", grammar.Boolean(&a.Log)),
		grammar.Key("identity", grammar.Each(&a.Identity, grammar.Text)),
		grammar.Key("omit", grammar.Each(&a.Omit, grammar.Text)),
		grammar.Key("argument_bytes", grammar.Integer(&a.ArgumentBytes, 64)),
	}
}

// check validates the table as a whole, and the log level.
func (a *Audit) check(r *grammar.Reader, n *document.Node) {
	if n.Member("file") == nil {
		if !a.Log {
			r.Missing(n, "file", `missing: expected a destination for the records, such as file = "audit.jsonl", or log = true`)
		}
		if sync := n.Member("sync"); sync != nil {
			r.WrongKey(sync, "only for a file")
		}
	}
	if log := n.Parent.Member("log"); a.Log && (log == nil || !isLow(log.Member("level"))) {
		r.WrongKey(n.Member("log"), `records are logged at level info; set level = "info" in [log]`)
	}
}

// isLow reports whether a level includes entries of level info.
func isLow(level *document.Node) bool {
	return level != nil && (level.Value == string(LevelInfo) || level.Value == string(LevelDebug))
}

// assembleAudit opens the trail.
func (a *Assembly) assembleAudit(config *Config, o *AssembleOptions) error {
	from := config.Audit
	if o.Previous != nil {
		a.Audit = o.Previous.Audit
	}
	if o.Previous != nil || from == nil {
		return nil
	}
	var to sinks.All
	if from.Log {
		if !o.Logger.Core().Enabled(zapcore.InfoLevel) {
			return grammar.About("audit.log", errors.New("records are logged at level info, but this log drops that level"))
		}
		to = append(to, audit.Zap(o.Logger))
	}
	if path := from.File.Reveal(); path != "" {
		file, err := audit.OpenFile(path, &from.FileOptions)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; create the folder first", err)
		}
		if err != nil {
			return grammar.About("audit.file", err)
		}
		a.shared.closers = append(a.shared.closers, file.Close)
		to = append(to, file)
	}
	if len(to) == 0 {
		return grammar.About("audit", errors.New("missing: expected file or log"))
	}
	options := from.Options
	options.Redact, options.Logger = o.redact, o.Logger
	a.Audit = audit.New(to, &options)
	return nil
}
