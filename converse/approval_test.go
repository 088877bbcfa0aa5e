// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
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

func TestApproval(t *testing.T) {
	for _, test := range []struct {
		name    string
		approve converse.ApproveFunc
		code    invoker.Code
		text    string
	}{
		{"allow", func(context.Context, converse.Approval) (converse.Decision, error) { return converse.Allow(), nil },
			"", `a {"n":1}`},
		{"deny", func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Deny("not on a Sunday"), nil
		}, invoker.Denied, "not started: not on a Sunday"},
		{"change", func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Change(json.RawMessage(`{"n":2}`)), nil
		}, "", "[The call was approved with changed arguments: {\"n\":2}]\na {\"n\":2}"},
		{"change into nonsense", func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Change(json.RawMessage(`{"n"`)), nil
		}, invoker.Internal, "not started"},
		{"change into an array", func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Change(json.RawMessage(`[2]`)), nil
		}, invoker.Internal, "not started"},
		{"change into nothing", func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Change(nil), nil
		}, invoker.Internal, "not started"},
		{"error", func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Allow(), errors.New("private reason")
		}, invoker.Denied, "no decision was reached"},
		{"panic", func(context.Context, converse.Approval) (converse.Decision, error) { panic("private reason") },
			invoker.Denied, "no decision was reached"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked converse.Approval
			script := conversetest.NewScript(
				conversetest.Line{Calls: []conversetest.Call{call("a", `{"n":1}`)}},
				conversetest.Line{Expect: told(test.text), Text: "ok"},
			)
			talk := converse.New(script, newRoster(t, echo("a")), &converse.Options{
				Approve: func(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
					asked = ask
					return test.approve(ctx, ask)
				},
			})
			events := names(play(t, talk, "Go."))
			played(t, script)
			result := results(talk.History())[0]
			if result.Code != string(test.code) || strings.Contains(canister.TextOf(result.Content), "private") {
				t.Errorf("result = %s %q", result.Code, canister.TextOf(result.Content))
			}
			if started := strings.Contains(events, "InvocationStarted"); started != (test.code == "") {
				t.Errorf("the events are %s", events)
			}
			if asked.Ensemble != "local" || asked.Tool != "a" || string(asked.Arguments) != `{"n":1}` || asked.Definition.Name != "a" || asked.ReadOnly {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

// An approval function that returns ErrSuspended, as from a conversation of its own, has failed
// like any other unless the turn is suspended: it is not asked again and again.
func TestApprovalThatSaysSuspended(t *testing.T) {
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}},
		conversetest.Line{Expect: told("no decision was reached"), Text: "ok"},
	)
	asked := 0
	play(t, converse.New(script, newRoster(t, echo("a")), &converse.Options{
		Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			if asked++; asked > 3 {
				return converse.Deny("it was asked too often"), nil
			}
			return converse.Allow(), fmt.Errorf("asking elsewhere: %w", converse.ErrSuspended)
		},
	}), "Go.")
	played(t, script)
	equal(t, "how often it was asked", asked, 1)
}

// The approval says whether the tool is trusted to change nothing.
func TestApprovalOfAReadOnlyTool(t *testing.T) {
	reading := ensembletest.NewTool("a", nil)
	reading.Def.Hints.ReadOnly = true
	for trust, want := range map[ensemble.Trust]bool{ensemble.TrustReads: true, ensemble.TrustNone: false} {
		roster, err := ensemble.NewRoster(ensemble.New("local", ensembletest.NewSource(reading), &ensemble.Options{Trust: trust}))
		if err != nil {
			t.Fatal(err)
		}
		defer roster.Close(context.Background())
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("a", "{}")}}, conversetest.Line{Text: "ok"})
		play(t, converse.New(script, roster, &converse.Options{
			Approve: func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
				if ask.ReadOnly != want {
					t.Errorf("trust %q: read-only %v", trust, ask.ReadOnly)
				}
				return converse.Allow(), nil
			},
		}), "Go.")
		played(t, script)
	}
}

// A person who does not answer holds up neither the other calls nor the end.
func TestApprovalThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("ask", "{}"), call("a", "{}")}})
		talk := converse.New(script, newRoster(t, echo("a"), echo("ask")), &converse.Options{
			Limits: converse.Limits{Time: time.Minute},
			Approve: func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
				if ask.Tool == "ask" {
					<-answer // heedless of the context
				}
				return converse.Allow(), nil
			},
		})
		if turn := last(t, play(t, talk, "Go.")); turn.Reason != converse.ReasonTime {
			t.Errorf("turn = %+v", turn)
		}
		found := results(talk.History())
		if text := canister.TextOf(found[0].Content); found[0].Code != string(invoker.Canceled) || !strings.Contains(text, "waited for approval") {
			t.Errorf("the first result is %s %q", found[0].Code, text)
		}
		if found[1].Code != "" {
			t.Errorf("the second result is %s", found[1].Code)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := talk.Close(brief); err == nil || !strings.Contains(err.Error(), "not returned: Options.Approve") {
			t.Errorf("Close says %v", err)
		}
		close(answer)
		if err := talk.Close(t.Context()); err != nil {
			t.Errorf("the second Close says %v", err)
		}
	})
}

