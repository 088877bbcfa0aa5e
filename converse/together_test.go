// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/agenttool"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/invoker"
)

// A wait that the log does not take ends the work: calls that run are cancelled.
func TestWaitThatWasNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, conflict := range []bool{false, true} {
			log := &logged{Log: history.NewMemory()}
			log.before = func(n int) error {
				if n != 4 { // the user, the model, the intent of the other
					return nil
				}
				if conflict {
					return log.Log.Append(t.Context(), "talk", 4,
						canister.Result{Head: head("r"), Invocation: of[canister.Invocation](t, log, "talk")[1].ID, Code: "CANCELED"})
				}
				return errors.New("the disk is full")
			}
			running := make(chan struct{})
			long := fn("long", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
				close(running)
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
					t.Errorf("conflict %v: the call ran on", conflict)
				}
				return invoker.Output{}, ctx.Err()
			})
			approve := func(_ context.Context, ask converse.Approval) (converse.Decision, error) {
				if ask.Tool == "long" {
					return converse.Allow(), nil
				}
				<-running
				return converse.Defer(0, ""), nil
			}
			talk := process(t, log, newRoster(t, long, echo("act")), converse.Options{Approve: approve}, asks(call("long", `{}`), call("act", `{}`)))
			if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil {
				t.Error("no error")
			}
		}
	})
}

// Of a call that may have been made nobody is told that it was not started.
func TestDoubtAndBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"doubt", "question"} {
			p := policy(budget.Cap{Scope: budget.Conversation, Time: time.Second})
			behind := []canister.Canister{intent(true)}
			if name == "question" {
				behind = append(behind, canister.Wait{
					Head: head("w"), For: canister.WaitElicitation, Invocation: "i1", Deadline: time.Now(), Question: json.RawMessage(`{}`),
				})
			}
			if hold, err := p.Reserve(t.Context(), budget.Need{ID: "x", Time: true, Who: budget.Who{Conversation: "talk"}, Now: time.Now()}); err != nil {
				t.Fatal(err)
			} else if _, err := hold.Settle(t.Context(), budget.Spent{Time: time.Second}); err != nil {
				t.Fatal(err)
			}
			var l ledger
			talk := process(t, put(t, behind...), newRoster(t, idempotent(l.tool("act"))), converse.Options{Budget: p}, done)
			carryOn(t, talk, converse.ReasonBudget)
			r := results(talk.History())
			text := canister.TextOf(r[0].Content)
			if l.count() != 0 || strings.Contains(text, "not started") {
				t.Errorf("%s: the result is %s %q, %d calls", name, r[0].Code, text, l.count())
			}
		}
	})
}

// Nor if it cannot be said for whom somebody is to be asked.
func TestDoubtAndIdentity(t *testing.T) {
	var l ledger
	talk := process(t, put(t, intent(false)), newRoster(t, l.tool("act")),
		converse.Options{AskDoubt: true, Trusted: []invoker.Value{invoker.NewTrusted[func()]("user").Value(nil)}}, done)
	carryOn(t, talk, converse.ReasonAnswered)
	if r := results(talk.History()); r[0].Code != "OUTCOME_UNKNOWN" {
		t.Errorf("the result is %v", r)
	}
}

