// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

func TestInvokeCarriesCallAndSettings(t *testing.T) {
	type settings struct{ unit string }
	probe := ensembletest.NewTool("probe", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		got, ok := ensemble.Settings[settings](ctx)
		if !ok || got.unit != "°C" {
			t.Errorf("the settings are %v, %v", got, ok)
		}
		if _, ok := ensemble.Settings[int](ctx); ok {
			t.Error("settings of another type were found")
		}
		if from := invoker.CallFrom(ctx); from == nil || from.ID != "call-1" || call.ID != "call-1" || string(call.Arguments) != `{"x":1}` {
			t.Errorf("the call is %+v, from the context %+v", call, from)
		}
		return invoker.Output{}, nil
	})
	e := ensemble.New("e", ensembletest.NewSource(probe), &ensemble.Options{Settings: settings{"°C"}})
	defer e.Close(t.Context())
	if _, err := toolOf(t, e, "probe").Invoke(t.Context(), &invoker.Call{ID: "call-1", Arguments: []byte(`{"x":1}`)}); err != nil {
		t.Error(err)
	}
	if probe.Calls() != 1 {
		t.Errorf("called %d times", probe.Calls())
	}
	if _, ok := ensemble.Settings[settings](t.Context()); ok {
		t.Error("there are settings outside of a call")
	}
}

func TestInvokeFailures(t *testing.T) {
	own := &invoker.Failure{Code: invoker.NotFound, Message: "no such city", Content: canister.Texts("no such city")}
	tests := []struct {
		name string
		run  func(context.Context, *invoker.Call) (invoker.Output, error)
		code invoker.Code
	}{
		{"its own", func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, own }, invoker.NotFound},
		{"an error", func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, errDied }, invoker.ExecutionFailed},
		{"a panic", func(context.Context, *invoker.Call) (invoker.Output, error) { panic("secret") }, invoker.ExecutionFailed},
		{"a nil panic", func(context.Context, *invoker.Call) (invoker.Output, error) { panic(error(nil)) }, invoker.ExecutionFailed},
		{"an end of its goroutine", func(context.Context, *invoker.Call) (invoker.Output, error) { runtime.Goexit(); panic("no") }, invoker.ExecutionFailed},
		{"a time-out of its own", func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{}, context.DeadlineExceeded
		}, invoker.Timeout},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			e := ensemble.Local("e", ensembletest.NewTool("tool", test.run))
			_, failure := invoke(t.Context(), toolOf(t, e, "tool"))
			wantFailure(t, failure, test.code, false)
			if strings.Contains(failure.Message, "secret") {
				t.Errorf("the model would be told %q", failure.Message)
			}
			if err := e.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	if own.Message != "no such city" {
		t.Error("the tool's failure was changed")
	}
}

func TestCallTimeout(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		for _, repeatable := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				gate := ensembletest.NewGate("gate", stubborn)
				gate.Def.Hints.ReadOnly = repeatable
				e := ensemble.New("e", ensembletest.NewSource(gate), &ensemble.Options{CallTimeout: 7 * time.Second})
				start := time.Now()
				_, failure := invoke(t.Context(), toolOf(t, e, "gate"))
				wantFailure(t, failure, invoker.Timeout, repeatable)
				want := "The call reached its idle time-out: no answer and no progress within 7s. "
				if repeatable {
					want += "The tool declares that a second call is harmless."
				} else {
					want += "It may or may not have taken effect: find out before you call it again."
				}
				if failure.Message != want {
					t.Errorf("the message is %q, want %q", failure.Message, want)
				}
				if took := time.Since(start); took > 7500*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if stubborn {
					gate.Release("too late")
				}
				if err := e.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestCallerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := ensembletest.NewGate("gate", true)
		e := ensemble.Local("e", gate)
		tool := toolOf(t, e, "gate")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, failure := invoke(ctx, tool)
		wantFailure(t, failure, invoker.Canceled, false)
		if took := time.Since(start); took > 1200*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, failure = invoke(ctx, tool)
		wantFailure(t, failure, invoker.Timeout, false)

		_, failure = invoke(ctx, tool)
		wantFailure(t, failure, invoker.Timeout, true)
		if gate.Calls() != 2 || !strings.Contains(failure.Message, "nothing was done") {
			t.Errorf("a call with an ended context was made: %v", failure)
		}

		// Close names what still runs, and finds it gone later.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Close(ctx); err == nil || strings.Count(err.Error(), "gate was cancelled and is still running") != 2 {
			t.Errorf("Close: %v", err)
		}
		gate.Release("late")
		gate.Release("late")
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestAnswerBeatsEnd: a function that answers although its context has ended has done its
// work.
func TestAnswerBeatsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := ensemble.Local("e", ensembletest.NewTool("tool", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			<-ctx.Done()
			return invoker.Output{Content: canister.Texts("done all the same")}, nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if text, failure := invoke(ctx, toolOf(t, e, "tool")); text != "done all the same" {
			t.Errorf("%q, %v", text, failure)
		}
		e.Close(t.Context())
	})
}

