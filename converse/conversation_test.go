// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/invoker"
)

func TestTurnWithTools(t *testing.T) {
	script := conversetest.NewScript(
		conversetest.Line{
			Text: "Let me look.", Calls: []conversetest.Call{call("a", `{"n":1}`), call("b", `{"n":2}`)}, Usage: &canister.Usage{Input: 10, Output: 5},
		},
		conversetest.Line{Expect: told(`b {"n":2}`), Text: "Both are there.", Usage: &canister.Usage{Input: 20, Output: 7}},
	)
	talk := converse.New(script, newRoster(t, echo("a"), echo("b")), &converse.Options{Instructions: "Be brief."})
	events := play(t, talk, "Go.")
	played(t, script)
	sound(t, talk.History())

	want := "TurnStarted MessageStarted MessageCompleted InvocationRequested InvocationRequested ExchangeCompleted"
	if got := names(events); !strings.HasPrefix(got, want) {
		t.Errorf("the events begin\n%s, want\n%s", got, want)
	}
	if got, want := names(events)[len(want):], "MessageStarted MessageCompleted ExchangeCompleted TurnCompleted"; !strings.HasSuffix(got, want) {
		t.Errorf("the events end\n%s, want\n%s", got, want)
	}
	turn := last(t, events)
	if turn.Text() != "Both are there." || turn.Reason != converse.ReasonAnswered {
		t.Errorf("turn = %+v", turn)
	}
	if turn.Exchanges != 2 || turn.Invocations != 2 || turn.Usage.Input != 30 || turn.Usage.Output != 12 {
		t.Errorf("counted %d exchanges, %d invocations, %+v", turn.Exchanges, turn.Invocations, turn.Usage)
	}
	var kinds []string
	for _, c := range talk.History() {
		kinds = append(kinds, string(c.Kind()))
		if c.Header().ID == "" || c.Header().Time.IsZero() {
			t.Errorf("%v has no identity or no time", c)
		}
	}
	if got, want := strings.Join(kinds, " "), "supervisor user assistant invocation invocation result result assistant"; got != want {
		t.Errorf("the history is\n%s, want\n%s", got, want)
	}
}

func TestDeltasMakeTheAnswer(t *testing.T) {
	script := conversetest.NewScript(conversetest.Line{Text: "A longer answer, in several pieces."})
	var streamed strings.Builder
	events := play(t, converse.New(script, nil, nil), "Go.")
	for _, event := range events {
		if delta, ok := event.(converse.TextDelta); ok {
			streamed.WriteString(delta.Text)
		}
	}
	if got := last(t, events).Text(); got != streamed.String() || got == "" {
		t.Errorf("streamed %q, answered %q", streamed.String(), got)
	}
}

// Results stand in the order of the request, in whatever order the calls end.
func TestResultsInOrderOfRequest(t *testing.T) {
	second := make(chan struct{})
	roster := newRoster(t,
		fn("slow", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			select {
			case <-second:
			case <-ctx.Done():
			}
			return invoker.Output{Content: canister.Texts("slow")}, nil
		}),
		fn("fast", func(context.Context, *invoker.Call) (invoker.Output, error) {
			defer close(second)
			return invoker.Output{Content: canister.Texts("fast")}, nil
		}))
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("slow", "{}"), call("fast", "{}")}},
		conversetest.Line{Text: "ok"},
	)
	talk := converse.New(script, roster, nil)
	play(t, talk, "Go.")
	found := results(talk.History())
	if got := canister.TextOf(found[0].Content) + canister.TextOf(found[1].Content); got != "slowfast" {
		t.Errorf("the results stand as %q", got)
	}
}

