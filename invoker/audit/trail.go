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
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// defaultArgumentBytes is the default of [Options].ArgumentBytes.
const defaultArgumentBytes = 4096

// Options are the rules of a [Trail]. The zero value records arguments but no
// trusted values.
type Options struct {
	// Identity are the names of the trusted values to record; see [invoker.Trusted].
	// Secret values are not recorded even if they are named.
	Identity []string
	// Omit has patterns for names of arguments, at any depth, whose values are
	// replaced by "[omitted]": * matches any number of characters, ? any one
	// character, and case is ignored. If there are patterns, arguments that are not
	// JSON are omitted completely, because names cannot be found in them.
	Omit []string
	// ArgumentBytes limits the arguments of a record, and the approved arguments:
	// longer ones are recorded as a JSON string with their beginning and their size.
	// Zero means 4096, positive values below 64 mean 64, and a negative value means
	// no limit.
	ArgumentBytes int
	// Redact removes secrets from a text. It is applied to every text of a record
	// except the names of recorded trusted values. It may be called concurrently. Nil
	// leaves texts unchanged. If it panics, the text is withheld, which is logged.
	Redact func(text string) string `json:"-"`
	// Logger logs, as errors, the records that a sink fails to store; nil logs
	// nothing.
	Logger *zap.Logger
}

// Trail applies rules to records and passes them to a sink. A nil *Trail discards
// records. It may be used concurrently.
type Trail struct {
	sink Sink
	opts Options
}

// New returns a trail that writes to sink, or nil if sink is nil. The caller must
// close the sink. opts may be nil.
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
	t.opts.Logger = logevent.Logger(t.opts.Logger)
	return t
}

// Keep applies the rules to a record and passes it to the sink. It sets Identity,
// from the trusted values that ctx carries, and Time, if it is zero. It returns
// when the sink has stored the record, even after the end of ctx, or has failed,
// which is logged.
func (t *Trail) Keep(ctx context.Context, record Record) {
	if t == nil {
		return
	}
	if err := t.clean(ctx, &record); err != nil {
		logevent.Log(ctx, t.opts.Logger, zapcore.ErrorLevel, "texts of an audit record were withheld", logevent.AuditFailed,
			zap.String("tool", record.Tool), zap.String("invocation", record.Invocation), zap.Error(err))
	}
	if err := t.hand(context.WithoutCancel(ctx), &record); err != nil {
		logevent.Log(ctx, t.opts.Logger, zapcore.ErrorLevel, "an audit record could not be written", logevent.AuditFailed, zap.String("tool", record.Tool),
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

// The limits for the texts of a record, in bytes, and for the number of forged
// names.
const (
	maxName   = 256
	maxError  = 4096
	maxForged = 32
)

// clean makes a record safe to store. It returns an error if Options.Redact
// panicked, so that texts were withheld.
func (t *Trail) clean(ctx context.Context, r *Record) (panicked error) {
	clean := cleaner{redact.Trusted(ctx, redact.Contained(t.opts.Redact, func(err error) { panicked = err }))}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	for _, name := range []*string{&r.Asker, &r.Client, &r.ClientName, &r.Conversation, &r.Invocation, &r.Parent, &r.Ensemble, &r.Tool, &r.By, &r.Code} {
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

// cleaner removes secrets and limits the length of texts.
type cleaner struct {
	redact func(text string) string // nil changes nothing
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
