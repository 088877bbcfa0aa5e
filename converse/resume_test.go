// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
)

// lines is the script of a turn with two exchanges that ask for tools.
func lines() []conversetest.Line {
	return []conversetest.Line{
		{Text: "First.", Calls: []conversetest.Call{call("a", `{"n":1}`), call("b", `{"n":2}`), call("nobody", `{}`)}},
		{Calls: []conversetest.Call{call("b", `{"n":3}`)}},
		{Text: "The end."},
	}
}

// through writes a history out and reads it back.
func through(t *testing.T, history []canister.Canister) []canister.Canister {
	t.Helper()
	var file bytes.Buffer
	if err := canister.Encode(&file, history...); err != nil {
		t.Fatal(err)
	}
	var read []canister.Canister
	for c, err := range canister.Decode(&file) {
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, c)
	}
	return read
}

// essence is a history without IDs and times.
func essence(t *testing.T, history []canister.Canister) string {
	t.Helper()
	var text strings.Builder
	for _, c := range history {
		switch c := c.(type) {
		case canister.Invocation:
			fmt.Fprintf(&text, "invocation %s %s\n", c.Name, c.Arguments)
		case canister.Result:
			fmt.Fprintf(&text, "result %s %s\n", c.Code, canister.TextOf(c.Content))
		case canister.Assistant:
			fmt.Fprintf(&text, "assistant %s\n", canister.TextOf(c.Content))
		default:
			fmt.Fprintf(&text, "%s\n", c.Kind())
		}
	}
	return text.String()
}

// A conversation that is put down after every single step, and taken up by
// another one from what was written, comes to the same end.
func TestStoppedAfterEveryStep(t *testing.T) {
	roster := newRoster(t, echo("a"), echo("b"))
	whole := converse.New(conversetest.NewScript(lines()...), roster, nil)
	play(t, whole, "Go.")

	history := []canister.Canister{canister.User{
		Head:    canister.Head{ID: "user", Time: time.Now()},
		Content: canister.Texts("Go."),
	}}
	exchanges, steps := 0, 0
	for {
		talk := converse.New(conversetest.NewScript(lines()[exchanges:]...), roster, &converse.Options{History: through(t, history)})
		if _, done := talk.Next().(converse.Done); done {
			break
		}
		for event, err := range talk.Step(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := event.(converse.ExchangeCompleted); ok {
				exchanges++
			}
		}
		added := len(talk.History()) - len(history)
		if _, ok := talk.History()[len(talk.History())-1].(canister.Result); ok && added != 1 {
			t.Errorf("a step added %d canisters, want one result", added)
		}
		history = talk.History()
		if steps++; steps > 20 {
			t.Fatal("the conversation does not end")
		}
	}
	if got, want := essence(t, history), essence(t, whole.History()); got != want {
		t.Errorf("the history is\n%s, want\n%s", got, want)
	}
	if steps != 7 {
		t.Errorf("it took %d steps, want 3 exchanges and 4 invocations", steps)
	}
	sound(t, history)
}

// The same from every point of the history, continued in one go.
func TestContinuedFromEveryPoint(t *testing.T) {
	roster := newRoster(t, echo("a"), echo("b"))
	whole := converse.New(conversetest.NewScript(lines()...), roster, nil)
	play(t, whole, "Go.")
	for n := 1; n <= len(whole.History()); n++ {
		history := through(t, whole.History()[:n])
		if _, cut := history[n-1].(canister.Assistant); cut && n < len(whole.History()) {
			continue // a message and its invocations enter together
		}
		if _, cut := whole.History()[min(n, len(whole.History())-1)].(canister.Invocation); cut {
			continue
		}
		exchanges := 0
		for _, c := range history {
			if c.Kind() == canister.KindAssistant {
				exchanges++
			}
		}
		script := conversetest.NewScript(lines()[exchanges:]...)
		talk := converse.New(script, roster, &converse.Options{History: history})
		var events []converse.Event
		for event, err := range talk.Continue(t.Context()) {
			if err != nil {
				t.Fatalf("from %d: %v", n, err)
			}
			events = append(events, event)
		}
		played(t, script)
		if got, want := essence(t, talk.History()), essence(t, whole.History()); got != want {
			t.Errorf("from %d the history is\n%s, want\n%s", n, got, want)
		}
		if turn := last(t, events); turn.Text() != "The end." || turn.Exchanges != 3 || turn.Invocations != 4 {
			t.Errorf("from %d the turn is %+v", n, turn)
		}
	}
}