func TestParallelLimitAndExclusive(t *testing.T) {
	for _, test := range []struct {
		name      string
		limits    converse.Limits
		exclusive bool
		most      int32
	}{
		{"default", converse.Limits{}, false, 8},
		{"three", converse.Limits{Parallel: 3}, false, 3},
		{"one", converse.Limits{Parallel: 1}, false, 1},
		{"none", converse.Limits{Parallel: -1}, false, 20},
		{"exclusive", converse.Limits{}, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int32
				busy := fn("busy", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
					now := running.Add(1)
					defer running.Add(-1)
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					time.Sleep(time.Second) // of the bubble's clock
					return invoker.Output{}, nil
				})
				if test.exclusive {
					busy = exclusive(busy)
				}
				var calls []conversetest.Call
				for range 20 {
					calls = append(calls, call("busy", "{}"))
				}
				script := conversetest.NewScript(conversetest.Line{Calls: calls}, conversetest.Line{Text: "ok"})
				talk := converse.New(script, newRoster(t, busy), &converse.Options{Limits: test.limits})
				play(t, talk, "Go.")
				sound(t, talk.History())
				if most.Load() != test.most {
					t.Errorf("at most %d ran together, want %d", most.Load(), test.most)
				}
			})
		})
	}
}

func TestFailuresAreNewsForTheModel(t *testing.T) {
	roster := newRoster(t,
		echo("weather"),
		fn("fails", func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{}, errors.New("the disk of db.internal is full")
		}),
		fn("panics", func(context.Context, *invoker.Call) (invoker.Output, error) { panic("secret detail") }),
		fn("missing", func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{}, invoker.Failf(invoker.NotFound, "no task 7")
		}),
		fn("refuses", func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{}, &invoker.Failure{Code: invoker.ExecutionFailed, Content: canister.Texts("what the tool said")}
		}),
	)
	for _, test := range []struct {
		call conversetest.Call
		code invoker.Code
		text string
	}{
		{call("wether", "{}"), invoker.ToolNotFound, "local__weather"},
		{conversetest.Call{Name: "weather", Arguments: "{}"}, invoker.ToolNotFound, "local__weather"},
		{call("weather", `{"city": "Os`), invoker.InvalidArguments, "not valid JSON"},
		{call("weather", ``), "", "weather {}"},
		{call("fails", "{}"), invoker.ExecutionFailed, "The tool ran and failed. The reason is in the log of the program that runs it."},
		{call("panics", "{}"), invoker.ExecutionFailed, "crashed"},
		{call("missing", "{}"), invoker.NotFound, "no task 7"},
		{call("refuses", "{}"), invoker.ExecutionFailed, "what the tool said"},
	} {
		t.Run(test.call.Name+test.call.Arguments, func(t *testing.T) {
			script := conversetest.NewScript(
				conversetest.Line{Calls: []conversetest.Call{test.call}},
				conversetest.Line{Expect: told(test.text), Text: "I see."},
			)
			talk := converse.New(script, roster, nil)
			if turn := last(t, play(t, talk, "Go.")); turn.Text() != "I see." {
				t.Errorf("turn = %+v", turn)
			}
			played(t, script)
			sound(t, talk.History())
			result := results(talk.History())[0]
			if result.Code != string(test.code) {
				t.Errorf("code = %q, want %q", result.Code, test.code)
			}
			if text := canister.TextOf(result.Content); strings.Contains(text, "secret detail") || strings.Contains(text, "db.internal") {
				t.Error("the model is shown what a panic or an error said")
			}
		})
	}
}

func TestOversizedResultIsCut(t *testing.T) {
	big := fn("big", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: []canister.Content{
			canister.Text(strings.Repeat("é", 3000)),
			canister.ImageContent{Data: make([]byte, 500), MIME: "image/png"},
		}}, nil
	})
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("big", "{}")}}, conversetest.Line{Text: "ok"})
	talk := converse.New(script, newRoster(t, big), &converse.Options{Limits: converse.Limits{ResultBytes: 1001}})
	play(t, talk, "Go.")
	text := canister.TextOf(results(talk.History())[0].Content)
	want := strings.Repeat("é", 500) + "\n[cut: 5000 bytes of text omitted, because a result may have at most 1001 bytes]" +
		"\n[cut: 500 bytes of an image (image/png) omitted, because a result may have at most 1001 bytes]"
	if text != want {
		t.Errorf("the result is %q", text[max(0, len(text)-200):])
	}
}

