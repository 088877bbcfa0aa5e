// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

// plan is a tool that calls others: in rounds, each with the calls "tool:n".
func plan(rounds ...string) invoker.Invoker {
	return readOnly(fn("plan", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		if call.Tools == nil {
			return invoker.Output{}, invoker.Failf(invoker.Unavailable, "no tools can be called")
		}
		var texts []string
		for n, round := range rounds {
			unmade := false
			for i, wanted := range strings.Fields(round) {
				tool, argument, _ := strings.Cut(wanted, ":")
				key, arguments := fmt.Sprintf("%d.%d", n, i), json.RawMessage(`{"n":`+argument+`}`)
				result, made, err := call.Tools.Result(key, "local__"+tool, arguments)
				switch {
				case err != nil:
					return invoker.Output{}, err
				case !made:
					unmade = true
					if err := call.Tools.Request(key, "local__"+tool, arguments); err != nil {
						return invoker.Output{}, err
					}
				}
				texts = append(texts, result.Code+canister.TextOf(result.Content))
			}
			if unmade {
				return invoker.Output{}, errors.New("ignored")
			}
		}
		return invoker.Output{Content: canister.Texts(strings.Join(texts, ", "))}, nil
	}))
}

// acts is a tool with an effect, which it counts by its argument.
type acts struct {
	mu   sync.Mutex
	made map[string]int
	keys []string
}

func (a *acts) tool(name string) invoker.Invoker {
	return fn(name, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.made == nil {
			a.made = map[string]int{}
		}
		a.made[name+string(call.Arguments)]++
		a.keys = append(a.keys, call.ID)
		return invoker.Output{Content: canister.Texts(name + string(call.Arguments))}, nil
	})
}

func (a *acts) once(t testing.TB, want int) {
	t.Helper()
	for arguments, n := range a.made {
		if n != 1 {
			t.Errorf("%s was called %d times", arguments, n)
		}
	}
	if len(a.made) != want {
		t.Errorf("called %v, want %d", a.made, want)
	}
}

const theirCalls = `act{"n":1}, echo {"n":2}, act{"n":3}`

// The calls that a tool makes are in the history with all that belongs to a call; the model
// sees only that of the tool.
func TestACallMakesCalls(t *testing.T) {
	for _, logged := range []bool{false, true} {
		t.Run(fmt.Sprint(logged), func(t *testing.T) {
			var a acts
			records := &recorder{}
			script := conversetest.NewScript(
				conversetest.Line{Calls: []conversetest.Call{call("echo", `{}`), call("plan", `{}`)}},
				conversetest.Line{Text: "Done.", Expect: func(r *converse.Request) error {
					if kinds := kindsOf(r.History); kinds != "user assistant invocation invocation result result" {
						return fmt.Errorf("the model sees %s", kinds)
					}
					return told(theirCalls)(r)
				}})
			options := converse.Options{NewID: counterSafe(), Audit: audit.New(records, nil)}
			if logged {
				options.ID, options.Log = "talk", history.NewMemory()
			}
			talk := converse.New(script, newRoster(t, plan("act:1 echo:2", "act:3"), a.tool("act"), echo("echo")), &options)
			events := play(t, talk, "Go.")
			turn := last(t, events)
			if turn.Invocations != 5 || turn.Exchanges != 2 {
				t.Errorf("got %+v", turn)
			}
			sound(t, talk.History())
			a.once(t, 2)
			played(t, script)
			if n := len(records.records); n != 5 {
				t.Errorf("%d records", n)
			}
			counts := map[string]int{}
			for _, name := range strings.Fields(names(events)) {
				counts[name]++
			}
			if counts["InvocationRequested"] != 5 || counts["InvocationStarted"] != 5 || counts["InvocationCompleted"] != 5 {
				t.Errorf("got %v", counts)
			}
			for _, c := range talk.History() {
				if i, ok := c.(canister.Invocation); ok && (i.Parent != "") != (i.CallID == "0.0" || i.CallID == "0.1" || i.CallID == "1.0") {
					t.Errorf("got %+v", i)
				}
			}
		})
	}
}

// A conversation that another process takes up after each step makes each call once, and
// comes to the same result.
func TestCallsOfCallsAreCarriedOn(t *testing.T) {
	log := history.NewMemory()
	var a acts
	ids := counterSafe()
	for step := 0; ; step++ {
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}})
		if step > 0 {
			script = conversetest.NewScript(conversetest.Line{Text: "Done.", Expect: told(theirCalls)})
		}
		talk := converse.New(
			script, newRoster(t, plan("act:1 echo:2", "act:3"), a.tool("act"), echo("echo")),
			&converse.Options{ID: "talk", Log: log, NewID: ids},
		)
		if step == 0 {
			if err := talk.Add(t.Context(), canister.User{Content: canister.Texts("Go.")}); err != nil {
				t.Fatal(err)
			}
		}
		var turn *converse.Turn
		for event, err := range talk.Step(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if done, ok := event.(converse.TurnCompleted); ok {
				turn = &done.Turn
			}
		}
		sound2(t, talk.History())
		if turn != nil && turn.Reason == converse.ReasonAnswered {
			if turn.Text() != "Done." || step != 8 {
				t.Errorf("after %d steps: %+v", step, turn)
			}
			break
		}
		if step > 20 {
			t.Fatal("it does not end")
		}
	}
	a.once(t, 2)
}

