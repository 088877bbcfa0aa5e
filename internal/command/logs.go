// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/exit"
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

// logger returns the logger to standard error, configured by the flags or else by the
// configuration. The function end reports dropped lines that were not reported yet.
func (p *program) logger(configured config.Log) (logger *zap.Logger, end func(), err error) {
	name := cmp.Or(p.logLevel, string(configured.Level), p.quiet, string(config.LevelWarn))
	switch config.Level(name) {
	case config.LevelDebug, config.LevelInfo, config.LevelWarn, config.LevelError:
	default:
		return nil, nil, exit.Usagef("--log-level %s: expected debug, info, warn or error", name)
	}
	level, err := zapcore.ParseLevel(name)
	if err != nil {
		return nil, nil, exit.Usagef("--log-level: %w", err)
	}
	encoder := p.consoleLines()
	if p.inJSON(configured.Format) {
		encoder = zapcore.NewJSONEncoder(jsonFormat)
	}
	core := zapcore.NewCore(encoder, p.screen.LogWriter(), level)
	if p.views && p.screen.Live && p.logLevel == "" && configured.Level == "" {
		core = untold{core}
	}
	sampled := newSampled(core, time.Now)
	return zap.New(sampled), sampled.tellRest, nil
}

// inJSON switches the log, and with it all of standard error, to lines of JSON if the
// flag or else the configuration says so. It reports whether JSON is on.
func (p *program) inJSON(configured config.Format) bool {
	if config.Format(cmp.Or(p.logFormat, string(configured))) != config.FormatJSON {
		return false
	}
	p.screen.EncodeNotes(jsonNote)
	return true
}

func (p *program) consoleLines() zapcore.Encoder {
	format := zap.NewDevelopmentEncoderConfig()
	format.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	if p.screen.Notes.On {
		format.EncodeLevel = zapcore.CapitalColorLevelEncoder
	}
	return zapcore.NewConsoleEncoder(format)
}

// jsonFormat encodes lines as objects with ts (RFC 3339), level and msg, and the fields.
var jsonFormat = zapcore.EncoderConfig{
	TimeKey: "ts", EncodeTime: zapcore.RFC3339NanoTimeEncoder,
	LevelKey: "level", EncodeLevel: zapcore.LowercaseLevelEncoder,
	MessageKey: "msg", NameKey: "logger",
	EncodeDuration: zapcore.StringDurationEncoder,
}

// jsonNote encodes a line for people as a line of the JSON log.
func jsonNote(text string) string {
	line, err := zapcore.NewJSONEncoder(jsonFormat).EncodeEntry(
		zapcore.Entry{Level: zapcore.InfoLevel, Time: time.Now(), Message: strings.Trim(text, "\n")}, []zapcore.Field{event.CommandSaid})
	if err != nil { // strings have a JSON form
		panic(err)
	}
	defer line.Free()
	return strings.TrimSuffix(line.String(), "\n")
}

// untold drops the log lines about failed calls and lost servers: a person sees them in
// the lines of the calls.
type untold struct{ zapcore.Core }

func (u untold) With(fields []zapcore.Field) zapcore.Core { return untold{u.Core.With(fields)} }

func (u untold) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if u.Enabled(entry.Level) {
		return checked.AddCore(entry, u)
	}
	return checked
}

func (u untold) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if slices.ContainsFunc(fields, func(f zapcore.Field) bool { return f.Equals(event.CallFailed) || f.Equals(event.Lost) }) {
		return nil
	}
	return u.Core.Write(entry, fields)
}

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

// tellRest logs the number of dropped lines that were not reported yet.
func (s *sampled) tellRest() {
	if lines := s.out.lines.Swap(0); lines > 0 {
		s.out.told.Store(s.out.now().UnixNano())
		_ = s.plain.Write(zapcore.Entry{Level: zapcore.WarnLevel, Time: s.out.now(), Message: "lines were left out of this log: there were too many that are alike"},
			[]zapcore.Field{event.LogSampled, zap.Int64("lines", lines)})
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