func TestExchangeLimit(t *testing.T) {
	again := conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}}
	for _, final := range []bool{false, true} {
		t.Run(fmt.Sprint("final answer ", final), func(t *testing.T) {
			lines := []conversetest.Line{again, again, again}
			if final {
				lines = append(lines, conversetest.Line{Text: "That is all I know.", Expect: func(r *converse.Request) error {
					if !r.NoInvocations || len(r.Tools.Definitions) != 1 {
						return errors.New("the final exchange must describe the tools and allow none")
					}
					return nil
				}})
			}
			script := conversetest.NewScript(lines...)
			talk := converse.New(script, newRoster(t, echo("a")), &converse.Options{Limits: converse.Limits{Exchanges: 3, FinalAnswer: final}})
			turn := last(t, play(t, talk, "Go."))
			played(t, script)
			sound(t, talk.History())
			if turn.Reason != converse.ReasonExchanges || !turn.Reason.Limited() {
				t.Errorf("reason = %q", turn.Reason)
			}
			if (turn.Text() != "") != final {
				t.Errorf("text = %q", turn.Text())
			}
		})
	}
}

// A model that asks for tools in its final answer is told that they did not run.
func TestFinalAnswerRefusesTools(t *testing.T) {
	again := conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}}
	script := conversetest.NewScript(again, again)
	var calls atomic.Int32
	roster := newRoster(t, fn("a", func(context.Context, *invoker.Call) (invoker.Output, error) {
		calls.Add(1)
		return invoker.Output{}, nil
	}))
	talk := converse.New(script, roster, &converse.Options{Limits: converse.Limits{Exchanges: 1, FinalAnswer: true}})
	turn := last(t, play(t, talk, "Go."))
	found := results(talk.History())
	if turn.Reason != converse.ReasonExchanges || calls.Load() != 1 || len(found) != 2 || found[1].Code != string(invoker.Denied) {
		t.Errorf("reason %q, %d calls, results %v", turn.Reason, calls.Load(), found)
	}
}

func TestTokenLimit(t *testing.T) {
	again := conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}, Usage: &canister.Usage{Input: 60, Output: 40}}
	script := conversetest.NewScript(again, again)
	talk := converse.New(script, newRoster(t, echo("a")), &converse.Options{Limits: converse.Limits{Tokens: 150}})
	if turn := last(t, play(t, talk, "Go.")); turn.Reason != converse.ReasonTokens || turn.Usage.Total() != 200 {
		t.Errorf("turn = %+v", turn)
	}
	played(t, script)
	sound(t, talk.History())
}

func TestTimeLimit(t *testing.T) {
	for name, script := range map[string]*conversetest.Script{
		"in a call":       conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("wait", "{}")}}),
		"in the exchange": conversetest.NewScript(conversetest.Line{Text: "Hm", Wait: make(chan struct{})}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if name == "in the exchange" { // the channel must belong to the bubble
					script = conversetest.NewScript(conversetest.Line{Text: "Hm", Wait: make(chan struct{})})
				}
				roster := newRoster(t, readOnly(waiter("wait")))
				talk := converse.New(script, roster, &converse.Options{Limits: converse.Limits{Time: 10 * time.Second}})
				began := time.Now()
				turn := last(t, play(t, talk, "Go."))
				if turn.Reason != converse.ReasonTime || time.Since(began) != 10*time.Second {
					t.Errorf("turn = %+v after %v", turn, time.Since(began))
				}
				sound(t, talk.History())
				for _, result := range results(talk.History()) {
					if text := canister.TextOf(result.Content); !strings.Contains(text, "time limit of 10s") || !strings.Contains(text, "changes nothing") {
						t.Errorf("the result says %q", text)
					}
				}
			})
		})
	}
}

