// SPDX-License-Identifier: Apache-2.0

package logsetup

import (
	"testing"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/audit"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// fixed is a clock for zap that stands still until it is moved.
type fixed struct{ at time.Time }

func (c *fixed) Now() time.Time                         { return c.at }
func (c *fixed) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// A flood is thinned at every level, and the number of omitted lines is reported; other
// lines are not affected.
func TestTheLogLeavesOutOfFloods(t *testing.T) {
	clock := &fixed{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	core, seen := observer.New(zapcore.WarnLevel)
	sampled := newSampled(core, clock.Now)
	logger := zap.New(sampled, zap.WithClock(clock)).With(zap.String("of", "all"))
	count := func(message string) int { return seen.FilterMessage(message).Len() }
	left := func() (lines []int64) {
		for _, entry := range seen.FilterField(logevent.LogSampled).All() {
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

// The access log and the audit trail are complete, also in a flood, and through a logger with fields.
func TestTheLogKeepsRequests(t *testing.T) {
	clock := &fixed{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	core, seen := observer.New(zapcore.InfoLevel)
	sampled := newSampled(core, clock.Now)
	logger := zap.New(sampled, zap.WithClock(clock)).With(zap.String("of", "all"))
	for range 1000 {
		logger.Info(logevent.RequestEndedMessage)
		logger.Debug(logevent.RequestEndedMessage)
	}
	if n := seen.FilterField(zap.String("of", "all")).Len(); n != 1000 {
		t.Errorf("%d lines of 1000", n)
	}
	sink := audit.Zap(logger)
	for range 1000 {
		if err := sink.Record(t.Context(), &audit.Record{Tool: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := seen.FilterMessage(logevent.InvocationMessage).Len(); n != 1000 {
		t.Errorf("%d records of 1000", n)
	}
}
