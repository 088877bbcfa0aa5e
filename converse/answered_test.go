// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/redact"
	"github.com/consort-go/consort/invoker"
)

// An answer that is too long, or could not be written down, is an error for the one
// who gives it, and another one can be given.
func TestAnswerIsBounded(t *testing.T) {
	most := waits.MaxAnswer
	long := json.RawMessage(`{"a":"` + strings.Repeat("x", most) + `"}`)
	for _, test := range []struct {
		wait   canister.WaitFor
		answer canister.Answer
		want   string
	}{
		{canister.WaitApproval, canister.Answer{Verdict: canister.VerdictDeny, Reason: strings.Repeat("x", most)}, "at most 1048576 are allowed"},
		{canister.WaitApproval, canister.Answer{Verdict: canister.VerdictChange, Arguments: long}, "at most 1048576 are allowed"},
		{canister.WaitElicitation, canister.Answer{Verdict: canister.VerdictAccept, Arguments: long}, "at most 1048576 are allowed"},
		{
			canister.WaitOutcome, canister.Answer{
				Verdict: canister.VerdictDone, Content: canister.Texts(strings.Repeat("x", most)),
			}, "at most 1048576 are allowed",
		},
		{canister.WaitOutcome, canister.Answer{Verdict: canister.VerdictDone, Content: []canister.Content{nil}}, "cannot be stored"},
		{canister.WaitOutcome, canister.Answer{Verdict: canister.VerdictDone, Content: canister.Texts(strings.Repeat("x", most-1000))}, ""},
	} {
		wait := canister.Wait{Head: head("w"), For: test.wait, Invocation: "i1", Conversation: "talk", Deadline: time.Now().Add(time.Hour)}
		test.answer.Wait, test.answer.By = "w", "dana"
		given := map[string]func(log *history.Memory) error{
			"Answer": func(log *history.Memory) error {
				return waits.Answer(t.Context(), log, "talk", test.answer, time.Now())
			},
			"Add": func(log *history.Memory) error {
				return process(t, log, nil, converse.Options{}).Add(t.Context(), test.answer)
			},
		}
		for name, give := range given {
			store := put(t, intent(true), wait)
			err := give(store)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 500) {
				t.Errorf("%s of %s: %.500v, want %s", name, test.answer.Verdict, err, test.want)
			}
			if answers := len(of[canister.Answer](t, store, "talk")); (answers == 1) != (test.want == "") {
				t.Errorf("%s of %s: %d answers", name, test.answer.Verdict, answers)
			}
		}
	}
}

// An answer that says itself that it came too late would hold for nobody, and would
// leave nothing to be answered: it is refused, and another one can be given.
func TestAnswerWithATime(t *testing.T) {
	now := time.Now()
	deadline := now.Add(time.Hour)
	wait := canister.Wait{
		Head: canister.Head{ID: "w", Time: now.Add(-time.Hour)}, For: canister.WaitApproval, Invocation: "i1", Conversation: "talk", Deadline: deadline,
	}
	for at, want := range map[time.Time]string{
		deadline.Add(time.Minute): "the deadline of the wait w is", deadline: "the deadline", deadline.Add(-1): "",
		now.Add(-3 * time.Hour): "has expired", now.Add(-time.Hour): "",
	} {
		store := put(t, wait)
		answer := canister.Answer{Head: canister.Head{Time: at}, Wait: "w", By: "dana", Verdict: canister.VerdictAllow}
		err := waits.Answer(t.Context(), store, "talk", answer, time.Now())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("at %v: %v, want %s", at, err, want)
		}
		answer.Time = time.Time{}
		if err := waits.Answer(t.Context(), store, "talk", answer, time.Now()); (err == nil) != (want != "") {
			t.Errorf("another one: %v", err)
		}
	}
}