func TestSendAnswersWhatACrashLeftOpen(t *testing.T) {
	whole := converse.New(conversetest.NewScript(lines()...), newRoster(t, echo("a"), echo("b")), nil)
	play(t, whole, "Go.")
	crashed := whole.History()[:6] // user, assistant, three invocations, one result
	script := conversetest.NewScript(conversetest.Line{Expect: told("may or may not have taken effect"), Text: "I see."})
	talk := converse.New(script, nil, &converse.Options{History: crashed})
	play(t, talk, "What happened?")
	played(t, script)
	sound(t, talk.History())
}

func TestBrokenHistoryIsRefused(t *testing.T) {
	history := []canister.Canister{canister.Result{Head: canister.Head{ID: "r"}, Invocation: "nobody"}}
	talk := converse.New(conversetest.NewScript(), nil, &converse.Options{History: history})
	_, err := talk.Ask(t.Context(), canister.Text("Go."))
	if err == nil || !strings.Contains(err.Error(), "sequence.Repair") {
		t.Errorf("err = %v", err)
	}
}

func TestAdd(t *testing.T) {
	script := conversetest.NewScript(conversetest.Line{Expect: func(r *converse.Request) error {
		if len(r.History) != 2 || r.History[0].Kind() != canister.KindDocument {
			return fmt.Errorf("history is %v", r.History)
		}
		return nil
	}, Text: "ok"})
	talk := converse.New(script, nil, nil)
	if err := talk.Add(t.Context(), canister.Document{Title: "Rules", Content: canister.Texts("Be kind.")}); err != nil {
		t.Fatal(err)
	}
	if done, ok := talk.Next().(converse.Done); !ok || done.Reason != converse.ReasonNothing {
		t.Errorf("next = %#v", talk.Next())
	}
	play(t, talk, "Go.")
	played(t, script)
	if err := talk.Add(t.Context(), canister.Result{Invocation: "nobody"}); err == nil {
		t.Error("a result without its invocation was added")
	}
	if err := talk.Add(t.Context(), nil); err == nil {
		t.Error("nil was added")
	}
	if n := len(talk.History()); n != 3 {
		t.Errorf("the history has %d canisters", n)
	}
}

