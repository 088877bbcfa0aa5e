// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// defaultArgumentBytes is the default of [Options].ArgumentBytes.
const defaultArgumentBytes = 4096

// Options are the rules of a [Trail]. The zero value records arguments and no
// trusted value.
type Options struct {
	// Identity are the names of the trusted values that are recorded; see
	// [invoker.Trusted]. Secret ones are not, even if they are named.
	Identity []string
	// Omit are patterns of names of arguments whose values are replaced by
	// "[omitted]", wherever in the arguments they stand: * matches any run of
	// characters, ? any one, and capitals do not matter. With any, arguments
	// that are no JSON are left out as a whole, since nobody can tell names
	// in them.
	Omit []string
	// ArgumentBytes bounds the arguments of a record, and those approved: longer ones are recorded
	// as a JSON string with their beginning and their size. Zero is 4096, less
	// than 64 counts as 64, a negative value is no bound.
	ArgumentBytes int
	// Redact takes what is secret out of a text. Every text of a record passes
	// through it, but for names of trusted values. It may be called
	// concurrently; nil leaves texts as they are. A text on which it panics is
	// withheld, which is logged.
	Redact func(text string) string
	// Logger takes the records that a sink does not take, as errors; nil is
	// silent.
	Logger *zap.Logger
}

// Trail applies rules to records and hands them to a sink. A nil *Trail keeps
// nothing. It may be used concurrently.
type Trail struct {
	sink Sink
	opts Options
}

// New returns a trail to a sink, which stays the caller's to close; nil if sink
// is nil. Opts may be nil.
func New(sink Sink, opts *Options) *Trail {
	if sink == nil {
		return nil
	}
	t := &Trail{sink: sink}
	if opts != nil {
		t.opts = *opts
	}
	t.opts.ArgumentBytes = cmp.Or(t.opts.ArgumentBytes, defaultArgumentBytes)
	t.opts.Identity = slices.Clone(t.opts.Identity)
	t.opts.Omit = slices.Clone(t.opts.Omit)
	for i, pattern := range t.opts.Omit {
		t.opts.Omit[i] = fold(pattern)
	}
	t.opts.Logger = event.Logger(t.opts.Logger)
	return t
}

// Keep applies the rules to a record and hands it to the sink. It fills in
// Identity, from the trusted values that ctx carries, and Time, if it is zero.
// It returns when the sink has taken the record, also after the end of ctx, or
// has failed to, which is logged.
func (t *Trail) Keep(ctx context.Context, record Record) {
	if t == nil {
		return
	}
	if err := t.clean(ctx, &record); err != nil {
		event.Log(ctx, t.opts.Logger, zapcore.ErrorLevel, "texts of an audit record were withheld", event.AuditFailed,
			zap.String("tool", record.Tool), zap.String("invocation", record.Invocation), zap.Error(err))
	}
	if err := t.hand(context.WithoutCancel(ctx), &record); err != nil {
		event.Log(ctx, t.opts.Logger, zapcore.ErrorLevel, "an audit record could not be kept", event.AuditFailed, zap.String("tool", record.Tool),
			zap.String("invocation", record.Invocation),
			zap.String("code", record.Code), zap.Error(err))
	}
}

// hand calls the embedder's sink, which may panic.
func (t *Trail) hand(ctx context.Context, record *Record) (err error) {
	if panicked := contain.Call("the sink", func() { err = t.sink.Record(ctx, record) }); panicked != nil {
		return panicked
	}
	return err
}

// The bounds of the texts of a record, in bytes, and of how many there are.
const (
	maxName   = 256
	maxError  = 4096
	maxForged = 32
)

// clean makes a record one that may be written down. The error says that
// Options.Redact panicked, so that texts were withheld.
func (t *Trail) clean(ctx context.Context, r *Record) (panicked error) {
	clean := cleaner{redact.Trusted(ctx, redact.Contained(t.opts.Redact, func(err error) { panicked = err }))}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	for _, name := range []*string{&r.Asker, &r.Client, &r.ClientName, &r.Conversation, &r.Invocation, &r.Ensemble, &r.Tool, &r.By, &r.Code} {
		*name = clean.text(*name, maxName)
	}
	r.Error = clean.text(r.Error, maxError)
	r.Forged = clean.names(r.Forged)
	r.Arguments, r.Approved = t.arguments(clean, r.Arguments), t.arguments(clean, r.Approved)
	r.Identity = t.identity(ctx, clean)
	return panicked
}

// identity returns the trusted values that may be recorded.
func (t *Trail) identity(ctx context.Context, clean cleaner) map[string]json.RawMessage {
	identity := map[string]json.RawMessage{}
	for _, name := range t.opts.Identity {
		value, ok := invoker.TrustedValue(ctx, name)
		if !ok || value.IsSecret() {
			continue
		}
		text, err := value.Reveal()
		if err != nil {
			text = quote("[it has no JSON form]")
		}
		identity[name] = clean.json(text)
	}
	if len(identity) == 0 {
		return nil
	}
	return identity
}

// cleaner takes out what is secret and bounds what is left.
type cleaner struct {
	redact func(text string) string // nil leaves everything
}

func (c cleaner) text(text string, most int) string {
	if c.redact != nil {
		text = c.redact(text)
	}
	return textcut.Prefix(strings.ToValidUTF8(text, "\uFFFD"), most)
}

func (c cleaner) json(text json.RawMessage) json.RawMessage {
	if c.redact == nil {
		return text
	}
	return redact.JSON(text, c.redact)
}

func (c cleaner) names(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	cleaned := make([]string, 0, min(len(names), maxForged))
	for _, name := range names[:min(len(names), maxForged)] {
		cleaned = append(cleaned, c.text(name, maxName))
	}
	return cleaned
}