// An answer to a tool's question holds for the same identity and the same tool.
func TestAnswerToAQuestionIsBound(t *testing.T) {
	for _, test := range []string{"the same", "another identity", "another tool", "a fork"} {
		t.Run(test, func(t *testing.T) {
			got := ""
			tool := fn("act", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
				result, err := c.Ask(ctx, &invoker.ElicitRequest{Message: "Delete all?", Anew: true})
				if err != nil {
					return invoker.Output{}, err
				}
				got += string(result.Action)
				return invoker.Output{}, nil
			})
			asked, approved := 0, 0
			options := converse.Options{
				Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
					asked++
					return nil, converse.Later(0, "")
				},
				Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
					approved++
					return converse.Allow(), nil
				},
				Trusted: []invoker.Value{invoker.NewTrusted[string]("user").Value("ann")},
			}
			store := history.NewMemory()
			play(t, process(t, store, newRoster(t, tool), options, asks(call("act", `{}`))), "Go.")
			answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAccept, Arguments: json.RawMessage(`{}`)})
			want := ""
			switch test {
			case "the same":
				want = "accept"
			case "another identity":
				options.Trusted = []invoker.Value{invoker.NewTrusted[string]("user").Value("mallory")}
			case "another tool":
				tool = redefined(tool)
			case "a fork":
				options.ID = "fork"
				if err := store.Fork(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), "fork"); err != nil {
					t.Fatal(err)
				}
			}
			talk := process(t, store, newRoster(t, tool), options, done)
			turn, err := talk.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got != want || (want == "") != (turn.Reason == converse.ReasonWaiting) || (want == "") != (asked == 2) || (want == "") != (approved == 2) {
				t.Errorf("the tool got %q, want %q; the turn is %s, asked %d, approved %d", got, want, turn.Reason, asked, approved)
			}
		})
	}
}

// What is waited for ends with the result, not with the deadline.
func TestTimeAfterAWaitThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := put(t, canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "i1", Deadline: time.Now().Add(time.Hour)},
			canister.Result{Head: head("r"), Invocation: "i1"})
		time.Sleep(30 * time.Minute)
		talk := process(t, store, nil, converse.Options{Limits: converse.Limits{Time: time.Minute}}, done)
		carryOn(t, talk, converse.ReasonTime)
	})
}

// Who adds an answer is told what who calls Answer is told.
func TestAddOfAnAnswer(t *testing.T) {
	var l ledger
	store := history.NewMemory()
	talk := process(t, store, newRoster(t, l.tool("act")), converse.Options{Approve: defers}, asks(call("act", `{}`)), done)
	wait := last(t, play(t, talk, "Go.")).Waits[0]
	if err := talk.Add(t.Context(), canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "mallory"}); err == nil {
		t.Error("mallory's answer was added")
	}
	if err := talk.Add(t.Context(), canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "dana"}); err != nil {
		t.Error(err)
	}
	carryOn(t, talk, converse.ReasonAnswered)
	if l.count() != 1 {
		t.Errorf("%d calls", l.count())
	}
}

// A conversation as a tool that waits says so, and goes on when it was answered.
func TestToolThatWaits(t *testing.T) {
	var l ledger
	store := history.NewMemory()
	roster := newRoster(t, l.tool("act"))
	id := ""
	tool, err := agenttool.New(func(_ context.Context, i string) (*converse.Conversation, error) {
		id = i
		return process(t, store, roster, converse.Options{ID: i, Approve: defers}, asks(call("act", `{}`)), done), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tool.Close(t.Context())
	say := func(arguments, want string, calls int) {
		out, err := tool.Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(arguments)})
		if text := fmt.Sprintf("%s %v", out.Content, err); !strings.Contains(text, want) || l.count() != calls {
			t.Errorf("%s: got %s, want %s; %d calls", arguments, text, want, l.count())
		}
	}
	say(`{"message":"Go."}`, `"reason":"waiting"`, 0)
	goOn := fmt.Sprintf(`{"conversation":%q}`, id)
	say(goOn, `"reason":"waiting"`, 0)
	answer(t, store, id, canister.Answer{Verdict: canister.VerdictAllow})
	say(goOn, `"reason":"answered"`, 1)
	say(goOn, `"answer":"Done."`, 1)
	say(`{}`, "INVALID_ARGUMENTS", 1)
}

// An answer that is added does not stand behind that of somebody who was faster.
func TestAddOfAnAnswerThatIsLate(t *testing.T) {
	var l ledger
	log := &logged{Log: history.NewMemory()}
	talk := process(t, log, newRoster(t, l.tool("act")), converse.Options{Approve: defers}, asks(call("act", `{}`)), done)
	wait := last(t, play(t, talk, "Go.")).Waits[0]
	log.before = func(int) error {
		log.before = nil
		return waits.Answer(t.Context(), log.Log, "talk", canister.Answer{Wait: wait.ID, Verdict: canister.VerdictDeny, By: "dana"}, time.Now())
	}
	if err := talk.Add(t.Context(), canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "dana"}); err == nil {
		t.Error("the second answer was taken")
	}
	sound(t, settled(of[canister.Canister](t, log, "talk")))
	carryOn(t, talk, converse.ReasonAnswered)
	if l.count() != 0 {
		t.Errorf("%d calls", l.count())
	}
}

