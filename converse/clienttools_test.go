// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
)

// bring is a message with tools of the client.
func bring(names ...string) canister.User {
	var tools []clienttools.Tool
	for _, name := range names {
		schema := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
		tools = append(tools, clienttools.Tool{Name: name, Description: "Of the client.", Parameters: json.RawMessage(schema)})
	}
	user := canister.User{Content: canister.Texts("Go.")}
	user.Metadata = clienttools.With(nil, tools)
	return user
}

// brought begins a turn with tools of the client.
func brought(t *testing.T, talk *converse.Conversation, names ...string) {
	t.Helper()
	if err := talk.Add(t.Context(), bring(names...)); err != nil {
		t.Fatal(err)
	}
}

func byClient(name, arguments string) conversetest.Call {
	return conversetest.Call{Name: name, Arguments: arguments}
}

// A turn with calls of both kinds waits for the client and for an approval, and another process
// goes on with the answers. The client's call is neither approved nor made here.
func TestToolsOfTheClient(t *testing.T) {
	var l ledger
	store, records := history.NewMemory(), &recorder{}
	options := converse.Options{
		Approve: defers, Audit: audit.New(records, nil), Limits: converse.Limits{ResultBytes: 200},
		Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "[redacted]") },
	}
	roster := newRoster(t, l.tool("act"), echo("other"))
	line := asks(call("other", `{"n":0}`), byClient("pick", `{"n":1}`), call("act", `{"n":2}`), byClient("show", `{"n":3}`))
	line.Expect = offers("local__act", "local__other", "pick", "show")
	first := process(t, store, roster, options, line)
	brought(t, first, "pick", "show")
	turn := carryOn(t, first, converse.ReasonWaiting)
	if len(turn.Waits) != 3 || len(results(first.History())) != 1 || l.count() != 0 || len(of[canister.Intent](t, store, "talk")) != 1 {
		t.Fatalf("it waits for %v, with %v", turn.Waits, first.History())
	}
	for _, wait := range turn.Waits {
		answer := canister.Answer{Wait: wait.ID, By: "dana", Verdict: canister.VerdictAllow}
		if clienttools.IsCall(wait) {
			answer.Verdict, answer.Content = canister.VerdictAccept, canister.Texts("secret "+wait.Arguments+strings.Repeat("x", 300))
			if strings.Contains(wait.Arguments, "3") {
				answer.Content, answer.Arguments = nil, json.RawMessage(`{"result":"shown"}`)
			}
		}
		if err := waits.Answer(t.Context(), store, "talk", answer, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	last := done
	last.Expect = offers("local__act", "local__other", "pick", "show")
	second := process(t, store, roster, options, last)
	carryOn(t, second, converse.ReasonAnswered)
	sound(t, second.History())
	got := results(canister.Messages(second.History()))
	text := canister.TextOf(got[1].Content)
	if !strings.HasPrefix(text, `[redacted] {"n":1}`) || len(text) > 300 || canister.TextOf(got[3].Content) != "shown" || l.count() != 1 {
		t.Errorf("the results are %v; %d effects", got, l.count())
	}
	if r := records.of(t, got[3].Invocation); r.Ensemble != "(client)" || r.Tool != "show" || r.By != "dana" || r.Code != "OK" {
		t.Errorf("the record is %+v", r)
	}
	if intents := of[canister.Intent](t, store, "talk"); len(intents) != 2 {
		t.Errorf("the intents are %v", intents)
	}
}

// What the client answers, or does not, is what the model is told.
func TestResultsOfTheClient(t *testing.T) {
	for _, c := range []struct {
		name, arguments string
		answer          *canister.Answer
		code, text      string
		waits           int
	}{
		{"wrong arguments", `{"n":"x"}`, nil, "INVALID_ARGUMENTS", "input schema", 0},
		{"no JSON", `{"n":`, nil, "INVALID_ARGUMENTS", "not valid JSON", 0},
		{"nothing in time", `{"n":1}`, nil, "TIMEOUT", "may or may not", 1},
		{"failed", `{"n":1}`, &canister.Answer{Verdict: canister.VerdictDecline, Content: canister.Texts("no light")}, "EXECUTION_FAILED", "no light", 1},
		{"declined", `{"n":1}`, &canister.Answer{Verdict: canister.VerdictDecline, Reason: "not now"}, "DENIED", "not now", 1},
		{"cancelled", `{"n":1}`, &canister.Answer{Verdict: canister.VerdictCancel}, "CANCELED", "may or may not", 1},
		{"empty", `{"n":1}`, &canister.Answer{Verdict: canister.VerdictAccept}, "", "", 1},
		{"an object", `{"n":1}`, &canister.Answer{Verdict: canister.VerdictAccept, Arguments: json.RawMessage(`{"a":1}`)}, "", `{"a":1}`, 1},
		{"a list", `{"n":1}`, &canister.Answer{Verdict: canister.VerdictAccept, Arguments: json.RawMessage(`{"result":[1]}`)}, "", `[1]`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := history.NewMemory()
				talk := process(t, store, nil, converse.Options{}, asks(byClient("pick", c.arguments)), done)
				brought(t, talk, "pick")
				if c.waits > 0 {
					turn := carryOn(t, talk, converse.ReasonWaiting)
					if a := c.answer; a != nil {
						a.Wait, a.By = turn.Waits[0].ID, "dana"
						if err := waits.Answer(t.Context(), store, "talk", *a, time.Now()); err != nil {
							t.Fatal(err)
						}
					} else {
						time.Sleep(25 * time.Hour)
					}
				}
				carryOn(t, talk, converse.ReasonAnswered)
				got := results(talk.History())[0]
				if got.Code != c.code || !strings.Contains(canister.TextOf(got.Content), c.text) || len(of[canister.Wait](t, store, "talk")) != c.waits {
					t.Errorf("the result is %+v", got)
				}
			})
		})
	}
}