// An answer with the ID of another canister is refused: with two canisters of one
// identity the conversation could not be read again. The canister may be far before the
// end, and may be the answer to another wait.
func TestAnswerWithATakenIdentity(t *testing.T) {
	wait := func(id string) canister.Wait {
		return canister.Wait{Head: head(id), For: canister.WaitApproval, Invocation: "i1", Conversation: "talk", Deadline: time.Now().Add(time.Hour)}
	}
	store := history.NewMemory()
	long := []canister.Canister{canister.Supervisor{Head: head("first"), Content: canister.Texts("Be brief.")}}
	for n := range 200 {
		long = append(long, canister.Document{Head: head(fmt.Sprint("d", n)), Content: canister.Texts("material")})
	}
	long = append(long,
		canister.User{Head: head("u"), Content: canister.Texts("Go.")},
		canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i1"), Message: "a", CallID: "c1", Name: "local__act", Arguments: `{"n":1}`},
		wait("w1"), wait("w2"))
	if err := store.Append(t.Context(), "talk", 0, long...); err != nil {
		t.Fatal(err)
	}
	give := func(id, wait string) error {
		answer := canister.Answer{Head: canister.Head{ID: id}, Wait: wait, By: "dana", Verdict: canister.VerdictAllow}
		return waits.Answer(t.Context(), store, "talk", answer, time.Now())
	}
	for _, taken := range []string{"first", "d7", "i1", "w1"} {
		if err := give(taken, "w1"); err == nil || !strings.Contains(err.Error(), "CONFLICT") {
			t.Errorf("with the identity %s: %v", taken, err)
		}
	}
	for range 2 { // the same answer again
		if err := give("mine", "w1"); err != nil {
			t.Error(err)
		}
	}
	if err := give("mine", "w2"); err == nil {
		t.Error("two answers have one identity")
	}
	var l ledger
	carryOn(t, process(t, store, newRoster(t, l.tool("act")), converse.Options{}), converse.ReasonWaiting)
	if answers := of[canister.Answer](t, store, "talk"); len(answers) != 1 {
		t.Errorf("the answers are %v", answers)
	}
}

// What an approval changes the arguments to is bounded, and so is the result that
// tells of it.
func TestChangedArgumentsAreBounded(t *testing.T) {
	for _, test := range []struct {
		size, limit int // of the arguments and the result
		want        string
		most        int
	}{
		{waits.MaxAnswer, 1000, "INTERNAL", 1000},
		{3000, 1000, "", 1200},
		{3000, 60, "", 400}, // where the lines that say so are longer
		{3000, -1, "", 4000},
	} {
		calls := 0
		tool := fn("act", func(context.Context, *invoker.Call) (invoker.Output, error) {
			calls++
			return invoker.Output{Content: canister.Texts(strings.Repeat("effect ", 100))}, nil
		})
		options := converse.Options{
			Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
				return converse.Change(json.RawMessage(`{"a":"` + strings.Repeat("x", test.size) + `"}`)), nil
			},
			Limits: converse.Limits{ResultBytes: test.limit},
		}
		talk := process(t, history.NewMemory(), newRoster(t, tool), options, asks(call("act", `{}`)), done)
		play(t, talk, "Go.")
		r := results(talk.History())[0]
		if r.Code != test.want || (calls == 1) != (test.want == "") {
			t.Errorf("the result is %.300v; %d calls", r, calls)
		}
		text := canister.TextOf(r.Content)
		if len(text) > test.most || test.want == "" && (!strings.Contains(text, "[The call was ") || strings.Contains(text, "[cut: ") == (test.limit < 0)) {
			t.Errorf("the result has %d bytes: %s", len(text), text)
		}
		if test.want == "" && test.limit != 60 && !strings.Contains(text, "effect") {
			t.Errorf("the result is %s", text)
		}
	}
}