// Of a call that somebody else has begun meanwhile, who was too late does not say
// later that it was not started.
func TestZombieWithCallsThatWereNotMade(t *testing.T) {
	for _, doubt := range []bool{false, true} {
		var l ledger
		log := &logged{Log: history.NewMemory()}
		first := 4 // the user, the model, the intent of the first
		log.before = func(n int) error {
			if n != first {
				return nil
			}
			whole := of[canister.Canister](t, log, "talk")
			second := of[canister.Invocation](t, log, "talk")[1]
			return log.Log.Append(t.Context(), "talk", len(whole), canister.Intent{Head: head("t2"), Invocation: second.ID, Attempt: 1, Key: second.ID})
		}
		options := converse.Options{Limits: converse.Limits{Parallel: 1}}
		if doubt {
			options.AskDoubt = true
		}
		talk := process(t, log, newRoster(t, echo("quick"), l.tool("act")), options, asks(call("quick", `{}`), call("act", `{}`)), done)
		var conflict *history.ConflictError
		if _, err := talk.Ask(t.Context(), canister.Text("Go.")); !errors.As(err, &conflict) {
			t.Fatal(err)
		}
		turn, err := talk.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := results(talk.History())
		if canister.TextOf(r[0].Content) != "quick {}" || doubt != (turn.Reason == converse.ReasonWaiting) || !doubt &&
			r[1].Code != "OUTCOME_UNKNOWN" || l.count() != 0 {
			t.Errorf("the turn is %s, the results %v", turn.Reason, r)
		}
	}
}

// Who accepts need not say more.
func TestAcceptedWithoutContent(t *testing.T) {
	got := ""
	tool := fn("act", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
		result, err := c.Ask(ctx, &invoker.ElicitRequest{Message: "Open the page?", URL: "https://example.com/", Anew: true})
		if err == nil {
			got = string(result.Action)
		}
		return invoker.Output{}, err
	})
	options := converse.Options{Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return nil, converse.Later(0, "")
	}}
	store := history.NewMemory()
	talk := process(t, store, newRoster(t, tool), options, asks(call("act", `{}`)), done)
	play(t, talk, "Go.")
	answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAccept})
	if carryOn(t, talk, converse.ReasonAnswered); got != "accept" {
		t.Errorf("the tool is told %q", got)
	}
}

// Nor without a log, which would tell whether earlier work has made it.
func TestDoubtWithoutALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		past := canister.Head{ID: "u", Time: time.Now().Add(-time.Hour)}
		open := []canister.Canister{
			canister.User{Head: past, Content: canister.Texts("Go.")},
			canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
			canister.Invocation{Head: head("i1"), Message: "a", CallID: "c1", Name: "local__act", Arguments: `{"n":1}`},
		}
		for name, options := range map[string]converse.Options{
			"no time left":   {Limits: converse.Limits{Time: 10 * time.Minute}},
			"no budget left": {Budget: policy(budget.Cap{Scope: budget.Conversation, Time: 1})},
		} {
			options.ID, options.History = "talk", open
			var l ledger
			talk := converse.New(conversetest.NewScript(), newRoster(t, l.tool("act")), &options)
			if _, err := talk.Run(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, r := range results(talk.History()) {
				if text := canister.TextOf(r.Content); l.count() != 0 || !strings.Contains(text, "may or may not have taken effect") {
					t.Errorf("%s: the result is %s %q, %d calls", name, r.Code, text, l.count())
				}
			}
			if len(results(talk.History())) != 1 {
				t.Errorf("%s: %v", name, talk.History())
			}
		}
	})
}