// In a fork the client is asked again; in a turn that is cancelled, or continued without the
// client, its calls have results that do not promise anything.
func TestLeavingCallsOfTheClient(t *testing.T) {
	store := history.NewMemory()
	talk := process(t, store, nil, converse.Options{}, asks(byClient("pick", `{"n":1}`)), done)
	brought(t, talk, "pick")
	asked := carryOn(t, talk, converse.ReasonWaiting).Waits[0]
	for _, id := range []string{"fork", "cancelled"} {
		if err := store.Fork(t.Context(), "talk", talk.Length(), id); err != nil {
			t.Fatal(err)
		}
	}
	fork := process(t, store, nil, converse.Options{ID: "fork"}, done)
	again := carryOn(t, fork, converse.ReasonWaiting).Waits
	if len(again) != 1 || again[0].ID == asked.ID || again[0].Invocation != asked.Invocation {
		t.Errorf("the fork waits for %v", again)
	}
	if err := engine.Interrupt(t.Context(), store, "cancelled", time.Now()); err != nil {
		t.Fatal(err)
	}
	play(t, talk, "And now?")
	for _, id := range []string{"cancelled", "talk"} {
		got := of[canister.Result](t, store, id)
		if len(got) != 1 || got[0].Code != "CANCELED" || !strings.Contains(canister.TextOf(got[0].Content), "may or may not have taken effect") {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// The tools of the client come after those of the servers, before those that servers add during
// the turn, in every process, and count among those that a model takes. They last one turn.
func TestPlacesOfTheClientsTools(t *testing.T) {
	source := ensembletest.NewSource()
	source.SetLibrary(local.Library{})
	var first invoker.Invoker
	first = fn("first", func(context.Context, *invoker.Call) (invoker.Output, error) {
		source.SetTools(first, echo("new"))
		return invoker.Output{}, nil
	})
	source.SetTools(first)
	roster, store := rosterOf(t, ensemble.New("server", source, nil)), history.NewMemory()
	lines := []conversetest.Line{
		asks(conversetest.Call{Name: "server__first", Arguments: "{}"}), asks(byClient("pick", `{"n":1}`)),
		asks(conversetest.Call{Name: "server__new", Arguments: "{}"}), done,
	}
	lines[0].Expect = offers("server__first", "pick")
	for i := range lines[1:] {
		lines[i+1].Expect = offers("server__first", "pick", "server__new")
	}
	talk := process(t, store, roster, converse.Options{}, lines[:2]...)
	brought(t, talk, "pick")
	wait := carryOn(t, talk, converse.ReasonWaiting).Waits[0]
	talk = process(t, store, roster, converse.Options{}, lines[2:]...)
	answered := canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAccept, By: "dana"}
	if err := waits.Answer(t.Context(), store, "talk", answered, time.Now()); err != nil {
		t.Fatal(err)
	}
	carryOn(t, talk, converse.ReasonAnswered)
	next := done
	next.Expect = offers("server__first", "server__new")
	play(t, process(t, store, roster, converse.Options{}, next), "More.")

	few := done
	few.Expect = offers("pick", "show")
	small := process(t, history.NewMemory(), roster, converse.Options{Limits: converse.Limits{Tools: 2}}, few)
	brought(t, small, "pick", "show", "third")
	for event, err := range small.Continue(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if started, is := event.(converse.TurnStarted); is && len(started.Aside) != 3 {
			t.Errorf("set aside: %v", started.Aside)
		}
	}
}

// A program of the model cannot call the client's tools.
func TestProgramsHaveNoClient(t *testing.T) {
	var offered []*invoker.Definition
	program := readOnly(fn("program", func(_ context.Context, c *invoker.Call) (invoker.Output, error) {
		if offered == nil {
			offered = c.Tools.Offered()
		}
		if _, made, err := c.Tools.Result("1", "pick", json.RawMessage(`{"n":1}`)); made || err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{}, c.Tools.Request("1", "pick", json.RawMessage(`{"n":1}`))
	}))
	store := history.NewMemory()
	talk := process(t, store, newRoster(t, program), converse.Options{}, asks(call("program", "{}")), done)
	brought(t, talk, "pick")
	carryOn(t, talk, converse.ReasonAnswered)
	if got := results(talk.History()); len(got) != 2 || got[0].Code != "TOOL_NOT_FOUND" || len(offered) != 1 {
		t.Errorf("offered %v, results %v", offered, got)
	}
}
