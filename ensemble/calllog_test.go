// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// linesOf returns the lines of events that begin so.
func linesOf(logs *observer.ObservedLogs, events string) []observer.LoggedEntry {
	return logs.Filter(func(entry observer.LoggedEntry) bool {
		name, _ := entry.ContextMap()["event"].(string)
		return strings.HasPrefix(name, events)
	}).All()
}

// Each call is logged, with the ids of its trace and conversation and the beginning of
// its arguments, without secrets.
func TestCallsAreLogged(t *testing.T) {
	_, _, turn := tracing(t)
	core, logs := observer.New(zapcore.DebugLevel)
	fails := &invoker.Failure{Code: invoker.Denied, Message: "not with hunter2-hunter2"}
	e := ensemble.New("e", ensembletest.NewSource(ensembletest.Returns("fine", ""), ensembletest.Fails("fails", fails),
		ensembletest.Fails("breaks", &invoker.Failure{Code: invoker.Protocol})),
		&ensemble.Options{Logger: zap.New(core), Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2-hunter2", "[gone]") }})
	defer e.Close(context.Background())
	turn = invoker.WithTrusted(turn, invoker.NewTrusted[string]("token").Secret().Value("sesame-sesame"))
	long, _ := json.Marshal(map[string]string{"a": "hunter2-hunter2", "b": "sesame-sesame", "c": strings.Repeat("ö", 300)})
	for _, name := range []string{"fine", "fails", "breaks"} {
		_, _ = toolOf(t, e, name).Invoke(turn, &invoker.Call{ID: "c1", Arguments: long})
	}
	lines := linesOf(logs, "mcp.call.")
	want := []struct {
		event string
		level zapcore.Level
		code  any
	}{
		{"started", zapcore.DebugLevel, nil}, {"succeeded", zapcore.DebugLevel, nil},
		{"started", zapcore.DebugLevel, nil}, {"failed", zapcore.InfoLevel, "DENIED"},
		{"started", zapcore.DebugLevel, nil}, {"failed", zapcore.WarnLevel, "PROTOCOL"},
	}
	if len(lines) != len(want) {
		t.Fatalf("the lines are %v", lines)
	}
	for i, line := range lines {
		fields := line.ContextMap()
		if fields["event"] != "mcp.call."+want[i].event || line.Level != want[i].level || fields["code"] != want[i].code {
			t.Errorf("line %d is %v %v", i, line.Level, fields)
		}
		if fields["ensemble"] != "e" || fields["invocation"] != "c1" || fields["conversation_id"] != "K7" ||
			fields["trace_id"] != spanOf(turn).TraceID().String() || fields["tool"] == nil {
			t.Errorf("line %d lacks what brings lines together: %v", i, fields)
		}
		if _, ok := fields["took"]; ok == (want[i].event == "started") {
			t.Errorf("line %d: took is %v", i, fields["took"])
		}
		arguments, _ := fields["arguments"].(string)
		if want[i].event != "succeeded" && (!strings.HasPrefix(arguments, `{"a":"[gone]","b":"[secret]","c":"ö`) ||
			len(arguments) > 200 || len(arguments) < 190 || !utf8.ValidString(arguments)) {
			t.Errorf("line %d: the arguments are %q", i, arguments)
		}
	}
	if failed := lines[3].ContextMap(); failed["error"] != "DENIED: not with [gone]" || failed["retryable"] != false {
		t.Errorf("the failure is %v", failed)
	}
}

// A call without a connection is in the log too.
func TestCallsThatAreNotMadeAreLogged(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	source := ensembletest.NewSource(ensembletest.Returns("a", ""))
	e := ensemble.New("e", source, &ensemble.Options{Logger: zap.New(core)})
	tool := toolOf(t, e, "a")
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _ = tool.Invoke(t.Context(), nil)
	if lines := linesOf(logs, "mcp.call."); len(lines) != 1 || lines[0].ContextMap()["code"] != "UNAVAILABLE" || lines[0].Level != zapcore.WarnLevel {
		t.Errorf("the lines are %v", lines)
	}
}

// Nothing is computed for log lines that are not written.
func TestNothingIsMadeForLinesThatNobodyTakes(t *testing.T) {
	core, _ := observer.New(zapcore.WarnLevel)
	cleaned := 0
	e := ensemble.New("e", ensembletest.NewSource(ensembletest.Returns("fine", ""), ensembletest.Fails("fails", errors.New("no"))),
		&ensemble.Options{Logger: zap.New(core), Redact: func(text string) string { cleaned++; return text }})
	defer e.Close(context.Background())
	for _, name := range []string{"fine", "fails"} {
		_, _ = toolOf(t, e, name).Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{"a":"b"}`)})
	}
	if cleaned != 0 {
		t.Errorf("%d texts were made", cleaned)
	}
}

// Each listing is in the log, the first and the later ones.
func TestListingsAreLogged(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	source := ensembletest.NewSource(ensembletest.Returns("a", ""), ensembletest.Returns("b", ""))
	e := ensemble.New("e", source, &ensemble.Options{Logger: zap.New(core), Deny: []string{"b"}})
	defer e.Close(context.Background())
	if err := e.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	source.Fail(ensembletest.List, 1, errors.New("out of order"))
	if err := e.Refresh(t.Context()); err == nil {
		t.Fatal("it succeeded")
	}
	var got []string
	for _, line := range linesOf(logs, "mcp.tools.list.") {
		fields := line.ContextMap()
		text := line.Level.String() + " " + strings.TrimPrefix(fields["event"].(string), "mcp.tools.list.")
		if fields["tools"] == int64(1) && fields["aside"] == int64(1) {
			text += " 1+1"
		}
		if problem, _ := fields["error"].(string); strings.Contains(problem, "out of order") {
			text += " out of order"
		}
		if fields["ensemble"] != "e" {
			t.Errorf("a line of no ensemble: %v", fields)
		}
		got = append(got, text)
	}
	if want := "debug started, debug succeeded 1+1, debug started, warn failed out of order"; strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}