func TestNext(t *testing.T) {
	user := canister.User{Head: canister.Head{ID: "u", Time: time.Unix(100, 0)}}
	asks := canister.Assistant{Head: canister.Head{ID: "m"}, Finish: canister.FinishInvocations, Usage: &canister.Usage{Input: 90, Output: 10}}
	invocation := canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "c"}
	result := canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i"}
	says := func(finish canister.Finish) canister.Assistant {
		return canister.Assistant{Head: canister.Head{ID: "s"}, Finish: finish}
	}
	at := func(c canister.Canister, seconds int64) canister.Canister {
		return canister.WithHead(c, canister.Head{ID: c.Header().ID, Time: time.Unix(seconds, 0)})
	}
	document := canister.Document{Head: canister.Head{ID: "d"}}
	final := converse.Limits{Exchanges: 1, FinalAnswer: true}
	for _, test := range []struct {
		name    string
		limits  converse.Limits
		now     int64
		history []canister.Canister
		want    string
	}{
		{"empty", converse.Limits{}, 0, nil, "Done{nothing}"},
		{"no user", converse.Limits{}, 0, []canister.Canister{document}, "Done{nothing}"},
		{"asked", converse.Limits{}, 0, []canister.Canister{user}, "Exchange{}"},
		{"asked with a document", converse.Limits{}, 0, []canister.Canister{user, document}, "Exchange{}"},
		{"pending", converse.Limits{}, 0, []canister.Canister{user, asks, invocation}, "Invoke{i}"},
		{"result", converse.Limits{}, 0, []canister.Canister{user, asks, invocation, result}, "Exchange{}"},
		{"answered", converse.Limits{}, 0, []canister.Canister{user, says(canister.FinishStop)}, "Done{answered}"},
		{"unknown finish", converse.Limits{}, 0, []canister.Canister{user, says("eos")}, "Done{answered}"},
		{"length", converse.Limits{}, 0, []canister.Canister{user, says(canister.FinishLength)}, "Done{length}"},
		{"filtered", converse.Limits{}, 0, []canister.Canister{user, says(canister.FinishContentFilter)}, "Done{content_filter}"},
		{"refused", converse.Limits{}, 0, []canister.Canister{user, says(canister.FinishRefusal)}, "Done{refusal}"},
		{"document after", converse.Limits{}, 0, []canister.Canister{user, says(canister.FinishStop), document}, "Done{answered}"},
		{"exchange limit", converse.Limits{Exchanges: 1}, 0, []canister.Canister{user, asks, invocation, result}, "Done{exchange_limit}"},
		{"token limit", converse.Limits{Tokens: 100}, 0, []canister.Canister{user, asks, invocation, result}, "Done{token_limit}"},
		{"pending at the limit", converse.Limits{Exchanges: 1}, 0, []canister.Canister{user, asks, invocation}, "Invoke{i}"},
		{"final", final, 0, []canister.Canister{user, asks, invocation, result}, "Exchange{exchange_limit}"},
		{"after final", final, 0, []canister.Canister{user, asks, invocation, result, says(canister.FinishStop)}, "Done{exchange_limit}"},
		{"time limit", converse.Limits{Time: time.Minute}, 160, []canister.Canister{user}, "Done{time_limit}"},
		{"time left", converse.Limits{Time: time.Minute}, 159, []canister.Canister{user}, "Exchange{}"},
		{"queued", converse.Limits{Time: time.Minute}, 1029, []canister.Canister{user, at(says(canister.FinishStop), 1000), at(user, 105)}, "Exchange{}"},
		{"queued, too late", converse.Limits{Time: time.Minute}, 1060, []canister.Canister{user, at(says(canister.FinishStop), 1000), at(user, 105)}, "Done{time_limit}"},
		{"answered in time", converse.Limits{Time: time.Minute}, 999, []canister.Canister{user, says(canister.FinishStop)}, "Done{answered}"},
		{
			"next turn", converse.Limits{Exchanges: 1}, 0,
			[]canister.Canister{user, asks, invocation, result, canister.User{Head: canister.Head{ID: "v"}}}, "Exchange{}",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := slices.Clone(test.history)
			got := ""
			switch command := converse.Next(test.history, converse.Policy{Limits: test.limits}, time.Unix(test.now, 0)).(type) {
			case converse.Done:
				got = fmt.Sprintf("Done{%s}", command.Reason)
			case converse.Exchange:
				got = fmt.Sprintf("Exchange{%s}", command.Limited)
			case converse.Invoke:
				got = fmt.Sprintf("Invoke{%s}", command.Pending[0].ID)
			}
			if got != test.want {
				t.Errorf("next is %s, want %s", got, test.want)
			}
			if len(before) != len(test.history) {
				t.Error("the history was changed")
			}
		})
	}
}

// A message that was queued behind another turn has the whole time of a turn.
func TestTimeBeginsAfterTheTurnBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, sent := history.NewMemory(), time.Now()
		time.Sleep(119 * time.Second)
		if err := store.Append(t.Context(), "talk", 0,
			canister.User{Head: canister.Head{ID: "u0", Time: sent}, Content: canister.Texts("Hi.")},
			canister.Assistant{Head: canister.Head{ID: "a0", Time: time.Now()}, Finish: canister.FinishStop},
			canister.User{Head: canister.Head{ID: "u", Time: sent}, Content: canister.Texts("Go.")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Second)
		talk := process(t, store, nil, converse.Options{Limits: converse.Limits{Time: 2 * time.Minute}}, done)
		carryOn(t, talk, converse.ReasonAnswered)
	})
}
