// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// putDown returns a history that ends with an open invocation of the tool "a".
func putDown(t *testing.T) []canister.Canister {
	t.Helper()
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}}, conversetest.Line{Text: "ok"})
	talk := converse.New(script, newRoster(t, echo("a")), nil)
	play(t, talk, "Go.")
	return talk.History()[:3]
}

// What is refused, or fails before it begins, leaves open invocations open.
func TestOpenInvocationsStayOpen(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	needed := ensembletest.NewSource()
	needed.Fail(ensembletest.Open, 100, errors.New("connection refused"))
	document := canister.Document{Content: canister.Texts("Read this.")}
	for name, work := range map[string]func(*converse.Conversation) error{
		"Add of what does not fit":   func(c *converse.Conversation) error { return c.Add(t.Context(), document) },
		"Add after the end":          func(c *converse.Conversation) error { return c.Add(ended, document) },
		"Send of nothing":            func(c *converse.Conversation) error { _, err := c.Ask(t.Context()); return err },
		"Continue after the end":     func(c *converse.Conversation) error { return drain(c.Continue(ended)) },
		"Step after the end":         func(c *converse.Conversation) error { return drain(c.Step(ended)) },
		"Continue without ensembles": func(c *converse.Conversation) error { return drain(c.Continue(t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			roster := rosterOf(t, ensemble.New("needed", needed, &ensemble.Options{Required: true}))
			talk := converse.New(conversetest.NewScript(), roster, &converse.Options{History: putDown(t)})
			if err := work(talk); err == nil {
				t.Error("there is no error")
			}
			if n := len(talk.History()); n != 3 {
				t.Errorf("there are %d canisters, want the 3 that were there", n)
			}
		})
	}
}

func drain(events func(func(converse.Event, error) bool)) (last error) {
	for _, err := range events {
		last = err
	}
	return last
}

// An invocation that was open when the work began may have run before.
func TestInterruptedBeforeAnOpenInvocationRuns(t *testing.T) {
	talk := converse.New(conversetest.NewScript(), newRoster(t, echo("a")), &converse.Options{History: putDown(t)})
	for range talk.Continue(t.Context()) {
		break // at TurnStarted
	}
	sound(t, talk.History())
	if text := canister.TextOf(results(talk.History())[0].Content); !strings.Contains(text, "may or may not") {
		t.Errorf("the result says %q", text)
	}
}

// Nothing interrupts what is complete.
func TestEndOfTheContextAfterTheWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	talk := converse.New(conversetest.NewScript(conversetest.Line{Text: "ok"}), nil, &converse.Options{
		ID: "talk",
		Log: newWatchedLog(func(_ context.Context, added []canister.Canister) error {
			if added[0].Kind() == canister.KindDocument {
				cancel()
			}
			return nil
		}),
	})
	for event, err := range talk.Send(ctx, canister.Text("Go.")) {
		if err != nil {
			t.Errorf("after the end of the turn: %v", err)
		}
		if _, ok := event.(converse.TurnCompleted); ok {
			cancel()
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	if err := talk.Add(ctx, canister.Document{}); err != nil || len(talk.History()) != 3 {
		t.Errorf("Add says %v, and there are %d canisters", err, len(talk.History()))
	}
	if err := talk.Add(ctx, canister.Document{}); !errors.Is(err, context.Canceled) || len(talk.History()) != 3 {
		t.Errorf("Add after the end says %v, and there are %d canisters", err, len(talk.History()))
	}
}

// A panic in the body of the loop waits for the calls that run, and keeps what
// came of them.
func TestPanicInTheLoop(t *testing.T) {
	for _, kind := range []string{"InvocationStarted", "InvocationProgressed", "InvocationCompleted"} {
		synctest.Test(t, func(t *testing.T) {
			var running atomic.Int32
			var ran sync.Map
			busy := func(name string, long time.Duration) invoker.Invoker {
				return fn(name, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
					running.Add(1)
					ran.Store(call.ID, true)
					defer running.Add(-1)
					call.Report(invoker.Progress{Done: 1})
					select {
					case <-time.After(long):
					case <-ctx.Done():
					}
					return invoker.Output{}, ctx.Err()
				})
			}
			script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("a", "{}"), call("b", "{}"), call("c", "{}")}})
			talk := converse.New(script, newRoster(t, busy("a", 2*time.Second), busy("b", time.Second), busy("c", 3*time.Second)), nil)
			var panicked time.Time
			func() {
				defer func() {
					if recover() != "mine" {
						t.Error("the panic is another one")
					}
				}()
				for event := range talk.Send(t.Context(), canister.Text("Go.")) {
					if names([]converse.Event{event}) == kind {
						panicked = time.Now()
						panic("mine")
					}
				}
			}()
			if n := running.Load(); n != 0 || time.Since(panicked) > 0 {
				t.Errorf("%v after %s %d calls still run", time.Since(panicked), kind, n)
			}
			sound(t, talk.History())
			for _, result := range results(talk.History()) {
				_, ran := ran.Load(result.Invocation)
				if text := canister.TextOf(result.Content); ran && strings.Contains(text, "not started") {
					t.Errorf("after %s the result says %q", kind, text)
				}
			}
		})
	}
}

