// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// nth returns a function that panics when it is called for the n-th time.
func nth(n int64) func() {
	var calls atomic.Int64
	return func() {
		if calls.Add(1) == n {
			panic(fmt.Sprintf("call %d is one too many", n))
		}
	}
}

// nilError is what a function returns that declares a variable of its own type.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// badModel does one thing wrong, once, and is a script otherwise.
type badModel struct {
	*conversetest.Script
	exchange func() iter.Seq2[converse.ModelEvent, error]
	screen   func() error
	describe func()
}

func (m *badModel) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	if bad := m.exchange; bad != nil {
		m.exchange = nil
		return bad()
	}
	return m.Script.Exchange(ctx, request)
}

func (m *badModel) Screen(*invoker.Definition) error {
	if m.screen != nil {
		return m.screen()
	}
	return nil
}

func (m *badModel) Describe() telemetry.ModelInfo {
	if m.describe != nil {
		m.describe()
	}
	return telemetry.ModelInfo{}
}

// twoCalls is a turn with two calls and an answer, said twice.
func twoCalls() *conversetest.Script {
	lines := []conversetest.Line{
		{Calls: []conversetest.Call{call("echo", "{}"), call("echo", `{"n":1}`)}}, {Text: "Well."},
		{Calls: []conversetest.Call{call("echo", "{}")}}, {Text: "Well."},
		{Text: "Well."}, {Text: "Well."}, {Text: "Well."},
	}
	return conversetest.NewScript(lines...)
}

// sendTwice sends until two turns have succeeded, and returns the error of the one
// that may fail.
func sendTwice(t *testing.T, talk *converse.Conversation) (failed error) {
	t.Helper()
	for good := 0; good < 2; {
		_, err := talk.Ask(t.Context(), canister.Text("Go."))
		switch {
		case err == nil:
			good++
		case failed != nil:
			t.Fatalf("after %v, another turn failed: %v", failed, err)
		default:
			failed = err
		}
	}
	sound(t, talk.History())
	return failed
}

