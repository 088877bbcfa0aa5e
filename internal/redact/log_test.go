// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// written returns a logger and what it writes.
func written(level zapcore.Level) (zapcore.Core, *bytes.Buffer) {
	var out bytes.Buffer
	config := zap.NewProductionEncoderConfig()
	config.TimeKey = ""
	return zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(&out), level), &out
}

type broken struct{}

func (*broken) Error() string { panic("hunter2-hunter2") }

func TestCoreFindsSecretsEverywhere(t *testing.T) {
	const secret = "hunter2-hunter2"
	inner, out := written(zap.DebugLevel)
	logger := zap.New(redact.Core(inner, redact.New(secret)), zap.AddStacktrace(zap.ErrorLevel))
	fault := errors.New(secret)
	object := zapcore.ObjectMarshalerFunc(func(e zapcore.ObjectEncoder) error { e.AddString("k", secret); return nil })
	var typedNil *broken
	fields := []zap.Field{
		zap.String("text", secret), zap.ByteString("bytes", []byte(secret)), zap.Binary("binary", []byte(secret)),
		zap.Error(fault), zap.NamedError("joined", errors.Join(fault, fmt.Errorf("%w", fault))), zap.Errors("errors", []error{fault}),
		zap.Stringer("stringer", bytes.NewBufferString(secret)), zap.Any("map", map[string]any{secret: []string{secret}}),
		zap.Any("function", map[string]any{"f": func() {}, "k": secret}), zap.Strings("strings", []string{secret}),
		zap.Object("object", object), zap.Inline(object), zap.Dict("dict", zap.String("k", secret)), zap.Error(nil),
		zap.NamedError("broken", &broken{}), zap.NamedError("nil", typedNil), zap.Reflect("pointer", &struct{ K string }{secret}),
	}
	logger.With(fields...).Named(secret).Error(secret+" happened", fields...)
	logger.WithLazy(fields...).Sugar().Infof("%s", secret)
	text := out.String()
	if strings.Contains(text, secret) || strings.Contains(text, "aHVudGVyMi1odW50ZXIy") {
		t.Errorf("the log shows the secret: %s", text)
	}
	for _, field := range fields {
		if field.Key != "" && !strings.Contains(text, `"`+field.Key) {
			t.Errorf("the field %s is lost: %s", field.Key, text)
		}
	}
	if n := strings.Count(text, redact.Mark); n < 40 {
		t.Errorf("only %d marks: %s", n, text)
	}
}

func TestCoreLeavesTheRestAlone(t *testing.T) {
	plain, want := written(zap.DebugLevel)
	inner, got := written(zap.DebugLevel)
	for _, core := range []zapcore.Core{plain, redact.Core(inner, redact.New("hunter2-hunter2"))} {
		zap.New(core).Named("n").With(zap.Int("i", 1)).Info("m", zap.Duration("d", time.Second), zap.Namespace("space"),
			zap.Any("map", map[string]any{"a": []int{1}}), zap.Durations("ds", []time.Duration{1}), zap.Error(errors.New("e")),
			zap.Strings("s", nil), zap.Stringer("level", zap.InfoLevel), zap.Bool("b", true), zap.Inline(zap.DictObject(zap.Int("j", 2))))
	}
	if got.String() != want.String() {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The inner cores keep their own levels and their sampling.
func TestCoreAsksTheInnerCores(t *testing.T) {
	debug, all := written(zap.DebugLevel)
	warn, few := written(zap.WarnLevel)
	sampled, one := written(zap.DebugLevel)
	inner := zapcore.NewTee(debug, warn, zapcore.NewSamplerWithOptions(sampled, time.Hour, 1, 0))
	logger := zap.New(redact.Core(inner, redact.New("hunter2-hunter2")))
	for range 3 {
		logger.Info("hunter2-hunter2")
	}
	if a, f, o := strings.Count(all.String(), "\n"), strings.Count(few.String(), "\n"), strings.Count(one.String(), "\n"); a != 3 || f != 0 || o != 1 {
		t.Errorf("%d, %d and %d lines; want 3, 0 and 1", a, f, o)
	}
	if logger.Check(zap.DebugLevel-1, "") != nil {
		t.Error("an entry below every level was taken")
	}
}

// full is a file on a disk that has no room.
type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }

// An entry that cannot be written is reported, as it is without a core around.
func TestCoreReportsWhatIsNotWritten(t *testing.T) {
	var reported bytes.Buffer
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	inner := zapcore.NewTee(zapcore.NewCore(encoder, zapcore.AddSync(full{errors.New("no space left in /hunter2-hunter2")}), zap.InfoLevel),
		zapcore.NewCore(encoder, zapcore.AddSync(full{errors.New("no other space")}), zap.InfoLevel))
	logger := zap.New(redact.Core(inner, redact.New("hunter2-hunter2")), zap.ErrorOutput(zapcore.AddSync(&reported)))
	logger.Info("message")
	got := reported.String()
	if !strings.Contains(got, "write error: no space left in /") || !strings.Contains(got, "; no other space") || strings.Contains(got, "hunter2") {
		t.Errorf("reported is %q", got)
	}
	if strings.Count(got, "write error") != 1 {
		t.Errorf("%q says twice that there is an error", got)
	}
}