// Leaving the loop after any event stops the work, and the history goes on.
func TestLeavingTheLoop(t *testing.T) {
	for leave := 1; ; leave++ {
		done := false
		synctest.Test(t, func(t *testing.T) {
			script := conversetest.NewScript(
				conversetest.Line{Text: "Let me look.", Calls: []conversetest.Call{call("a", "{}"), call("wait", "{}"), call("b", "{}")}},
				conversetest.Line{Text: "Done."},
				conversetest.Line{Text: "Again."},
			)
			release := make(chan struct{})
			defer close(release)
			roster := newRoster(t, echo("a"), echo("b"), fn("wait", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
				call.Report(invoker.Progress{Done: 1})
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
				return invoker.Output{}, ctx.Err()
			}))
			talk := converse.New(script, roster, nil)
			n, began := 0, time.Now()
			for _, err := range talk.Send(t.Context(), canister.Text("Go.")) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n == leave {
					began = time.Now()
					break
				}
			}
			if waited := time.Since(began); n == leave && waited > 0 {
				t.Errorf("leaving after %d events took %v", leave, waited)
			}
			done = n < leave
			sound(t, talk.History())
			for range talk.Continue(t.Context()) {
			}
			sound(t, talk.History())
		})
		if done || t.Failed() {
			if leave < 15 {
				t.Errorf("there were only %d events", leave)
			}
			return
		}
	}
}

func TestCancellingIsNotRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("wait", "{}"), call("never", "{}")}},
			conversetest.Line{Text: "Fine."},
		)
		talk := converse.New(script, newRoster(t, waiter("wait"), echo("never")), &converse.Options{Limits: converse.Limits{Parallel: 1}})
		var failed error
		for event, err := range talk.Send(ctx, canister.Text("Go.")) {
			if _, ok := event.(converse.InvocationStarted); ok {
				cancel()
			}
			failed = err
		}
		if !errors.Is(failed, context.Canceled) {
			t.Errorf("the error is %v", failed)
		}
		sound(t, talk.History())
		found := results(talk.History())
		for i, want := range []string{"interrupted: the turn was cancelled. It may or may not have taken effect", "not started: the turn was cancelled"} {
			if found[i].Code != string(invoker.Canceled) || !strings.Contains(canister.TextOf(found[i].Content), want) {
				t.Errorf("result %d is %s %q, want %q", i, found[i].Code, canister.TextOf(found[i].Content), want)
			}
		}
		if turn := last(t, play(t, talk, "And now?")); turn.Text() != "Fine." {
			t.Errorf("turn = %+v", turn)
		}
		played(t, script)
	})
}

func TestProgressComesBeforeItsResult(t *testing.T) {
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("p", "{}")}}, conversetest.Line{Text: "ok"})
	var late func()
	roster := newRoster(t, fn("p", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		for i := range 5 {
			call.Report(invoker.Progress{Done: float64(i + 1), Total: 5})
		}
		late = func() { call.Report(invoker.Progress{Done: 99}) }
		return invoker.Output{}, nil
	}))
	talk := converse.New(script, roster, nil)
	var seen []float64
	completed := false
	for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case converse.InvocationProgressed:
			if completed {
				t.Error("progress after the result")
			}
			seen = append(seen, event.Progress.Done)
		case converse.InvocationCompleted:
			completed = true
			late()
		}
	}
	if fmt.Sprint(seen) != "[1 2 3 4 5]" {
		t.Errorf("progress = %v", seen)
	}
}

func TestOneWorkAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("wait", "{}")}})
		talk := converse.New(script, newRoster(t, waiter("wait")), nil)
		for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := event.(converse.InvocationStarted); ok {
				if _, err := talk.Ask(t.Context(), canister.Text("Me too.")); !errors.Is(err, converse.ErrBusy) {
					t.Errorf("a second Send says %v", err)
				}
				break
			}
		}
	})
}

func TestCloseEndsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("wait", "{}")}})
		talk := converse.New(script, newRoster(t, waiter("wait")), &converse.Options{OwnRoster: true})
		ended := make(chan error, 1)
		go func() {
			_, err := talk.Ask(t.Context(), canister.Text("Go."))
			ended <- err
		}()
		synctest.Wait()
		if err := talk.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, converse.ErrClosed) {
			t.Errorf("the Ask says %v", err)
		}
		sound(t, talk.History())
		if _, err := talk.Ask(t.Context(), canister.Text("Go.")); !errors.Is(err, converse.ErrClosed) {
			t.Errorf("an Ask after Close says %v", err)
		}
		if err := talk.Close(t.Context()); err != nil {
			t.Errorf("the second Close says %v", err)
		}
	})
}