// sound2 fails the test unless a history is sound or calls of it are open.
func sound2(t testing.TB, list []canister.Canister) {
	t.Helper()
	for _, problem := range sequence.Check(list) {
		if problem.Rule != sequence.RuleOpen {
			t.Errorf("the history is not sound: %v", problem)
		}
	}
}

// The approval of a call that a tool makes is waited for like any other; the tool waits
// with it, and goes on in another process.
func TestCallsOfCallsWaitForApproval(t *testing.T) {
	for _, verdict := range []canister.Verdict{canister.VerdictAllow, canister.VerdictDeny, canister.VerdictChange} {
		t.Run(string(verdict), func(t *testing.T) {
			log := history.NewMemory()
			var a acts
			roster := newRoster(t, plan("act:1 echo:2", "act:3"), a.tool("act"), echo("echo"))
			options := &converse.Options{ID: "talk", Log: log, NewID: counterSafe(), Approve: defers}
			talk := converse.New(conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}}), roster, options)
			turn := last(t, play(t, talk, "Go."))
			for n := range 2 {
				if turn.Reason != converse.ReasonWaiting || len(turn.Waits) != 1 ||
					len(a.made) != map[bool]int{true: 0, false: n}[verdict == canister.VerdictDeny] {
					t.Fatalf("got %+v, made %v", turn, a.made)
				}
				sound2(t, talk.History())
				given := canister.Answer{Wait: turn.Waits[0].ID, Verdict: verdict, By: "dana"}
				if verdict == canister.VerdictChange {
					given.Arguments = json.RawMessage(fmt.Sprintf(`{"n":1%d}`, n))
				}
				if err := waits.Answer(t.Context(), log, "talk", given, time.Now()); err != nil {
					t.Fatal(err)
				}
				want := map[canister.Verdict]string{
					canister.VerdictAllow: theirCalls, canister.VerdictDeny: "DENIEDThe call was denied by dana", canister.VerdictChange: `act{"n":10}`,
				}[verdict]
				talk = converse.New(conversetest.NewScript(conversetest.Line{Text: "Done.", Expect: told(want)}), roster, options)
				var err error
				if turn, err = talk.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if turn.Text() != "Done." {
				t.Errorf("got %+v", turn)
			}
			sound(t, talk.History())
		})
	}
}

// A tool that has made calls cannot make others in their place, and a call that was made
// by a tool cannot make calls.
func TestCallsOfCallsThatAreRefused(t *testing.T) {
	log := history.NewMemory()
	var a acts
	options := func() *converse.Options {
		return &converse.Options{ID: "talk", Log: log}
	}
	talk := converse.New(
		conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}}),
		newRoster(t, plan("act:1", "act:2"), a.tool("act")), options(),
	)
	if err := talk.Add(t.Context(), canister.User{Content: canister.Texts("Go.")}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the exchange, the first run, the first call
		for _, err := range talk.Step(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	other := converse.New(conversetest.NewScript(conversetest.Line{Text: "Done.",
		Expect: told(`Repeated, call 0.0 is local__act with {"n":9}, but it was local__act with {"n":1}. Nothing was called again.`)}),
		newRoster(t, plan("act:9"), a.tool("act")), options())
	if _, err := other.Run(t.Context()); err != nil {
		t.Error(err)
	}
	sound(t, other.History())
	a.once(t, 1)

	nested := converse.New(conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}},
		conversetest.Line{Text: "Done.", Expect: told("UNAVAILABLEno tools can be called, TOOL_NOT_FOUNDThere is no tool \"local__none\"")}),
		newRoster(t, plan("plan:1 none:2")), nil)
	play(t, nested, "Go.")
	effects := converse.New(conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}},
		conversetest.Line{Text: "Done.", Expect: told("no tools can be called")}),
		newRoster(t, fn("plan", plan("act:1").Invoke), a.tool("act")), nil)
	play(t, effects, "Go.")
	sound(t, effects.History())
}

// A call that a tool made and that was cut off is in doubt, as any other: the tool is told.
func TestCallsOfCallsInDoubt(t *testing.T) {
	log := history.NewMemory()
	begun, release := make(chan struct{}), make(chan struct{})
	hang := fn("act", func(context.Context, *invoker.Call) (invoker.Output, error) {
		close(begun)
		<-release
		return invoker.Output{}, nil
	})
	talk := converse.New(conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}}), newRoster(t, plan("act:1", "act:3"), hang),
		&converse.Options{ID: "talk", Log: log})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range talk.Send(ctx, canister.Text("Go.")) {
		}
	}()
	<-begun
	var list []canister.Canister
	for c, err := range log.Read(t.Context(), "talk", 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	cut := history.NewMemory() // what a process that dies now leaves
	if err := cut.Append(t.Context(), "talk", 0, list...); err != nil {
		t.Fatal(err)
	}
	cancel(converse.ErrSuspended)
	close(release)
	<-done
	var a acts
	other := converse.New(
		conversetest.NewScript(conversetest.Line{Text: "Done.", Expect: told(`OUTCOME_UNKNOWN`)}), newRoster(t, plan("act:1", "act:3"), a.tool("act")),
		&converse.Options{ID: "talk", Log: cut})
	if _, err := other.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.once(t, 1) // only the second
	sound(t, other.History())
}

