// SPDX-License-Identifier: Apache-2.0

package logsetup

import (
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Sampling of lines with the same level and message: in each second, the log keeps the
// first sampleFirst and then one of every sampleThen. It reports the number of dropped
// lines at most every sampleTold.
const (
	sampleFirst = 100
	sampleThen  = 100
	sampleTold  = 10 * time.Second
)

// sampled is a log that drops lines from a flood and reports the number.
type sampled struct {
	zapcore.Core              // samples
	plain        zapcore.Core // takes all lines
	out          *leftOut
}

// leftOut counts dropped lines, for all cores derived from one.
type leftOut struct {
	lines atomic.Int64
	told  atomic.Int64 // time of the last report, in ns since 1970
	now   func() time.Time
}

func newSampled(plain zapcore.Core, now func() time.Time) *sampled {
	s := &sampled{plain: plain, out: &leftOut{now: now}}
	s.Core = zapcore.NewSamplerWithOptions(telling{plain, s}, time.Second, sampleFirst, sampleThen,
		zapcore.SamplerHook(func(_ zapcore.Entry, decision zapcore.SamplingDecision) {
			if decision&zapcore.LogDropped != 0 {
				s.out.lines.Add(1)
			}
		}))
	return s
}

// Check implements [zapcore.Core]. The access log and the audit trail are not sampled.
func (s *sampled) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Message == logevent.RequestEndedMessage || entry.Message == logevent.InvocationMessage {
		return s.plain.Check(entry, to)
	}
	return s.Core.Check(entry, to)
}

// With implements [zapcore.Core].
func (s *sampled) With(fields []zapcore.Field) zapcore.Core {
	return &sampled{Core: s.Core.With(fields), plain: s.plain.With(fields), out: s.out}
}

// tellRest logs the number of dropped lines that were not reported yet.
func (s *sampled) tellRest() {
	if lines := s.out.lines.Swap(0); lines > 0 {
		s.out.told.Store(s.out.now().UnixNano())
		_ = s.plain.Write(zapcore.Entry{Level: zapcore.WarnLevel, Time: s.out.now(), Message: "lines were left out of this log: there were too many that are alike"},
			[]zapcore.Field{logevent.LogSampled, zap.Int64("lines", lines)})
	}
}

// telling writes lines, and from time to time first the number of dropped ones.
type telling struct {
	zapcore.Core
	of *sampled
}

func (t telling) With(fields []zapcore.Field) zapcore.Core { return telling{t.Core.With(fields), t.of} }

func (t telling) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if t.Enabled(entry.Level) {
		return to.AddCore(entry, t)
	}
	return to
}

func (t telling) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if o := t.of.out; o.lines.Load() > 0 && o.now().UnixNano()-o.told.Load() >= sampleTold.Nanoseconds() {
		t.of.tellRest()
	}
	return t.Core.Write(entry, fields)
}