func TestModelFailureIsAnError(t *testing.T) {
	failure := &converse.ModelError{Message: "the server is on fire", Status: 500, Retryable: true}
	script := conversetest.NewScript(conversetest.Line{Text: "Half an ans", Err: failure}, conversetest.Line{Text: "Whole."})
	talk := converse.New(script, nil, nil)
	_, err := talk.Ask(t.Context(), canister.Text("Go."))
	var got *converse.ModelError
	if !errors.As(err, &got) || got != failure {
		t.Fatalf("err = %v", err)
	}
	if n := len(talk.History()); n != 1 {
		t.Errorf("%d canisters are in the history, want the user's alone", n)
	}
	for event, err := range talk.Continue(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := event.(converse.TurnCompleted); ok && done.Turn.Text() != "Whole." {
			t.Errorf("turn = %+v", done.Turn)
		}
	}
}

func TestLogSeesEverythingFirst(t *testing.T) {
	var written []canister.Canister
	failing := false
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}},
		conversetest.Line{Text: "ok"},
		conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}},
	)
	var talk *converse.Conversation
	talk = converse.New(script, newRoster(t, echo("a")), &converse.Options{
		Instructions: "Be brief.",
		ID:           "talk",
		Log: newWatchedLog(func(_ context.Context, added []canister.Canister) error {
			if len(talk.History()) != len(written) {
				t.Error("the history is ahead of the log")
			}
			if failing && added[0].Kind() == canister.KindResult {
				return errors.New("disk full")
			}
			written = append(written, added...)
			return nil
		}),
	})
	play(t, talk, "Go.")
	if len(written) != len(talk.History()) || len(written) != 7 {
		t.Errorf("the log has %d canisters, the history %d", len(written), len(talk.History()))
	}
	failing = true
	if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("err = %v", err)
	}
	if len(written) != len(talk.History()) {
		t.Errorf("after a failure the log has %d canisters, the history %d", len(written), len(talk.History()))
	}
}

func TestManyConversationsOnOneRoster(t *testing.T) {
	roster := newRoster(t, echo("a"))
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			script := conversetest.NewScript(
				conversetest.Line{Calls: []conversetest.Call{call("a", "{}"), call("a", "{}")}},
				conversetest.Line{Text: "ok"},
			)
			talk := converse.New(script, roster, nil)
			if turn, err := talk.Ask(t.Context(), canister.Text("Go.")); err != nil || turn.Text() != "ok" {
				t.Errorf("turn = %+v, err = %v", turn, err)
			}
		})
	}
	all.Wait()
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > before+1 && time.Now().Before(deadline) {
		runtime.Gosched() // those that have handed in their result are about to end
	}
	if after := runtime.NumGoroutine(); after > before+1 {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// The limit on time holds against a clock that stands still, too.
func TestTimeLimitWithoutClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("wait", "{}")}}, conversetest.Line{Text: "ok"})
		now := time.Now()
		talk := converse.New(script, newRoster(t, waiter("wait")), &converse.Options{
			Limits: converse.Limits{Time: time.Second},
			Now:    func() time.Time { return now },
		})
		if turn := last(t, play(t, talk, "Go.")); turn.Reason != converse.ReasonTime || turn.Exchanges != 1 {
			t.Errorf("turn = %+v", turn)
		}
	})
}

// What a tool returns beside its content reaches the history.
func TestResultCarriesMetadata(t *testing.T) {
	metadata := canister.Fields{"cost": []byte("7")}
	roster := newRoster(t,
		fn("good", func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{Metadata: metadata}, nil
		}),
		fn("bad", func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{}, &invoker.Failure{Code: invoker.NotFound, Retryable: true, Metadata: metadata, Content: canister.Texts("not there")}
		}))
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("good", "{}"), call("bad", "{}")}}, conversetest.Line{Text: "ok"})
	talk := converse.New(script, roster, nil)
	play(t, talk, "Go.")
	for i, result := range results(talk.History()) {
		if string(result.Metadata["cost"]) != "7" || result.Retryable != (i == 1) {
			t.Errorf("result %d is %+v", i, result)
		}
	}
}