// A turn that is interrupted while the calls of a tool run gives all of them results, and
// then the tool.
func TestCallsOfCallsAreInterrupted(t *testing.T) {
	for _, logged := range []bool{false, true} {
		options := &converse.Options{}
		if logged {
			options.ID, options.Log = "talk", history.NewMemory()
		}
		ctx, cancel := context.WithCancel(t.Context())
		stop := fn("stop", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			cancel()
			<-ctx.Done()
			return invoker.Output{}, ctx.Err()
		})
		talk := converse.New(
			conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}}),
			newRoster(t, plan("stop:1", "stop:2"), stop), options,
		)
		for range talk.Send(ctx, canister.Text("Go.")) {
		}
		sound(t, talk.History())
		ended := results(talk.History())
		if len(ended) != 2 || ended[0].Parent == "" || ended[1].Code != string(invoker.Canceled) ||
			!strings.Contains(canister.TextOf(ended[1].Content), "It had called tools 1 times; those calls are not undone.") {
			t.Errorf("got %+v", ended)
		}
	}
}

// The result of a tool that has called others does not say that nothing was done, nor that
// the tool can be called again, whatever ends it.
func TestEndAfterCalls(t *testing.T) {
	fails := func(code invoker.Code) func(context.Context) error {
		return func(context.Context) error {
			return &invoker.Failure{Code: code, Message: "Nothing was done.", Retryable: true, Cause: context.Canceled}
		}
	}
	for name, test := range map[string]struct {
		again  func(context.Context) error // the second run of the tool
		forbid bool
		code   invoker.Code
	}{
		"interrupted": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false, invoker.Canceled},
		"timed out":   {fails(invoker.Timeout), false, invoker.Timeout},
		"cancelled":   {fails(invoker.Canceled), false, invoker.Canceled},
		"lost":        {fails(invoker.OutcomeUnknown), false, invoker.OutcomeUnknown},
		"away":        {fails(invoker.Unavailable), false, invoker.Unavailable},
		"gone":        {fails(invoker.ToolNotFound), false, invoker.ToolNotFound},
		"forbidden":   {nil, true, invoker.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var a acts
			starts := readOnly(fn("plan", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
				_, made, err := call.Tools.Result("1", "local__act", json.RawMessage(`{"n":1}`))
				if err != nil || !made {
					return invoker.Output{}, errors.Join(err, call.Tools.Request("1", "local__act", json.RawMessage(`{"n":1}`)))
				}
				if name == "interrupted" {
					cancel()
				}
				return invoker.Output{}, test.again(ctx)
			}))
			options := converse.Options{Forbid: func(_ context.Context, ask converse.Approval) (string, bool) {
				return "Not now.", test.forbid && ask.Tool == "plan" && len(a.made) > 0
			}}
			talk := process(t, history.NewMemory(), newRoster(t, starts, a.tool("act")), options, asks(call("plan", `{}`)), done)
			for _, err := range talk.Send(ctx, canister.Text("Go.")) {
				if err != nil && name != "interrupted" {
					t.Fatal(err)
				}
			}
			a.once(t, 1)
			sound(t, talk.History())
			all := results(talk.History())
			ended := all[len(all)-1]
			text := canister.TextOf(ended.Content)
			if ended.Code != string(test.code) || ended.Retryable || !strings.Contains(text, "It had called tools 1 times; those calls are not undone.") ||
				strings.Contains(text, "changes nothing") || strings.Contains(text, "Nothing was done") || strings.Contains(text, "not started") {
				t.Errorf("the result is %+v", ended)
			}
		})
	}
}

// Without a log, arguments that an approval has changed hold for all runs of a tool.
func TestCallsOfChangedCalls(t *testing.T) {
	var seen []string
	seer := readOnly(fn("plan", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		seen = append(seen, string(call.Arguments))
		_, made, err := call.Tools.Result("1", "local__echo", json.RawMessage(`{}`))
		if made || err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{}, call.Tools.Request("1", "local__echo", json.RawMessage(`{}`))
	}))
	change := func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
		if ask.Tool == "plan" {
			return converse.Change(json.RawMessage(`{"changed":true}`)), nil
		}
		return converse.Allow(), nil
	}
	talk := converse.New(
		conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("plan", `{}`)}}, conversetest.Line{Text: "Done."}),
		newRoster(t, seer, echo("echo")), &converse.Options{Approve: change},
	)
	play(t, talk, "Go.")
	if !slices.Equal(seen, []string{`{"changed":true}`, `{"changed":true}`}) {
		t.Errorf("got %q", seen)
	}
	sound(t, talk.History())
}
