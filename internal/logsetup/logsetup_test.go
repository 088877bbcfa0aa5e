// SPDX-License-Identifier: Apache-2.0

package logsetup

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A person is told of each failure to connect once, until the error is another one.
func TestPerson(t *testing.T) {
	var told []string
	var lines bytes.Buffer
	logger, end := New(zapcore.AddSync(&lines), Options{Level: zapcore.WarnLevel, Person: func(server, text string) { told = append(told, server+": "+text) }})
	a, b := logger.With(zap.String("ensemble", "a")), logger.With(zap.String("ensemble", "b"))
	failed := func(log *zap.Logger, text string) {
		log.Warn("cannot connect", logevent.ConnectFailed, zap.Error(errors.New(text)))
	}
	for range 2 {
		failed(a, `ensemble "a": cannot connect: no`)
		failed(b, `ensemble "b": cannot connect: no`)
	}
	failed(a, `ensemble "a": cannot connect: busy`)
	a.Warn("lost", logevent.Lost)
	a.Warn("a call failed", logevent.CallFailed)
	end()
	if want := []string{"a: cannot connect: no", "b: cannot connect: no", "a: cannot connect: busy"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if lines.Len() > 0 {
		t.Errorf("logged %s", &lines)
	}
	a.Warn("the pins", logevent.PinsFailed)
	if lines.Len() == 0 {
		t.Error("another line is not logged")
	}
}
