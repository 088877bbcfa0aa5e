// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/redact"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// fixed is a clock for zap that stands still until it is moved.
type fixed struct{ at time.Time }

func (c *fixed) Now() time.Time                         { return c.at }
func (c *fixed) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// A flood is thinned, whatever its level, and what was left out is told of; what
// is no flood is not touched.
func TestTheLogLeavesOutOfFloods(t *testing.T) {
	clock := &fixed{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	core, seen := observer.New(zapcore.WarnLevel)
	sampled := newSampled(core, clock.Now)
	logger := zap.New(sampled, zap.WithClock(clock)).With(zap.String("of", "all"))
	count := func(message string) int { return seen.FilterMessage(message).Len() }
	left := func() (lines []int64) {
		for _, entry := range seen.FilterField(event.LogSampled).All() {
			lines = append(lines, entry.ContextMap()["lines"].(int64))
		}
		return lines
	}
	for range 1000 {
		logger.Info("too low")
		logger.Error("flood")
	}
	logger.Warn("alone")
	if n := count("flood"); n != sampleFirst+9 || count("alone") != 1 || count("too low") != 0 {
		t.Errorf("%d of the flood are there, %d alone", n, count("alone"))
	}
	if got := left(); len(got) != 1 || got[0] != 99 { // with the first that passes, then not for a while
		t.Errorf("left out, it says: %d", got)
	}
	clock.at = clock.at.Add(sampleTold)
	logger.Warn("later")
	if got := left(); len(got) != 2 || got[1] != 891-99 {
		t.Errorf("left out, it says later: %d", got)
	}
	for range sampleFirst + 1 {
		logger.Warn("again")
	}
	sampled.tellRest()
	sampled.tellRest()
	if got := left(); len(got) != 3 || got[2] != 1 {
		t.Errorf("left out, it says in the end: %d", got)
	}
}

// What keeps failing to be exported is told of once a minute.
func TestTheExportLogIsQuiet(t *testing.T) {
	clock := &fixed{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	core, seen := observer.New(zapcore.DebugLevel)
	log := newExportLog(zap.New(core), redact.New("hunter2-hunter2"))
	log.now = clock.Now
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
	clock.at = clock.at.Add(quietly)
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

// With JSON each line of standard error is an object, whoever writes it.
func TestLogsInJSON(t *testing.T) {
	table, _ := library(t, "")
	fileSays := file(t, table, broken, "[log]\nformat = \"json\"\nlevel = \"debug\"\n")
	flagSays := []string{"--log-format", "json"}
	for name, args := range map[string][]string{
		"file":        {"call", "library", "leak", "--config", fileSays},
		"flag":        append(flagSays, "run", "hi", "--config", file(t, model(t, says("", calls("library__leak", `{}`)), says("x")), table)),
		"file, trace": {"call", "library", "echo", "--trace", "--config", fileSays},
		"wrong":       append(flagSays, "call", "library", "leak", "--config", file(t, "[modle]\n")),
		"nothing":     append(flagSays, "frobnicate"),
		"too much":    append(flagSays, "tools", "frobnicate"),
		"no flag":     append(flagSays, "tools", "--frobnicate"),
	} {
		o := consort(t, args...)
		events := 0
		for line := range strings.Lines(o.stderr) {
			var entry struct {
				TS    time.Time
				Level string
				Msg   string
				Event string
			}
			if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.TS.IsZero() || entry.Level == "" || entry.Msg == "" || entry.Event == "" {
				t.Errorf("%s: %v: %q", name, err, line)
			}
			events++
		}
		if events == 0 {
			t.Errorf("%s: nothing was said", name)
		}
		lacks(t, name, o.stderr, password)
	}
	o := consort(t, "--log-format", "xml", "version").expect(t, exit.Usage)
	contains(t, "standard error", o.stderr, "--log-format xml", "console or json")
	plain := consort(t, "call", "library", "leak", "--log-format", "console", "--config", fileSays)
	lacks(t, "standard error", plain.stderr, `{"level"`)
}

func TestConfigOfACommandThatReadsNone(t *testing.T) {
	for _, command := range []string{"demo", "version"} {
		o := consort(t, command, "--config", "other.toml").expect(t, exit.Usage)
		contains(t, "standard error", o.stderr, "--config", "consort "+command, "leave the flag out")
	}
}