// What is secret in an answer is not told to the model.
func TestAnswersAreRedacted(t *testing.T) {
	token := "swordfish-swordfish"
	words := secret + " " + token
	for _, test := range []struct {
		answer canister.Answer
		doubt  bool
	}{
		{answer: canister.Answer{Verdict: canister.VerdictDeny, Reason: words, By: words}},
		{answer: canister.Answer{Verdict: canister.VerdictChange, Arguments: json.RawMessage(`{"token":"` + token + `"}`)}},
		{answer: canister.Answer{Verdict: canister.VerdictDone, Content: canister.Texts(words)}, doubt: true},
		{answer: canister.Answer{Verdict: canister.VerdictUnknown, Reason: words, By: words}, doubt: true},
	} {
		behind := []canister.Canister{}
		if test.doubt {
			behind = append(behind, intent(false))
		}
		options := converse.Options{AskDoubt: true, Redact: redact.New(secret), Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Defer(0, ""), nil
		}, Trusted: []invoker.Value{invoker.TrustedJSON("token", json.RawMessage(`"`+token+`"`)).Secret()}}
		store, roster := put(t, behind...), newRoster(t, echo("act"))
		carryOn(t, process(t, store, roster, options), converse.ReasonWaiting)
		answer(t, store, "talk", test.answer)
		talk := process(t, store, roster, options, done)
		carryOn(t, talk, converse.ReasonAnswered)
		if intents := of[canister.Intent](t, store, "talk"); test.answer.Verdict == canister.VerdictChange &&
			intents[0].Arguments != string(test.answer.Arguments) {
			t.Errorf("the intent is %+v", intents[0]) // the log has that anyway
		}
		r := results(talk.History())[0]
		if text := canister.TextOf(r.Content); strings.Contains(text, "hunter2") || strings.Contains(text, "swordfish") || !strings.Contains(text, "[secret]") {
			t.Errorf("%s: the model is told %q", test.answer.Verdict, text)
		}
	}
}

// What is secret in arguments that were changed at once is not in the log, so that
// the call is not made again from there.
func TestChangedArgumentsAreRedacted(t *testing.T) {
	for _, doubt := range []bool{false, true} {
		var l ledger
		options := converse.Options{AskDoubt: doubt, Redact: redact.New(secret), Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Change(json.RawMessage(`{"key":"hunter2-\"hunter2\""}`)), nil
		}}
		store := cutOff(t, &l, options)
		if args := of[canister.Intent](t, store, "talk")[0].Arguments; !strings.Contains(l.calls[0], "hunter2") ||
			strings.Contains(args, "hunter2") || !strings.Contains(args, "[secret]") {
			t.Errorf("the intent has %s, the call %q", args, l.calls)
		}
		roster := newRoster(t, idempotent(l.tool("act")))
		if doubt {
			if _, err := process(t, store, roster, options).Run(asUser(t, "ann")); err != nil {
				t.Fatal(err)
			}
			answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
		}
		heir := process(t, store, roster, options, done)
		if _, err := heir.Run(asUser(t, "ann")); err != nil {
			t.Fatal(err)
		}
		if r := results(heir.History()); r[0].Code != "OUTCOME_UNKNOWN" || l.count() != 1 {
			t.Errorf("the results are %v; the calls %q", r, l.calls)
		}
	}
}

// Nor does a question that is answered later bring them there.
func TestChangedArgumentsOfAQuestion(t *testing.T) {
	tool := fn("act", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
		result, err := c.Ask(ctx, &invoker.ElicitRequest{Message: "Size?", Anew: true})
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(string(result.Action))}, nil
	})
	options := converse.Options{
		Redact: redact.New(secret),
		Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Change(json.RawMessage(`{"key":"hunter2-\"hunter2\""}`)), nil
		},
		Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return nil, converse.Later(0, "")
		},
	}
	store := history.NewMemory()
	talk := process(t, store, newRoster(t, tool), options, asks(call("act", `{}`)), done)
	play(t, talk, "Go.")
	leaks := slices.ContainsFunc(talk.History(), func(c canister.Canister) bool {
		line, err := canister.Marshal(c)
		return err != nil || strings.Contains(string(line), "hunter2")
	})
	if r := results(talk.History()); leaks || len(r) != 1 || !strings.Contains(canister.TextOf(r[0].Content), "cancel") {
		t.Errorf("the results are %v; the log leaks %v", r, leaks)
	}
}
