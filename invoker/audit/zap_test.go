// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The fields of a log are the members of the JSON form.
func TestZap(t *testing.T) {
	var out bytes.Buffer
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{
		TimeKey: "time", EncodeTime: zapcore.RFC3339NanoTimeEncoder, LevelKey: "level", EncodeLevel: zapcore.LowercaseLevelEncoder, MessageKey: "message",
	})
	sink := audit.Zap(zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&out), zapcore.InfoLevel)))
	for _, record := range documented() {
		out.Reset()
		if err := sink.Record(t.Context(), &record); err != nil {
			t.Fatal(err)
		}
		var got, want map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(line(t, record)), &want); err != nil {
			t.Fatal(err)
		}
		level := map[bool]string{true: "warn", false: "info"}[record.Forged != nil]
		if got["message"] != "invocation" || got["level"] != level || got["event"] != "audit.kept" {
			t.Errorf("the entry is %s", out.Bytes())
		}
		delete(got, "message")
		delete(got, "level")
		delete(got, "event")
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("\n got %s\nwant %s", a, b)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// A record that the log does not have is an error.
func TestZapLosesNothingInSilence(t *testing.T) {
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	record := audit.Record{Tool: "t", Code: "OK"}
	core := func(to zapcore.WriteSyncer, level zapcore.Level) zapcore.Core {
		return zapcore.NewCore(encoder, to, level)
	}
	var out bytes.Buffer
	for name, logger := range map[string]*zap.Logger{
		"no space left": zap.New(core(zapcore.AddSync(broken{}), zapcore.InfoLevel)),
		"level":         zap.New(core(zapcore.AddSync(&out), zapcore.ErrorLevel)),
	} {
		if err := audit.Zap(logger).Record(t.Context(), &record); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	sampled := audit.Zap(zap.New(zapcore.NewSamplerWithOptions(core(zapcore.AddSync(&out), zapcore.InfoLevel), time.Hour, 1, 0)))
	first, second := sampled.Record(t.Context(), &record), sampled.Record(t.Context(), &record)
	if first != nil || second == nil {
		t.Errorf("the errors are %v and %v", first, second)
	}
}

func TestZapWithoutALogger(t *testing.T) {
	if err := audit.Zap(nil).Record(t.Context(), &audit.Record{}); err == nil || err.Error() != "audit: the logger is nil" {
		t.Errorf("the error is %v", err)
	}
}