// A result that the log did not accept is appended again, and the call is not made
// again. The call that had not begun is made by the next work.
func TestResultThatWasNotWritten(t *testing.T) {
	calls, full := 0, true
	roster := newRoster(t, exclusive(fn("once", func(context.Context, *invoker.Call) (invoker.Output, error) {
		calls++
		return invoker.Output{Content: canister.Texts("done")}, nil
	})))
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("once", "{}"), call("once", "{}")}},
		conversetest.Line{Text: "ok"},
	)
	talk := converse.New(script, roster, &converse.Options{
		ID: "talk",
		Log: newWatchedLog(func(_ context.Context, added []canister.Canister) error {
			if full && added[0].Kind() == canister.KindResult {
				return errors.New("the disk is full")
			}
			return nil
		}),
	})
	if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil {
		t.Error("a log that fails is no error")
	}
	ran := calls
	full = false
	if err := drain(talk.Continue(t.Context())); err != nil {
		t.Error(err)
	}
	played(t, script)
	sound(t, talk.History())
	found := results(talk.History())
	if ran != 1 || calls != 2 || canister.TextOf(found[0].Content) != "done" || canister.TextOf(found[1].Content) != "done" {
		t.Errorf("the tool ran %d times, and then %d; the results are %v", ran, calls-ran, found)
	}
}

// A conversation within a tool of another one is cancelled, and does not claim
// the other's time limit for its own.
func TestConversationWithinATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := converse.New(conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("wait", "{}")}}),
			newRoster(t, waiter("wait")), &converse.Options{Limits: converse.Limits{Time: time.Hour}})
		outer := converse.New(conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("inner", "{}")}}),
			newRoster(t, fn("inner", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
				turn, err := inner.Ask(ctx, canister.Text("Go."))
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the turn is %+v, %v", turn, err)
				}
				return invoker.Output{}, err
			})), &converse.Options{Limits: converse.Limits{Time: time.Second}})
		play(t, outer, "Go.")
		synctest.Wait()
		for talk, want := range map[*converse.Conversation]string{inner: "the turn was cancelled", outer: "time limit of 1s"} {
			if text := canister.TextOf(results(talk.History())[0].Content); !strings.Contains(text, want) {
				t.Errorf("the result says %q, want %q", text, want)
			}
		}
	})
}

// Close closes the roster even if the work does not end in time.
func TestCloseInVainClosesTheRoster(t *testing.T) {
	talk := converse.New(conversetest.NewScript(conversetest.Line{Text: "ok"}), newRoster(t, echo("a")), &converse.Options{OwnRoster: true})
	for range talk.Send(t.Context(), canister.Text("Go.")) {
		brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := talk.Close(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close within the loop says %v", err)
		}
		cancel()
		break
	}
	if err := talk.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