func TestEndsDuringCall(t *testing.T) {
	tests := []struct {
		name string
		end  func(*ensembletest.Source, *ensemble.Ensemble) error
		code invoker.Code
	}{
		{"loss", func(s *ensembletest.Source, _ *ensemble.Ensemble) error { s.Lose(errDied); return nil }, invoker.OutcomeUnknown},
		{"Disconnect", func(_ *ensembletest.Source, e *ensemble.Ensemble) error { return e.Disconnect(context.Background()) }, invoker.Canceled},
		{"Close", func(_ *ensembletest.Source, e *ensemble.Ensemble) error { return e.Close(context.Background()) }, invoker.Canceled},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			gate := ensembletest.NewGate("gate", false)
			// The tool is not told of the loss by its connection but by the ensemble.
			source := ensembletest.NewSource(gate)
			e := ensemble.New("e", source, nil)
			tool := toolOf(t, e, "gate")
			start := time.Now()
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					_, failure := invoke(t.Context(), tool)
					if failure == nil || failure.Code != test.code && failure.Code != invoker.OutcomeUnknown {
						t.Errorf("%s: %v", test.name, failure)
					}
				})
			}
			synctest.Wait()
			if err := test.end(source, e); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			all.Wait()
			if took := time.Since(start); took > time.Second {
				t.Errorf("%s: it took %v", test.name, took)
			}
			if gate.Calls() != 5 {
				t.Errorf("%s: %d calls were made, want 5", test.name, gate.Calls())
			}
			e.Close(t.Context())
		})
	}
}

// deaf is a connection whose calls do not notice its loss.
type deaf struct {
	tool invoker.Invoker
	lost chan struct{}
	err  error
}

func (d *deaf) Open(context.Context) (ensemble.Connection, error) { return d, nil }
func (d *deaf) List(context.Context) (ensemble.Listing, error) {
	return ensemble.Listing{Invokers: []invoker.Invoker{d.tool}}, nil
}
func (d *deaf) Changed() <-chan struct{}    { return nil }
func (d *deaf) Lost() <-chan struct{}       { return d.lost }
func (d *deaf) Err() error                  { return d.err }
func (d *deaf) Peer() ensemble.Peer         { return ensemble.Peer{} }
func (d *deaf) Close(context.Context) error { return nil }

func TestLossEndsCallsOfDeafSource(t *testing.T) {
	for _, repeatable := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			gate := ensembletest.NewGate("gate", false)
			gate.Def.Hints.ReadOnly = repeatable
			d := &deaf{tool: gate, lost: make(chan struct{}), err: errDied}
			e := ensemble.New("e", d, nil)
			tool := toolOf(t, e, "gate")
			time.AfterFunc(time.Second, func() { close(d.lost) })
			start := time.Now()
			_, failure := invoke(t.Context(), tool)
			wantFailure(t, failure, invoker.OutcomeUnknown, repeatable)
			if !strings.Contains(failure.Message, "exit status 3") || time.Since(start) > 2*time.Second {
				t.Errorf("after %v: %v", time.Since(start), failure)
			}
			e.Close(t.Context())
		})
	}
}

func TestInvokeUnreachable(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		source.Fail(ensembletest.Open, 1000, errDied)
		source.Lose(errDied)
		synctest.Wait()
		for range 3 {
			_, failure := invoke(t.Context(), tool)
			wantFailure(t, failure, invoker.Unavailable, true)
			if !strings.Contains(failure.Message, "not made") || !errors.Is(failure, errDied) {
				t.Errorf("the failure is %v", failure)
			}
		}
		if got := source.Count(ensembletest.Open); got != 2 {
			t.Errorf("%d attempts, want 2: one to connect, one after the loss", got)
		}
	})
}

// TestInvokeUnreachableInTime: the limit of connecting is not the call's end.
func TestInvokeUnreachableInTime(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		defer source.Hang(ensembletest.Open, false)()
		source.Lose(errDied)
		synctest.Wait()
		_, failure := invoke(t.Context(), tool)
		wantFailure(t, failure, invoker.Unavailable, true)
		if !strings.Contains(failure.Message, "within 5s") {
			t.Errorf("the failure is %v", failure)
		}
	})
}

func TestInvokeToolThatIsGone(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		source.SetTools(ensembletest.Echo())
		_, failure := invoke(t.Context(), tool) // over the old connection: the source says so
		wantFailure(t, failure, invoker.ToolNotFound, false)
		source.Lose(errDied)
		synctest.Wait()
		_, failure = invoke(t.Context(), tool) // over a fresh one: the ensemble does
		wantFailure(t, failure, invoker.ToolNotFound, false)
		if want := `"e" no longer offers the tool "a".`; failure.Message != want {
			t.Errorf("the message is %q, want %q", failure.Message, want)
		}
	})
}

func TestLateProgressIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		e := ensemble.Local("e", ensembletest.NewTool("tool", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			call.Report(invoker.Progress{Done: 1})
			invoker.CallFrom(ctx).Report(invoker.Progress{Done: 2})
			<-proceed
			call.Report(invoker.Progress{Done: 3})
			invoker.CallFrom(ctx).Report(invoker.Progress{Done: 4})
			return invoker.Output{}, nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var got []float64
		_, err := toolOf(t, e, "tool").Invoke(ctx, &invoker.Call{Progress: func(p invoker.Progress) { got = append(got, p.Done) }})
		wantFailure(t, invoker.AsFailure(err), invoker.Timeout, false)
		close(proceed)
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if len(got) != 2 {
			t.Errorf("the reports are %v, want [1 2]", got)
		}
	})
}

// TestLossThatIsNewsToTheCall: the connection notices its loss when it is
// used, and the call goes over a fresh one.
func TestLossThatIsNewsToTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var source *ensembletest.Source
		calls := 0
		source = ensembletest.NewSource(ensembletest.NewTool("tool", func(context.Context, *invoker.Call) (invoker.Output, error) {
			if calls++; calls == 1 {
				source.Lose(errDied)
				return invoker.Output{}, invoker.Failf(invoker.Unavailable, "session not found")
			}
			return invoker.Output{Content: canister.Texts("answer")}, nil
		}))
		e := ensemble.New("e", source, nil)
		if text, failure := invoke(t.Context(), toolOf(t, e, "tool")); text != "answer" || calls != 2 {
			t.Errorf("%q, %v after %d calls", text, failure, calls)
		}
		e.Close(t.Context())
	})
}

// direct is a source whose connections offer the tool unchanged: the fake does not
// translate the end of its context.
type direct struct {
	*ensembletest.Source
	tool invoker.Invoker
}

type directConnection struct {
	ensemble.Connection
	tool invoker.Invoker
}

func (d direct) Open(ctx context.Context) (ensemble.Connection, error) {
	connection, err := d.Source.Open(ctx)
	if err != nil {
		return nil, err
	}
	return directConnection{connection, d.tool}, nil
}

func (c directConnection) List(context.Context) (ensemble.Listing, error) {
	return ensemble.Listing{Invokers: []invoker.Invoker{c.tool}}, nil
}

// TestLossJustBeforeTheCall: a call that meets the loss before it is sent, as its
// source says, is made over the next connection, whatever the tool does.
func TestLossJustBeforeTheCall(t *testing.T) {
	for _, began := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			calls, source := 0, ensembletest.NewSource()
			e := ensemble.New("e", direct{source, ensembletest.NewTool("pay", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
				if calls++; calls > 1 {
					return invoker.Output{Content: canister.Texts("paid")}, nil
				}
				source.Lose(errDied)
				<-ctx.Done()
				return invoker.Output{}, &invoker.Failure{Code: invoker.Canceled, Retryable: !began, Cause: ctx.Err()}
			})}, nil)
			defer e.Close(t.Context())
			text, failure := invoke(t.Context(), toolOf(t, e, "pay"))
			if began && (failure == nil || failure.Code != invoker.OutcomeUnknown || calls != 1) || !began && (text != "paid" || calls != 2) {
				t.Errorf("a call that had begun (%t) came to %q, %v, and was made %d times", began, text, failure, calls)
			}
		})
	}
}

// TestLossIsSeenByTheNextUse, with nothing in between.
func TestLossIsSeenByTheNextUse(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		for range 500 {
			source.Lose(errDied)
			if text, failure := invoke(t.Context(), tool); text != "answer" {
				t.Fatalf("%q, %v", text, failure)
			}
		}
	})
}

func TestAbandonedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := ensembletest.NewGate("gate", true)
		e := ensemble.New("e", ensembletest.NewSource(gate, ensembletest.Returns("other", "answer")), &ensemble.Options{CallTimeout: time.Second})
		tool := toolOf(t, e, "gate")
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() { invoke(t.Context(), tool) })
		}
		all.Wait()
		_, failure := invoke(t.Context(), tool)
		wantFailure(t, failure, invoker.Unavailable, true)
		if gate.Calls() != 64 || !strings.Contains(failure.Message, "64 calls of gate were cancelled and are still running") {
			t.Errorf("%d calls, %v", gate.Calls(), failure)
		}
		if text, failure := invoke(t.Context(), toolOf(t, e, "other")); text != "answer" {
			t.Errorf("another tool: %v", failure)
		}
		gate.Release("late")
		synctest.Wait()
		invoke(t.Context(), tool)
		if gate.Calls() != 65 {
			t.Errorf("%d calls after one had ended, want 65", gate.Calls())
		}
		for range 64 {
			gate.Release("late")
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestInvokeNilCall(t *testing.T) {
	e := answering("e", "a")
	defer e.Close(t.Context())
	if _, err := toolOf(t, e, "a").Invoke(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
