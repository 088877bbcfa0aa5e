// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// timed runs a tool in an ensemble with an idle time-out of 10 s and a limit of
// 1 min, and returns its failure and how long the call took.
func timed(t *testing.T, call *invoker.Call, run func(context.Context, *invoker.Call)) (failure *invoker.Failure, took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tool := ensembletest.NewTool("tool", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			run(ctx, call)
			return invoker.Output{}, ctx.Err()
		})
		e := ensemble.New("e", ensembletest.NewSource(tool), &ensemble.Options{CallTimeout: 10 * time.Second, CallLimit: time.Minute})
		bound := toolOf(t, e, "tool")
		start := time.Now()
		if _, err := bound.Invoke(t.Context(), call); err != nil {
			failure = invoker.AsFailure(err)
		}
		took = time.Since(start)
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return failure, took
}

// pause waits as a tool does.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func TestCallLimits(t *testing.T) {
	report := func(every time.Duration, times int) func(context.Context, *invoker.Call) {
		return func(ctx context.Context, call *invoker.Call) {
			for i := range times {
				if pause(ctx, every); ctx.Err() != nil {
					return
				}
				call.Report(invoker.Progress{Done: float64(i + 1), Total: 100, Message: "reading\u202e\n"})
			}
			pause(ctx, every)
		}
	}
	tests := []struct {
		name string
		run  func(context.Context, *invoker.Call)
		took time.Duration
		says string // empty if it succeeds
	}{
		{"silent", report(time.Hour, 0), 10 * time.Second, "reached its idle time-out: no answer and no progress within 10s. It may or may not"},
		{"progress keeps it alive", report(9*time.Second, 4), 45 * time.Second, ""},
		{"silent after progress", func(ctx context.Context, call *invoker.Call) {
			report(9*time.Second, 2)(ctx, call)
			<-ctx.Done()
		}, 28 * time.Second, `within 10s. Its last report of progress was 2 of 100, "reading\n". It may`},
		{
			"progress for ever", report(9*time.Second, 1000), time.Minute,
			`reached its time limit: no answer within 1m0s. Its last report of progress was 6 of 100`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			failure, took := timed(t, nil, test.run)
			if took != test.took {
				t.Errorf("it took %v, want %v", took, test.took)
			}
			if test.says == "" {
				if failure != nil {
					t.Errorf("it failed: %v", failure)
				}
				return
			}
			wantFailure(t, failure, invoker.Timeout, false)
			if failure != nil && !strings.Contains(failure.Message, test.says) {
				t.Errorf("the failure is %q, want %q in it", failure.Message, test.says)
			}
		})
	}
}

// TestTimeoutByCause: a tool may tell the cause of its context's end, as
// net/http does.
func TestTimeoutByCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := ensemble.Local("e", ensembletest.NewTool("tool", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			<-ctx.Done()
			return invoker.Output{}, fmt.Errorf("get: %w", context.Cause(ctx))
		}))
		_, failure := invoke(t.Context(), toolOf(t, e, "tool"))
		wantFailure(t, failure, invoker.Timeout, false)
		if !strings.Contains(failure.Message, "idle time-out") {
			t.Errorf("the message is %q", failure.Message)
		}
		e.Close(context.Background())
	})
}

// TestHold: both limits stand still while a person is asked, whoever asks, and
// go on afterwards where they were.
func TestHold(t *testing.T) {
	failure, took := timed(t, nil, func(ctx context.Context, call *invoker.Call) {
		pause(ctx, 4*time.Second)
		first, second := call.Hold(), invoker.CallFrom(ctx).Hold()
		pause(ctx, time.Hour)
		first()
		first() // does nothing
		pause(ctx, time.Hour)
		second()
		<-ctx.Done()
	})
	wantFailure(t, failure, invoker.Timeout, false)
	if want := 2*time.Hour + 10*time.Second; took != want {
		t.Errorf("the idle time-out ended it after %v, want %v", took, want)
	}
	failure, took = timed(t, nil, func(ctx context.Context, call *invoker.Call) {
		resume := call.Hold()
		pause(ctx, time.Minute)
		call.Report(invoker.Progress{}) // counts as if it came at the end
		pause(ctx, time.Minute)
		resume()
		<-ctx.Done()
	})
	wantFailure(t, failure, invoker.Timeout, false)
	if want := 2*time.Minute + 10*time.Second; took != want {
		t.Errorf("after a sign of life in a hold, the idle time-out ended it after %v, want %v", took, want)
	}
	failure, took = timed(t, nil, func(ctx context.Context, call *invoker.Call) {
		defer call.Hold()()
		pause(ctx, time.Hour)
	})
	if failure != nil || took != time.Hour {
		t.Errorf("held to its end: %v after %v", failure, took)
	}
}