// The approvals of one message are asked side by side.
func TestApprovalsSideBySide(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("a", "{}"), call("a", "{}")}},
		conversetest.Line{Text: "ok"},
	)
	talk := converse.New(script, newRoster(t, echo("a")), &converse.Options{
		Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			both.Done()
			both.Wait()
			return converse.Allow(), nil
		},
	})
	play(t, talk, "Go.")
	played(t, script)
}

// A server that was replaced earlier in the turn takes no calls: they go to the one that
// replaced it, and that is the one shown.
func TestApprovedAfterAReplacement(t *testing.T) {
	roster := newRoster(t, echo("a"))
	other := fn("a", func(context.Context, *invoker.Call) (invoker.Output, error) { return invoker.Output{}, nil })
	other.Definition().Description = "The new one."
	asked := 0
	talk := converse.New(
		conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("a", `{}`)}},
			conversetest.Line{Calls: []conversetest.Call{call("a", `{}`)}},
			conversetest.Line{Text: "Done."},
		), roster,
		&converse.Options{Approve: func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
			if asked++; asked == 2 && ask.Definition.Description != "The new one." {
				t.Errorf("shown was %q", ask.Definition.Description)
			}
			return converse.Allow(), nil
		}},
	)
	for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := event.(converse.InvocationCompleted); ok && asked == 1 {
			next := ensemble.Local("local", other)
			if err := errors.Join(next.Connect(t.Context()), roster.Replace(next)); err != nil {
				t.Fatal(err)
			}
		} else if ok && done.Result.Code != "" {
			t.Errorf("the second call: %+v", done.Result)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// A call that starts after its server was replaced is judged as one of the new server, though
// one message asked for it and for another call before.
func TestForbiddenAfterAReplacement(t *testing.T) {
	for name, approved := range map[string]bool{"rules alone": false, "rules and approvals": true} {
		t.Run(name, func(t *testing.T) {
			var roster *ensemble.Roster
			made := false
			other := fn("b", func(context.Context, *invoker.Call) (invoker.Output, error) {
				made = true
				return invoker.Output{}, nil
			})
			other.Definition().Description = "The new one."
			roster = newRoster(t, echo("b"), fn("a", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
				next := ensemble.Local("local", other)
				return invoker.Output{}, errors.Join(next.Connect(ctx), roster.Replace(next))
			}))
			opts := &converse.Options{
				Limits: converse.Limits{Parallel: 1},
				Forbid: func(_ context.Context, ask converse.Approval) (string, bool) {
					return "It is new.", ask.Definition.Description == "The new one."
				},
			}
			if approved {
				opts.Approve = func(context.Context, converse.Approval) (converse.Decision, error) { return converse.Allow(), nil }
			}
			talk := converse.New(conversetest.NewScript(
				conversetest.Line{Calls: []conversetest.Call{call("a", `{}`), call("b", `{}`)}},
				conversetest.Line{Text: "Done."},
			), roster, opts)
			turn, err := talk.Ask(t.Context(), canister.Text("Go."))
			if err != nil {
				t.Fatal(err)
			}
			got := results(talk.History())
			if made || len(got) != 2 || got[1].Code != string(invoker.Denied) {
				t.Errorf("made: %v; the results are %+v, after %s", made, got, turn.Reason)
			}
		})
	}
}

// A call that was approved goes to the server that was shown, and to nothing in its place.
func TestApprovedServerReplaced(t *testing.T) {
	roster := newRoster(t, echo("a"))
	ran := false
	other := ensemble.Local("local", fn("a", func(context.Context, *invoker.Call) (invoker.Output, error) {
		ran = true
		return invoker.Output{}, nil
	}))
	talk := converse.New(
		conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("a", `{}`)}}, conversetest.Line{Text: "Done."}), roster,
		&converse.Options{Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Allow(), roster.Replace(other)
		}},
	)
	play(t, talk, "Go.")
	for _, c := range talk.History() {
		if result, ok := c.(canister.Result); ok && (ran || result.Code == "") {
			t.Errorf("the call went to another server: %t, %+v", ran, result)
		}
	}
}
