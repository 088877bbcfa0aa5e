// SPDX-License-Identifier: Apache-2.0

package otelsetup

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/go-logr/logr"
	"go.uber.org/zap"
)

// quietly is the minimum time between two log lines about failed exports.
const quietly = time.Minute

// exportLog handles the errors of OpenTelemetry. An unavailable collector fails every few
// seconds: the first failure is logged, and then one a minute, with the number of
// failures in between. All methods may be called concurrently.
type exportLog struct {
	logger *zap.Logger
	redact func(string) string // nil if there is nothing to redact
	now    func() time.Time

	mu     sync.Mutex
	begun  bool // until then, only variables can be wrong, which are checked separately
	told   time.Time
	untold int
	last   string
}

func newExportLog(logger *zap.Logger, redact func(string) string) *exportLog {
	return &exportLog{logger: logger, redact: redact, now: time.Now}
}

// wrong logs an environment variable that the user must correct.
func (l *exportLog) wrong(problem string) {
	l.logger.Error("an environment variable is invalid", logevent.VariableWrong, zap.String("problem", l.clean(problem)))
}

// begin marks the end of startup, when only variables can be wrong.
func (l *exportLog) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
}

// Handle implements otel.ErrorHandler.
func (l *exportLog) Handle(err error) { l.failed(err.Error()) }

// Println implements promhttp.Logger.
func (l *exportLog) Println(v ...any) { l.failed(strings.TrimSuffix(fmt.Sprintln(v...), "\n")) }

func (l *exportLog) failed(text string) {
	text = display.Line(l.clean(text))
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		return
	}
	if now := l.now(); l.told.IsZero() || now.Sub(l.told) >= quietly {
		l.tell(text, now)
		return
	}
	l.untold++
	l.last = text
}

// tell writes a line; l.mu is held.
func (l *exportLog) tell(text string, now time.Time) {
	l.logger.Warn("traces or metrics were not exported", logevent.ExportFailed, zap.String("error", textcut.Bytes(text, 500)), zap.Int("before", l.untold))
	l.told, l.untold, l.last = now, 0, ""
}

// close logs the failures that were not logged yet.
func (l *exportLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.untold > 0 {
		l.untold--
		l.tell(l.last, l.now())
	}
}

func (l *exportLog) clean(text string) string {
	if l.redact == nil {
		return text
	}
	return l.redact(text)
}

// internal returns the logger for OpenTelemetry's own code, which prints values of
// variables with its messages; those values are dropped.
func (l *exportLog) internal() logr.Logger { return logr.New(internalLog{l}) }

type internalLog struct{ to *exportLog }

func (l internalLog) Init(logr.RuntimeInfo)          {}
func (l internalLog) Enabled(int) bool               { return false }
func (l internalLog) Info(int, string, ...any)       {}
func (l internalLog) WithValues(...any) logr.LogSink { return l }
func (l internalLog) WithName(string) logr.LogSink   { return l }
func (l internalLog) Error(err error, message string, _ ...any) {
	l.to.mu.Lock()
	begun := l.to.begun
	l.to.mu.Unlock()
	switch {
	case begun && err != nil:
		l.to.failed(message + ": " + err.Error())
	case begun:
		l.to.failed(message)
	case err != nil && strings.Contains(message, "tls"): // the certificate files have not been checked before
		l.to.wrong("OTEL_EXPORTER_OTLP_CERTIFICATE, or _CLIENT_CERTIFICATE and _CLIENT_KEY: " + err.Error())
	}
}
