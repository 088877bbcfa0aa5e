// SPDX-License-Identifier: Apache-2.0

// Package logsetup makes the logger of the command: its format, and how it thins out a
// flood of lines.
package logsetup

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Options choose what a log looks like.
type Options struct {
	Level zapcore.LevelEnabler // decides which lines are logged; it may change
	JSON  bool                 // lines are JSON objects; otherwise they are for people
	// Colours paints the levels of lines for people.
	Colours bool
	// Person is set if a person sees failed calls and lost servers elsewhere: their log
	// lines are left out. Person is called when a server cannot be connected, instead of
	// each log line, with the name of the server and the error: once until the error
	// changes. It must be safe for concurrent use.
	Person func(server, text string)
}

// New returns a logger that writes to a screen. The function end reports dropped
// lines that were not reported yet.
func New(to zapcore.WriteSyncer, options Options) (logger *zap.Logger, end func()) {
	encoder := consoleLines(options.Colours)
	if options.JSON {
		encoder = zapcore.NewJSONEncoder(jsonFormat)
	}
	core := zapcore.NewCore(encoder, to, options.Level)
	if options.Person != nil {
		core = untold{Core: core, told: &told{tell: options.Person, last: map[string]string{}}}
	}
	sampled := newSampled(core, time.Now)
	return zap.New(sampled), sampled.tellRest
}

// consoleLines encodes lines for people, with coloured levels if colours is set.
func consoleLines(colours bool) zapcore.Encoder {
	format := zap.NewDevelopmentEncoderConfig()
	format.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	if colours {
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

// NoteJSON encodes a line for people as a line of the JSON log.
func NoteJSON(text string) string {
	line, err := zapcore.NewJSONEncoder(jsonFormat).EncodeEntry(
		zapcore.Entry{Level: zapcore.InfoLevel, Time: time.Now(), Message: strings.Trim(text, "\n")}, []zapcore.Field{logevent.CommandSaid})
	if err != nil { // strings have a JSON form
		panic(err)
	}
	defer line.Free()
	return strings.TrimSuffix(line.String(), "\n")
}

// untold drops the log lines that a person sees elsewhere, and tells the person which
// servers cannot be connected.
type untold struct {
	zapcore.Core
	with []zapcore.Field
	told *told
}

// told remembers the last text for each server.
type told struct {
	tell func(server, text string)
	mu   sync.Mutex
	last map[string]string // by server
}

func (u untold) With(fields []zapcore.Field) zapcore.Core {
	return untold{u.Core.With(fields), slices.Concat(u.with, fields), u.told}
}

func (u untold) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if u.Enabled(entry.Level) {
		return checked.AddCore(entry, u)
	}
	return checked
}

func (u untold) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range fields {
		switch {
		case f.Equals(logevent.CallFailed) || f.Equals(logevent.Lost):
			return nil
		case f.Equals(logevent.ConnectFailed):
			u.told.failed(slices.Concat(u.with, fields))
			return nil
		}
	}
	return u.Core.Write(entry, fields)
}

// failed tells the person of a server that cannot be connected.
func (t *told) failed(fields []zapcore.Field) {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(values)
	}
	server, text := fmt.Sprint(values.Fields["ensemble"]), fmt.Sprint(values.Fields["error"])
	text = strings.TrimPrefix(text, fmt.Sprintf("ensemble %q: ", server))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last[server] == text {
		return
	}
	t.last[server] = text
	t.tell(server, text)
}