// What is no content makes no history that cannot be written out.
func TestResultThatIsNoContent(t *testing.T) {
	roster := newRoster(t, fn("odd", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: []canister.Content{
			nil, canister.Text("good"), &canister.TextContent{}, canister.StructuredContent{JSON: []byte(`{"half`)},
		}}, nil
	}))
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("odd", "{}")}}, conversetest.Line{Text: "ok"})
	talk := converse.New(script, roster, nil)
	play(t, talk, "Go.")
	want := "[omitted: <nil> is not a content]\ngood\n[omitted: *canister.TextContent is not a content]\n{\"half"
	if text := canister.TextOf(results(through(t, talk.History()))[0].Content); text != want {
		t.Errorf("the result says %q", text)
	}
}

func TestBoundOfResults(t *testing.T) {
	for _, test := range []struct {
		name    string
		limit   int
		content []canister.Content
		bytes   int // at most
		pieces  int
	}{
		{"no limit", -1, canister.Texts(strings.Repeat("a", 2<<20)), 2 << 20, 1},
		{"default", 0, canister.Texts(strings.Repeat("a", 2<<20)), 1<<20 + 100, 2},
		{"many empty", 160, canister.Texts(make([]string, 1000)...), 500, 15},
		{"a small one behind", 100, []canister.Content{canister.ImageContent{Data: make([]byte, 5000)}, canister.Text("seen")}, 200, 2},
		{"long address", 100, []canister.Content{canister.LinkContent{URI: strings.Repeat("a", 5000)}}, 400, 1},
		{"long resource", 100, []canister.Content{canister.ResourceContent{URI: strings.Repeat("a", 5000)}}, 400, 1},
		{"long type", 100, []canister.Content{canister.ImageContent{MIME: strings.Repeat("a", 5000), Data: make([]byte, 200)}}, 400, 1},
		{"bytes that are no text", 100, canister.Texts(strings.Repeat("\x80", 5000)), 200, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("big", "{}")}}, conversetest.Line{Text: "ok"})
			roster := newRoster(t, fn("big", func(context.Context, *invoker.Call) (invoker.Output, error) {
				return invoker.Output{Content: test.content}, nil
			}))
			talk := converse.New(script, roster, &converse.Options{Limits: converse.Limits{ResultBytes: test.limit}})
			play(t, talk, "Go.")
			content := results(talk.History())[0].Content
			if n := len(canister.TextOf(content)); n > test.bytes || test.limit < 0 && n < test.bytes || len(content) != test.pieces {
				t.Errorf("the result has %d bytes in %d pieces, want at most %d in %d", n, len(content), test.bytes, test.pieces)
			}
		})
	}
}

// What the caller keeps and changes is the caller's own.
func TestHistoryIsNotTheCallers(t *testing.T) {
	given := make([]canister.Canister, 0, 10)
	given = append(given, canister.User{Head: canister.Head{ID: "given"}})
	content := canister.Texts("said")
	script := conversetest.NewScript(slices.Repeat([]conversetest.Line{{Text: "ok"}}, 4)...)
	talk := converse.New(script, nil, &converse.Options{History: given})
	given[0] = canister.User{Head: canister.Head{ID: "changed"}}
	for range 4 {
		mine := append(talk.History(), canister.User{Head: canister.Head{ID: "mine"}})
		if _, err := talk.Ask(t.Context(), content...); err != nil {
			t.Fatal(err)
		}
		if mine[len(mine)-1].Header().ID != "mine" {
			t.Error("the conversation and the caller write to one array")
		}
	}
	content[0] = canister.Text("changed")
	if got := talk.History(); got[0].Header().ID != "given" || canister.TextOf(got[1].(canister.User).Content) != "said" {
		t.Errorf("the history is %v", got)
	}
}

// bound is a model that is to be bound.
type bound struct {
	converse.Model // nil: only what Bind returns can be asked
	to             converse.Model
	times          *int
}

func (b bound) Bind() converse.Model { *b.times++; return b.to }

func TestModelIsBoundOnce(t *testing.T) {
	times := 0
	talk := converse.New(bound{
		to:    conversetest.NewScript(conversetest.Line{Text: "one"}, conversetest.Line{Text: "two"}),
		times: &times,
	}, nil, nil)
	play(t, talk, "Go.")
	play(t, talk, "Go.")
	if times != 1 {
		t.Errorf("the model was bound %d times", times)
	}
}