func TestFunctionsThatPanicOnce(t *testing.T) {
	for n := int64(1); n < 40; n++ {
		id, now, redact := nth(n), nth(n), nth(n)
		ids := counterSafe()
		for name, options := range map[string]*converse.Options{
			"NewID":  {NewID: func() string { id(); return ids() }},
			"Now":    {Now: func() time.Time { now(); return time.Now() }},
			"Redact": {Redact: func(text string) string { redact(); return text }},
		} {
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				options.Log, options.ID = history.NewMemory(), "panics"
				talk := converse.New(twoCalls(), newRoster(t, echo("echo")), options)
				if err := sendTwice(t, talk); err != nil && !strings.Contains(err.Error(), "Options."+name+" panicked") &&
					!strings.Contains(err.Error(), "withheld") {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

func TestRedactThatPanicsLetsNothingThrough(t *testing.T) {
	const secret = "hunter2-hunter2"
	tool := fn("echo", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		call.Report(invoker.Progress{Message: secret, Partial: canister.Texts(secret)})
		if string(call.Arguments) != "{}" {
			return invoker.Output{}, errors.New(secret)
		}
		return invoker.Output{Content: canister.Texts(secret)}, nil
	})
	lines := []conversetest.Line{{Calls: []conversetest.Call{call("echo", "{}"), call("echo", `{"n":1}`)}}, {Err: &converse.ModelError{Message: secret}}}
	talk := converse.New(conversetest.NewScript(lines...), newRoster(t, tool), &converse.Options{
		Redact: func(text string) string { panic("cannot clean " + text) },
	})
	var seen []string
	for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
		seen = append(seen, fmt.Sprintf("%+v %v", event, err))
	}
	for _, c := range talk.History() {
		line, err := canister.Marshal(c)
		seen = append(seen, string(line), fmt.Sprint(err))
	}
	if all := strings.Join(seen, "\n"); strings.Contains(all, secret) || !strings.Contains(all, "withheld") {
		t.Errorf("this was let through:\n%s", all)
	}
}

func TestErrorsWithoutAText(t *testing.T) {
	tool := fn("echo", func(context.Context, *invoker.Call) (invoker.Output, error) {
		var err *nilError
		return invoker.Output{}, err
	})
	var records atomic.Int64
	sink := sinkFunc(func(context.Context, *audit.Record) error { records.Add(1); return (*nilError)(nil) })
	talk := converse.New(twoCalls(), newRoster(t, tool), &converse.Options{
		Audit:  audit.New(sink, nil),
		Redact: func(text string) string { return text },
	})
	if turn := last(t, play(t, talk, "Go.")); turn.Reason != converse.ReasonAnswered {
		t.Errorf("turn = %+v", turn)
	}
	for _, result := range results(talk.History()) {
		if result.Code != string(invoker.ExecutionFailed) {
			t.Errorf("result = %+v", result)
		}
	}
	if n := records.Load(); n != 2 {
		t.Errorf("the audit has %d records", n)
	}
}

type sinkFunc func(context.Context, *audit.Record) error

func (f sinkFunc) Record(ctx context.Context, record *audit.Record) error { return f(ctx, record) }

func TestPanicsOfModelsAreErrors(t *testing.T) {
	events := func(yield func(converse.ModelEvent, error) bool) {
		if yield(converse.Delta{Text: "We"}, nil) {
			panic("out of words")
		}
	}
	for name, test := range map[string]struct {
		model *badModel
		want  string
	}{
		"before": {&badModel{exchange: func() iter.Seq2[converse.ModelEvent, error] { panic("no words") }}, "Model.Exchange panicked: no words"},
		"within": {&badModel{exchange: func() iter.Seq2[converse.ModelEvent, error] { return events }}, "Model.Exchange panicked: out of words"},
		"nil":    {&badModel{exchange: func() iter.Seq2[converse.ModelEvent, error] { return nil }}, "no sequence"},
		"exit":   {&badModel{exchange: func() iter.Seq2[converse.ModelEvent, error] { runtime.Goexit(); return nil }}, "ended its goroutine"},
		"error": {&badModel{exchange: func() iter.Seq2[converse.ModelEvent, error] {
			return func(yield func(converse.ModelEvent, error) bool) { yield(nil, (*nilError)(nil)) }
		}}, "without a text"},
	} {
		t.Run(name, func(t *testing.T) {
			test.model.Script = twoCalls()
			talk := converse.New(test.model, newRoster(t, echo("echo")), nil)
			if err := sendTwice(t, talk); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

func TestModelsThatPanicBesideTheExchange(t *testing.T) {
	describes := &badModel{Script: twoCalls(), describe: func() { panic("who am I") }}
	if _, err := converse.New(describes, nil, nil).Ask(t.Context(), canister.Text("Go.")); err == nil ||
		!strings.Contains(err.Error(), "Model.Describe panicked: who am I") {
		t.Errorf("the error is %v", err)
	}
	for _, screen := range []func() error{func() error { panic("no") }, func() error { return (*nilError)(nil) }} {
		talk := converse.New(&badModel{Script: twoCalls(), screen: screen}, newRoster(t, echo("echo")), nil)
		started := play(t, talk, "Go.")[0].(converse.TurnStarted)
		if len(started.Aside) != 1 {
			t.Errorf("set aside are %v", started.Aside)
		}
	}
}

func TestPanicsOfWhatKeepsConversations(t *testing.T) {
	for n := int64(1); n < 12; n++ {
		log, ledger := nth(n), nth(n)
		for name, options := range map[string]*converse.Options{
			"Log": {ID: "panics", Log: &badLog{Memory: history.NewMemory(), before: log}},
			"Budget": {Budget: &budget.Policy{
				Ledger: &badLedger{budget.NewMemory(), ledger}, Caps: []budget.Cap{{Scope: budget.Conversation, Tokens: 1 << 40}},
			}},
		} {
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				talk := converse.New(twoCalls(), newRoster(t, echo("echo")), options)
				if err := sendTwice(t, talk); err != nil && !strings.Contains(err.Error(), "Options."+name+" panicked: call") {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

// badLog panics before an append.
type badLog struct {
	*history.Memory
	before func()
}

func (l *badLog) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	l.before()
	return l.Memory.Append(ctx, conversation, length, canisters...)
}

// badLedger panics before a reservation.
type badLedger struct {
	*budget.Memory
	before func()
}

func (l *badLedger) Reserve(ctx context.Context, r budget.Reservation) ([]int64, error) {
	l.before()
	return l.Memory.Reserve(ctx, r)
}

func TestLoggersThatPanic(t *testing.T) {
	logger := zap.New(panicCore{zapcore.NewNopCore()})
	tool := fn("echo", func(context.Context, *invoker.Call) (invoker.Output, error) { panic("as planned") })
	talk := converse.New(twoCalls(), newRoster(t, tool), &converse.Options{Logger: logger})
	if err := sendTwice(t, talk); err != nil {
		t.Error(err)
	}
}

type panicCore struct{ zapcore.Core }

func (panicCore) Enabled(zapcore.Level) bool { panic("no log") }

// The panic of the caller's own loop passes unchanged, and the conversation can go on.
func TestPanicOfTheCallersLoop(t *testing.T) {
	for _, at := range []string{"TurnStarted", "TextDelta", "InvocationStarted", "InvocationCompleted", "TurnCompleted"} {
		t.Run(at, func(t *testing.T) {
			talk := converse.New(twoCalls(), newRoster(t, echo("echo")), nil)
			mine := errors.New("my own")
			func() {
				defer func() {
					if value := recover(); value != mine {
						t.Errorf("the loop panicked with %v", value)
					}
				}()
				for event := range talk.Send(t.Context(), canister.Text("Go.")) {
					if strings.HasSuffix(fmt.Sprintf("%T", event), "."+at) {
						panic(mine)
					}
				}
			}()
			if _, err := talk.Ask(t.Context(), canister.Text("Go on.")); err != nil {
				t.Error(err)
			}
			sound(t, talk.History())
		})
	}
}

// badLimiter is a model whose limit cannot be asked for.
type badLimiter struct{ *conversetest.Script }

func (badLimiter) MaxTools() int                        { panic("no limit") }
func (badLimiter) Shortened(*invoker.Definition) string { return "" }

// A model that panics when it is asked how many tools it takes has the tools set aside,
// with the reason, and the turn goes on without them.
func TestMaxToolsThatPanics(t *testing.T) {
	script := conversetest.NewScript(conversetest.Line{Text: "Done.", Expect: offers()})
	roster := newRoster(t, echo("echo"))
	talk := converse.New(badLimiter{script}, roster, nil)
	if turn, err := talk.Ask(t.Context(), canister.Text("Go.")); err != nil || turn.Text() != "Done." {
		t.Errorf("the turn is %+v, %v", turn, err)
	}
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tools, aside := converse.Offer(catalog, badLimiter{script}, 0)
	if len(tools) != 0 || len(aside) != 1 || !strings.Contains(aside[0].Reason, "Model.MaxTools panicked: no limit") {
		t.Errorf("%d tools are offered, set aside are %+v", len(tools), aside)
	}
}
