// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Zap returns a sink that logs each record with the message "invocation", at
// level info, or warn if trusted values were forged. Its fields are the ones that
// the context adds to all log lines ([telemetry.Fields]), followed by the members
// of the JSON form except time, which is the time of the entry. It is an error if
// the logger does not accept a record, because of its level or sampling, fails to
// write it, or is nil.
func Zap(logger *zap.Logger) Sink { return zapSink{logger} }

type zapSink struct{ logger *zap.Logger }

// Record implements [Sink].
func (s zapSink) Record(ctx context.Context, record *Record) error {
	if s.logger == nil {
		return errors.New("audit: the logger is nil")
	}
	level := zapcore.InfoLevel
	if len(record.Forged) > 0 {
		level = zapcore.WarnLevel
	}
	entry := s.logger.Check(level, logevent.InvocationMessage)
	if entry == nil {
		return errors.New("audit: the logger drops the record: its level is too high, or it samples")
	}
	var failed failures
	entry.Time, entry.ErrorOutput = record.Time, &failed
	entry.Write(append(telemetry.Fields(ctx), logevent.AuditKept, zap.Inline(fields{record}))...)
	if failed.text.Len() > 0 {
		return fmt.Errorf("audit: the log cannot be written: %s", bytes.TrimSpace(failed.text.Bytes()))
	}
	return nil
}

// failures collects the error output of a logger.
type failures struct{ text bytes.Buffer }

func (f *failures) Write(text []byte) (int, error) { return f.text.Write(text) }
func (f *failures) Sync() error                    { return nil }

// fields is a record as log fields.
type fields struct{ *Record }

// MarshalLogObject implements [zapcore.ObjectMarshaler].
func (f fields) MarshalLogObject(to zapcore.ObjectEncoder) error {
	for _, text := range []struct{ name, value string }{
		{"asker", f.Asker}, {"client", f.Client}, {"client_name", f.ClientName}, {"conversation", f.Conversation}, {"invocation", f.Invocation}, {"parent", f.Parent},
		{"ensemble", f.Ensemble}, {"tool", f.Tool}, {"by", f.By}, {"code", f.Code}, {"error", f.Error},
	} {
		if text.value != "" {
			to.AddString(text.name, text.value)
		}
	}
	if f.Duration != 0 {
		to.AddFloat64("duration_ms", jsontext.Milliseconds(f.Duration))
	}
	if f.Bytes != 0 {
		to.AddInt("bytes", f.Bytes)
	}
	if len(f.Forged) > 0 {
		zap.Strings("forged", f.Forged).AddTo(to)
	}
	if len(f.Identity) > 0 {
		if err := to.AddReflected("identity", f.Identity); err != nil {
			return err
		}
	}
	if len(f.Arguments) > 0 {
		if err := to.AddReflected("arguments", f.Arguments); err != nil {
			return err
		}
	}
	if len(f.Approved) > 0 {
		return to.AddReflected("approved", f.Approved)
	}
	return nil
}