// TestHoldStopsTheLimit, which no report moves.
func TestHoldStopsTheLimit(t *testing.T) {
	failure, took := timed(t, nil, func(ctx context.Context, call *invoker.Call) {
		for ctx.Err() == nil {
			pause(ctx, 5*time.Second)
			call.Report(invoker.Progress{})
			resume := call.Hold()
			pause(ctx, 5*time.Second)
			resume()
		}
	})
	wantFailure(t, failure, invoker.Timeout, false)
	if took < 115*time.Second || took > 120*time.Second || !strings.Contains(failure.Message, "time limit") {
		t.Errorf("after %v: %v", took, failure)
	}
}

// TestHoldIsPassedOn: who makes a call of a call has limits too.
func TestHoldIsPassedOn(t *testing.T) {
	held, resumed := 0, 0
	call := &invoker.Call{Pause: func() func() { held++; return func() { resumed++ } }}
	timed(t, call, func(_ context.Context, call *invoker.Call) { call.Hold()() })
	if held != 1 || resumed != 1 {
		t.Errorf("held %d times, resumed %d times", held, resumed)
	}
}

// counting is a source whose connections count late answers.
type counting struct {
	*ensembletest.Source
	late int
}

func (c *counting) Open(ctx context.Context) (ensemble.Connection, error) {
	connection, err := c.Source.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &counted{connection, c}, nil
}

type counted struct {
	ensemble.Connection
	source *counting
}

func (c *counted) Late() int { return c.source.late }

// TestLateAnswersOfConnections are summed up over all of them.
func TestLateAnswersOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &counting{Source: ensembletest.NewSource(), late: 2}
		e := ensemble.New("e", source, nil)
		for i := range 3 {
			namesOf(t, e)
			if got := e.Snapshot().Late; got != 2*(i+1) {
				t.Errorf("%d late answers after %d connections of 2 each", got, i+1)
			}
			source.Lose(errDied)
			synctest.Wait()
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestLateFailure: a late failure is not an answer.
func TestLateFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := ensemble.New("e", ensembletest.NewSource(ensembletest.NewTool("tool", func(context.Context, *invoker.Call) (invoker.Output, error) {
			time.Sleep(time.Minute)
			return invoker.Output{}, errDied
		})), &ensemble.Options{CallTimeout: time.Second})
		invoke(t.Context(), toolOf(t, e, "tool"))
		time.Sleep(2 * time.Minute)
		if s := e.Snapshot(); s.Late != 0 || s.Failures != 1 {
			t.Errorf("the snapshot is %+v", s)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestLateAnswer is dropped and counted.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := ensembletest.NewGate("gate", true)
		e := ensemble.Local("e", gate)
		tool := toolOf(t, e, "gate")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, failure := invoke(ctx, tool)
		wantFailure(t, failure, invoker.Timeout, false)
		answer := make(chan string, 1)
		go func() {
			text, _ := invoke(t.Context(), tool)
			answer <- text
		}()
		synctest.Wait()
		gate.Release("one")
		gate.Release("two")
		synctest.Wait()
		if s := e.Snapshot(); s.Late != 1 || s.Calls != 2 || s.Failures != 1 || s.InFlight != 0 {
			t.Errorf("the snapshot is %+v", s)
		}
		<-answer
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
