// SPDX-License-Identifier: Apache-2.0

package otelsetup

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// What keeps failing to be exported is told of once a minute.
func TestTheExportLogIsQuiet(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	core, seen := observer.New(zapcore.DebugLevel)
	log := newExportLog(zap.New(core), redact.New("hunter2-hunter2"))
	log.now = func() time.Time { return now }
	fail := func(text string) { log.Handle(errors.New(text)) }
	said := func() (lines []string) {
		for _, entry := range seen.TakeAll() {
			form, _ := json.Marshal(entry.ContextMap())
			lines = append(lines, string(form))
		}
		return lines
	}
	expect := func(want ...string) {
		t.Helper()
		if got := said(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	fail("before it begins")
	log.internal().Error(errors.New("missing ="), "parse headers", "input", "hunter2-hunter2")
	expect()
	log.begin()
	fail("the first\nwith hunter2-hunter2")
	expect(`{"before":0,"error":"the first with [secret]","event":"telemetry.export.failed"}`)
	log.Println("scrape", 2)
	log.internal().Error(errors.New("third"), "internal", "value", "hunter2-hunter2")
	expect()
	now = now.Add(quietly)
	fail("the fourth")
	expect(`{"before":2,"error":"the fourth","event":"telemetry.export.failed"}`)
	log.close()
	expect()
	fail("the fifth")
	fail(strings.Repeat("the sixth ", 1000))
	log.close()
	if got := said(); len(got) != 1 || !strings.Contains(got[0], `"before":1`) || len(got[0]) > 700 {
		t.Errorf("in the end: %q", got)
	}
}
