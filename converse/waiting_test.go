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
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/invoker/telemetry"
)

// defers puts off every decision about the tool act, for dana.
func defers(_ context.Context, ask converse.Approval) (converse.Decision, error) {
	if ask.Tool == "act" {
		return converse.Defer(0, "dana"), nil
	}
	return converse.Allow(), nil
}

// answer answers the only wait of a conversation.
func answer(t testing.TB, store history.Log, id string, a canister.Answer) {
	t.Helper()
	var all []canister.Canister
	for c, err := range store.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	found := waits.Open("", all, time.Now())
	if len(found) != 1 {
		t.Fatalf("it waits for %v", found)
	}
	a.Wait = found[0].ID
	if a.By == "" {
		a.By = "dana"
	}
	if err := waits.Answer(t.Context(), store, id, a, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// An approval is waited for 6 hours, in which there is no process and nothing in
// memory; of the other calls of the message nothing is lost. A refusal of one
// loses nothing of the others either.
func TestApprovalOutlivesEverything(t *testing.T) {
	for _, verdict := range []canister.Verdict{canister.VerdictAllow, canister.VerdictDeny, canister.VerdictChange} {
		t.Run(string(verdict), func(t *testing.T) {
			folder := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var l ledger
				records := &recorder{}
				open := func() (*files.Store, converse.Options, *ensemble.Roster) {
					store, err := files.Open(folder, nil)
					if err != nil {
						t.Fatal(err)
					}
					return store, converse.Options{Approve: defers, Audit: audit.New(records, nil)}, newRoster(t, l.tool("act"), echo("other"))
				}
				store, options, roster := open()
				talk := process(t, store, roster, options, asks(call("other", `{"n":0}`), call("act", `{"n":1}`), call("other", `{"n":2}`)))
				events := play(t, talk, "Go.")
				turn := last(t, events)
				if turn.Reason != converse.ReasonWaiting || len(turn.Waits) != 1 || len(results(talk.History())) != 2 || l.count() != 0 {
					t.Fatalf("the turn is %+v; %d effects", turn, l.count())
				}
				if w := turn.Waits[0]; w.Who != "dana" || w.Arguments != `{"n":1}` || w.Identity == "" || w.Fingerprint == "" ||
					w.Conversation != "talk" || w.Deadline.Sub(w.Time) != 24*time.Hour {
					t.Errorf("it waits for %+v", w)
				}
				if !strings.Contains(names(events), "WaitStarted") {
					t.Errorf("the events are %s", names(events))
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(6 * time.Hour)
				store, options, roster = open()
				defer store.Close()
				answer(t, store, "talk", canister.Answer{Verdict: verdict, Reason: "as agreed", Arguments: changedIf(verdict)})
				talk = process(t, store, roster, options, done)
				names := ""
				for event, err := range talk.Continue(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					names += fmt.Sprintf("%T ", event)
				}
				if !strings.Contains(names, "WaitEnded") {
					t.Errorf("the events are %s", names)
				}
				sound(t, talk.History())
				judgeApproval(t, verdict, &l, results(talk.History())[2], records, of[canister.Intent](t, store, "talk"), turn.Waits[0].ID)
			})
		})
	}
}

func changedIf(verdict canister.Verdict) json.RawMessage {
	if verdict == canister.VerdictChange {
		return json.RawMessage(`{"n":9}`)
	}
	return nil
}

func judgeApproval(t *testing.T, verdict canister.Verdict, l *ledger, result canister.Result, records *recorder, intents []canister.Intent, wait string) {
	t.Helper()
	record := records.of(t, result.Invocation)
	if record.By != "dana" {
		t.Errorf("the audit says %+v", record)
	}
	text := canister.TextOf(result.Content)
	switch verdict {
	case canister.VerdictDeny:
		if result.Code != "DENIED" || !strings.Contains(text, "dana") || !strings.Contains(text, "as agreed") || l.count() != 0 {
			t.Errorf("the result is %v; %d effects", result, l.count())
		}
		return
	case canister.VerdictChange:
		if !strings.Contains(text, `changed arguments: {"n":9}`) || string(record.Approved) != `{"n":9}` {
			t.Errorf("the result is %q, the record %+v", text, record)
		}
	}
	intent := intents[len(intents)-1]
	want := intent.Key + ` {"n":1}`
	if verdict == canister.VerdictChange {
		want = intent.Key + ` {"n":9}`
	}
	if !slices.Equal(l.calls, []string{want}) || intent.Wait != wait {
		t.Errorf("the calls are %q, the intent %+v", l.calls, intent)
	}
}

// recorder keeps records of an audit.
type recorder struct {
	mu      sync.Mutex
	records []audit.Record
}

func (r *recorder) Record(_ context.Context, record *audit.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, *record)
	return nil
}

func (r *recorder) of(t *testing.T, invocation string) audit.Record {
	t.Helper()
	for _, record := range r.records {
		if record.Invocation == invocation {
			return record
		}
	}
	t.Fatalf("there is no record of %s in %v", invocation, r.records)
	return audit.Record{}
}

// redefined is an invoker of another definition.
func redefined(i invoker.Invoker) invoker.Invoker {
	i.Definition().Description = "Does more than before."
	return i
}

// An approval lets one call be made, of the same conversation, identity, tool and
// arguments; otherwise it is asked for again, or denied if nobody is to be asked.
func TestApprovalIsBound(t *testing.T) {
	user := func(name string) context.Context {
		token, _ := json.Marshal(time.Now()) // another one each time
		return invoker.WithTrusted(t.Context(), invoker.TrustedJSON("user", json.RawMessage(`"`+name+`"`)), invoker.TrustedJSON("token", token))
	}
	for _, test := range []struct {
		name string
		act  func(invoker.Invoker) invoker.Invoker
		user string
		fork string
		edit func(*canister.Wait)
		used bool
		good bool
	}{
		{name: "the same", good: true},
		{name: "another tool", act: redefined},
		{name: "another identity", user: "mallory"},
		{name: "a fork", fork: "fork"},
		{name: "other arguments", edit: func(w *canister.Wait) { w.Arguments = `{"n":2}` }},
		{name: "used up", used: true},
	} {
		for _, nobody := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, nobody to ask %v", test.name, nobody), func(t *testing.T) {
				var l ledger
				id := "talk"
				options := converse.Options{Approve: defers, Identity: []string{"user"}}
				store := history.NewMemory()
				talk := process(t, store, newRoster(t, l.tool("act")), options, asks(call("act", `{"n":1}`), call("act", `{"n":1}`)))
				if turn, err := talk.Ask(user("ann"), canister.Text("Go.")); err != nil || turn.Reason != converse.ReasonWaiting {
					t.Fatal(turn, err)
				}
				store = onlyFirst(t, store, test.edit, test.used)
				answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
				if test.fork != "" {
					id = test.fork
					if err := store.Fork(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), id); err != nil {
						t.Fatal(err)
					}
				}
				tool := l.tool("act")
				if test.act != nil {
					tool = test.act(tool)
				}
				if options.ID = id; nobody {
					options.Approve = nil
				}
				who := "ann"
				if test.user != "" {
					who = test.user
				}
				talk = process(t, store, newRoster(t, tool), options, done)
				turn, err := talk.Run(user(who))
				if err != nil {
					t.Fatal(err)
				}
				want, calls := converse.ReasonWaiting, 0
				if nobody || test.good {
					want = converse.ReasonAnswered
				}
				if test.good {
					calls = 1
				}
				if turn.Reason != want || l.count() != calls {
					t.Errorf("the turn ends as %s, want %s; %d calls", turn.Reason, want, l.count())
				}
				if r := results(talk.History()); nobody && !test.good && r[len(r)-1].Code != "DENIED" {
					t.Errorf("the results are %v", r)
				}
			})
		}
	}
}

// onlyFirst is a store whose conversation lacks the wait of the second call, which
// has a result instead. The wait is edited, or was used up by that call.
func onlyFirst(t *testing.T, from history.Log, edit func(*canister.Wait), used bool) *history.Memory {
	store := history.NewMemory()
	var whole []canister.Canister
	var second string
	for _, c := range of[canister.Canister](t, from, "talk") {
		switch held := c.(type) {
		case canister.Invocation:
			second = held.ID
		case canister.Wait:
			if held.Invocation == second {
				continue
			}
			if edit != nil {
				edit(&held)
			}
			c = held
		}
		whole = append(whole, c)
	}
	if used {
		wait := whole[len(whole)-1].(canister.Wait)
		whole = append(whole, canister.Intent{Head: head("t"), Invocation: second, Attempt: 1, Key: second, Wait: wait.ID})
	}
	whole = append(whole, canister.Result{Head: head("r"), Invocation: second})
	if err := store.Append(t.Context(), "talk", 0, whole...); err != nil {
		t.Fatal(err)
	}
	return store
}

// Nobody may answer but the one who was asked, in time, once, and with what
// answers the question.
func TestWhoMayAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		store := history.NewMemory()
		roster := newRoster(t, l.tool("act"))
		options := converse.Options{Approve: defers}
		talk := process(t, store, roster, options, asks(call("act", `{}`)))
		wait := last(t, play(t, talk, "Go.")).Waits[0]
		give := func(a canister.Answer) error {
			a.Wait = wait.ID
			return waits.Answer(t.Context(), store, "talk", a, time.Now())
		}
		for _, wrong := range []canister.Answer{
			{Verdict: canister.VerdictAllow, By: "mallory"},
			{Verdict: canister.VerdictAllow},
			{Verdict: canister.VerdictDone, By: "dana"},
			{Verdict: canister.VerdictChange, By: "dana", Arguments: json.RawMessage(`[]`)},
		} {
			if err := give(wrong); err == nil {
				t.Errorf("%v was taken", wrong)
			}
		}
		// One that went past Answer into the log does not count either.
		forged := canister.Answer{Head: head("forged"), Wait: wait.ID, Verdict: canister.VerdictAllow, By: "mallory"}
		kept := history.NewMemory()
		if err := kept.Append(t.Context(), "talk", 0, talk.History()...); err != nil {
			t.Fatal(err)
		}
		if err := store.Append(t.Context(), "talk", 4, forged); err != nil {
			t.Fatal(err)
		}
		talk = process(t, store, roster, options, done)
		carryOn(t, talk, converse.ReasonAnswered)
		if r := results(talk.History()); r[0].Code != "DENIED" || l.count() != 0 {
			t.Errorf("the result is %v; %d calls", r, l.count())
		}
		time.Sleep(25 * time.Hour)
		if err := waits.Answer(t.Context(), kept, "talk",
			canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "dana"}, time.Now()); !errors.Is(err, waits.ErrNotOpen) {
			t.Errorf("after the deadline: %v", err)
		}
		talk = process(t, kept, roster, options, done)
		carryOn(t, talk, converse.ReasonAnswered)
		if r := results(talk.History()); r[0].Code != "DENIED" || !strings.Contains(canister.TextOf(r[0].Content), "none was given before") || l.count() != 0 {
			t.Errorf("the result is %v; %d calls", r, l.count())
		}
	})
}

// An answer that comes while other calls run does not get in the way of them, and
// is taken up in the same work.
func TestAnswerWhileTheTurnWorks(t *testing.T) {
	var l ledger
	store := history.NewMemory()
	gate := make(chan struct{})
	slow := fn("slow", func(context.Context, *invoker.Call) (invoker.Output, error) {
		<-gate
		answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
		return invoker.Output{Content: canister.Texts("slow")}, nil
	})
	talk := process(t, store, newRoster(t, l.tool("act"), slow), converse.Options{Approve: defers}, asks(call("slow", `{}`), call("act", `{}`)), done)
	for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case converse.WaitStarted:
			close(gate)
		case converse.TurnCompleted:
			if event.Turn.Text() != "Done." || l.count() != 1 {
				t.Errorf("the turn is %+v; %d calls", event.Turn, l.count())
			}
		}
	}
	sound(t, talk.History())
	sameAs(t, store, "talk", talk.History())
}

// An answer that comes after the last append of the turn is not overlooked.
func TestAnswerBeforeTheTurnWaits(t *testing.T) {
	var l ledger
	store := history.NewMemory()
	talk := process(t, store, newRoster(t, l.tool("act")), converse.Options{Approve: defers}, asks(call("act", `{}`)), done)
	for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case converse.WaitStarted:
			answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
		case converse.TurnCompleted:
			if event.Turn.Text() != "Done." || l.count() != 1 {
				t.Errorf("the turn is %+v; %d calls", event.Turn, l.count())
			}
		}
	}
}

// A turn that is about to wait takes nothing but answers from another process: one that has
// used the answer already may be making the call.
func TestAnotherProcessContinuesBeforeTheTurnWaits(t *testing.T) {
	var l ledger
	store := history.NewMemory()
	began, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	act := fn("act", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		close(began)
		<-release
		return l.tool("act").Invoke(ctx, call)
	})
	talk := process(t, store, newRoster(t, act), converse.Options{Approve: defers}, asks(call("act", `{}`)))
	other := process(t, store, newRoster(t, act), converse.Options{Approve: defers}, done)
	var err error
	for event, failed := range talk.Send(t.Context(), canister.Text("Go.")) {
		if _, waits := event.(converse.WaitStarted); waits {
			answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
			go func() { _, err := other.Run(context.Background()); ended <- err }()
			<-began
		}
		err = failed
	}
	if _, conflict := errors.AsType[*history.ConflictError](err); !conflict {
		t.Errorf("the turn ended with %v, want a conflict", err)
	}
	close(release)
	if err := <-ended; err != nil || l.count() != 1 {
		t.Errorf("the other process: %v after %d calls", err, l.count())
	}
	sameAs(t, store, "talk", other.History())
}

// A call is in traces, and counted, when it has its result.
func TestTraceOfAWait(t *testing.T) {
	s := newSeen(t, telemetry.Options{})
	store := history.NewMemory()
	options := converse.Options{Approve: defers, Telemetry: s.Telemetry}
	play(t, process(t, store, newRoster(t, echo("act")), options, asks(call("act", `{}`))), "Go.")
	answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictDeny, Reason: "no"})
	carryOn(t, process(t, store, newRoster(t, echo("act")), options, done), converse.ReasonAnswered)
	wantTree(t, s,
		"invoke_agent waiting",
		"  chat script",
		"invoke_agent answered",
		"  execute_tool local__act DENIED",
		"  chat script",
	)
	for n, want := range []string{"", "1"} {
		if got := attributeOf(s.find(t, "invoke_agent", n), "consort.turn.invocations"); got != want && got+want != "0" {
			t.Errorf("work %d counts %q invocations, want %q", n, got, want)
		}
	}
}

// Leaving the loop loses no wait; Send ends it.
func TestWaitSurvivesLeaving(t *testing.T) {
	store := history.NewMemory()
	talk := process(t, store, newRoster(t, echo("act"), waiter("long")), converse.Options{Approve: defers}, asks(call("act", `{}`), call("long", `{}`)), done)
	for event := range talk.Send(t.Context(), canister.Text("Go.")) {
		if _, ok := event.(converse.WaitStarted); ok {
			break
		}
	}
	if turn := carryOn(t, talk, converse.ReasonWaiting); len(turn.Waits) != 1 || len(results(talk.History())) != 1 {
		t.Errorf("the turn is %+v", turn)
	}
	play(t, talk, "Never mind.")
	if r := results(talk.History()); len(r) != 2 || !strings.Contains(canister.TextOf(r[1].Content), "not started") {
		t.Errorf("the results are %v", r)
	}
	sound(t, talk.History())
}

// asksTwice asks the person twice, and then has its effect.
func asksTwice(l *ledger, errs *[]error) invoker.Invoker {
	effect := l.tool("act")
	return fn("act", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
		text := ""
		for _, message := range []string{"Size?", "Size?", "Colour?"} {
			result, err := c.Ask(ctx, &invoker.ElicitRequest{Message: message, Schema: json.RawMessage(`{"type":"object"}`)})
			if err != nil {
				*errs = append(*errs, err)
				return invoker.Output{}, err
			}
			text += fmt.Sprint(result.Action, result.Content, " ")
		}
		_, err := effect.Invoke(ctx, c)
		return invoker.Output{Content: canister.Texts(text)}, err
	})
}

func TestQuestionsAreAnsweredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		var errs []error
		asked := 0
		store := history.NewMemory()
		options := converse.Options{Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			asked++
			return nil, converse.Later(time.Hour, "")
		}}
		run := func() *converse.Conversation {
			return process(t, store, newRoster(t, idempotent(asksTwice(&l, &errs))), options,
				[]conversetest.Line{asks(call("act", `{}`)), done}[len(of[canister.Assistant](t, store, "talk")):]...)
		}
		turn := last(t, play(t, run(), "Go."))
		for i, a := range []canister.Answer{
			{Verdict: canister.VerdictAccept, Arguments: json.RawMessage(`{"size":4}`)},
			{Verdict: canister.VerdictDecline},
			{},
		} {
			if turn.Reason != converse.ReasonWaiting || len(turn.Waits) != 1 || l.count() != 0 {
				t.Fatalf("question %d: the turn is %+v", i, turn)
			}
			if q, err := waits.Question(turn.Waits[0]); err != nil || q.Server != "local__act" || !strings.Contains(q.Message, "?") || len(q.Schema) == 0 {
				t.Errorf("the question is %+v, %v", q, err)
			}
			if a.Verdict == "" {
				time.Sleep(2 * time.Hour)
			} else {
				answer(t, store, "talk", a)
			}
			talk := run()
			var err error
			if turn, err = talk.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r := of[canister.Result](t, store, "talk")
		if turn.Text() != "Done." || len(r) != 1 ||
			canister.TextOf(r[0].Content) != "acceptmap[size:4] declinemap[] cancelmap[] " || asked != 3 || l.count() != 1 {
			t.Errorf("the turn is %+v, the results %v, %d questions, %d calls", turn, r, asked, l.count())
		}
		intents := of[canister.Intent](t, store, "talk")
		if len(intents) != 4 || intents[3].Attempt != 4 || intents[3].Key != intents[0].Key {
			t.Errorf("the intents are %+v", intents)
		}
	})
}

// A question that a log cannot store fails, and the turn goes on.
func TestQuestionsThatCannotBeStored(t *testing.T) {
	for name, question := range map[string]*invoker.ElicitRequest{
		"at most 1048576 are allowed": {Message: strings.Repeat("<", 12<<20), Anew: true},
		"cannot be stored":            {Message: "Which?", Schema: json.RawMessage("{\"title\":\"\xff\"}"), Anew: true},
	} {
		tool := fn("act", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			_, err := call.Ask(ctx, question)
			return invoker.Output{}, err
		})
		options := converse.Options{Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return nil, converse.Later(time.Hour, "")
		}}
		talk := process(t, history.NewMemory(), newRoster(t, tool), options, asks(call("act", `{}`)), done)
		turn := last(t, play(t, talk, "Go."))
		if r := results(talk.History()); turn.Text() != "Done." || len(r) != 1 || r[0].Code != "INTERNAL" || !strings.Contains(canister.TextOf(r[0].Content), name) {
			t.Errorf("%s: the turn is %+v, the results are %v", name, turn, r)
		}
	}
}

// A result that a log cannot store becomes a failure, and the turn goes on.
func TestResultsThatCannotBeStored(t *testing.T) {
	var l ledger
	tool := fn("act", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		l.calls = append(l.calls, call.ID)
		return invoker.Output{Content: canister.Texts(strings.Repeat("\x01", 12<<20))}, nil // is longer as JSON
	})
	records := &recorder{}
	options := converse.Options{ID: "talk", Log: history.NewMemory(), Audit: audit.New(records, nil), Limits: converse.Limits{ResultBytes: -1}}
	talk := converse.New(conversetest.NewScript(asks(call("act", `{}`)), done), newRoster(t, readOnly(tool)), &options)
	turn := last(t, play(t, talk, "Go."))
	r := results(talk.History())
	if turn.Text() != "Done." || len(r) != 1 || r[0].Code != "RESULT_TOO_LARGE" || l.count() != 1 {
		t.Fatalf("the turn ends with %q, %d results, %d calls", turn.Text(), len(r), l.count())
	}
	if text := canister.TextOf(r[0].Content); !strings.Contains(text, "its result was lost: it has ") {
		t.Errorf("the result is %.200q", text)
	}
	if record := records.of(t, r[0].Invocation); record.Code != "RESULT_TOO_LARGE" {
		t.Errorf("the audit says %+v", record)
	}
}

// The tool of a call that cannot be made again is told that there is no answer,
// unless nothing is under way.
func TestQuestionOfACallThatCannotBeMadeAgain(t *testing.T) {
	for _, anew := range []bool{false, true} {
		tool := fn("act", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
			result, err := c.Ask(ctx, &invoker.ElicitRequest{Message: "Size?", Anew: anew})
			if err != nil {
				return invoker.Output{}, err
			}
			return invoker.Output{Content: canister.Texts(string(result.Action))}, nil
		})
		options := converse.Options{Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return nil, converse.Later(0, "")
		}}
		talk := process(t, history.NewMemory(), newRoster(t, tool), options, asks(call("act", `{}`)), done)
		turn := last(t, play(t, talk, "Go."))
		if r := results(talk.History()); anew != (turn.Reason == converse.ReasonWaiting) || !anew && canister.TextOf(r[0].Content) != "cancel" {
			t.Errorf("anew %v: the turn is %+v, the results %v", anew, turn, r)
		}
	}
}

// What is secret in a question does not enter the history with it.
func TestQuestionsAreRedacted(t *testing.T) {
	tool := fn("act", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
		_, err := c.Ask(ctx, &invoker.ElicitRequest{
			Message: "Is it sesame?", URL: "https://sesame/", Schema: json.RawMessage(`{"title":"sesame"}`), Anew: true,
		})
		return invoker.Output{}, err
	})
	options := converse.Options{
		Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			return nil, converse.Later(0, "")
		},
		Redact: func(text string) string { return strings.ReplaceAll(text, "sesame", "[secret]") },
	}
	talk := process(t, history.NewMemory(), newRoster(t, tool), options, asks(call("act", `{}`)))
	wait := last(t, play(t, talk, "Go.")).Waits[0]
	if text := string(wait.Question); strings.Contains(text, "sesame") || strings.Count(text, "[secret]") != 3 {
		t.Errorf("the question is %s", text)
	}
}

// A timer holds the conversation, and what was waited does not count.
func TestTimerAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		options := converse.Options{Limits: converse.Limits{Time: time.Minute}}
		talk := process(t, store, nil, options, done)
		if err := talk.Add(t.Context(), canister.User{Content: canister.Texts("Go.")},
			canister.Wait{For: canister.WaitTimer, Deadline: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if turn := carryOn(t, talk, converse.ReasonWaiting); turn.Waits[0].For != canister.WaitTimer {
			t.Errorf("it waits for %v", turn.Waits)
		}
		time.Sleep(59 * time.Minute)
		carryOn(t, talk, converse.ReasonWaiting)
		time.Sleep(90 * time.Second)
		carryOn(t, talk, converse.ReasonAnswered)

		for _, late := range []time.Duration{30 * time.Second, 2 * time.Minute} {
			id := late.String()
			options.ID = id
			talk = process(t, store, nil, options, done)
			if err := talk.Add(t.Context(), canister.User{Content: canister.Texts("Go.")},
				canister.Wait{For: canister.WaitTimer, Deadline: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			answer(t, store, id, canister.Answer{Verdict: canister.VerdictCancel})
			time.Sleep(late)
			want := converse.ReasonAnswered
			if late > time.Minute {
				want = converse.ReasonTime
			}
			carryOn(t, talk, want)
		}
	})
}

// Work that is cancelled with ErrSuspended leaves its calls in doubt, and what has
// ended is written down.
func TestCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		talk := process(t, store, newRoster(t, waiter("long"), echo("quick"), exclusive(echo("third"))), converse.Options{},
			asks(call("long", `{}`), call("quick", `{}`), call("third", `{}`)))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { cancel(converse.ErrSuspended) })
		if _, err := talk.Ask(ctx, canister.Text("Go.")); !errors.Is(err, converse.ErrSuspended) {
			t.Errorf("err = %v", err)
		}
		if r := results(talk.History()); len(r) != 1 || canister.TextOf(r[0].Content) != "quick {}" {
			t.Errorf("the results are %v", r)
		}
		heir := process(t, store, newRoster(t, echo("long"), echo("quick"), echo("third")), converse.Options{}, done)
		carryOn(t, heir, converse.ReasonAnswered)
		codes := map[string]bool{}
		for _, r := range results(heir.History()) {
			codes[r.Code+" "+canister.TextOf(r.Content)[:5]] = true
		}
		if len(codes) != 3 || !codes["OUTCOME_UNKNOWN The c"] || !codes[" third"] || len(of[canister.Intent](t, store, "talk")) != 3 {
			t.Errorf("the results are %v", results(heir.History()))
		}
	})
}

// Suspend lets end what is under way and begins nothing more.
func TestSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		store := history.NewMemory()
		slow := fn("slow", func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			select {
			case <-time.After(time.Second):
				return invoker.Output{Content: canister.Texts("ended")}, nil
			case <-ctx.Done():
				return invoker.Output{}, ctx.Err()
			}
		})
		approve := func(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
			switch ask.Tool {
			case "act":
				<-ctx.Done() // a person who takes her time
			case "third":
				t.Error("somebody was asked about a call after the work was suspended")
			}
			return converse.Allow(), ctx.Err()
		}
		for _, patient := range []bool{true, false} {
			id := fmt.Sprint(patient)
			talk := process(t, store, newRoster(t, slow, l.tool("act"), echo("third")),
				converse.Options{ID: id, Approve: approve, Limits: converse.Limits{Parallel: 2}},
				asks(call("slow", `{}`), call("act", `{}`), call("third", `{}`)))
			ended := make(chan error, 1)
			go func() {
				_, err := talk.Ask(t.Context(), canister.Text("Go."))
				ended <- err
			}()
			time.Sleep(time.Millisecond)
			within := time.Minute
			if !patient {
				within = time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			err := talk.Suspend(ctx)
			cancel()
			if patient != (err == nil) {
				t.Errorf("patient %v: %v", patient, err)
			}
			if err := <-ended; !errors.Is(err, converse.ErrSuspended) {
				t.Errorf("the turn ends with %v", err)
			}
			want := 1
			if !patient {
				want = 0
			}
			if r := results(talk.History()); len(r) != want || l.count() != 0 || len(of[canister.Intent](t, store, id)) != 1 {
				t.Errorf("the results are %v", r)
			}
			if n := len(of[canister.Result](t, store, id)); n != want {
				t.Errorf("the log has %d results", n)
			}
			if err := talk.Suspend(t.Context()); err != nil {
				t.Error(err) // nothing is under way
			}
		}
	})
}

func TestAnswerNeedsALog(t *testing.T) {
	for _, log := range []history.Log{nil, (*history.Memory)(nil)} {
		err := waits.Answer(t.Context(), log, "talk", canister.Answer{Wait: "w"}, time.Now())
		if err == nil || err.Error() != "waits: Answer needs a log" {
			t.Errorf("%T: %v", log, err)
		}
	}
}

// An integer of a late answer reaches the tool as it is, also beyond 2^53.
func TestLargeIntegersInAnswers(t *testing.T) {
	tool := fn("act", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
		result, err := c.Ask(ctx, &invoker.ElicitRequest{Message: "Which?", Schema: json.RawMessage(`{"type":"object"}`), Anew: true})
		if err != nil {
			return invoker.Output{}, err
		}
		got, err := json.Marshal(result.Content)
		return invoker.Output{Content: canister.Texts(string(got))}, err
	})
	store := history.NewMemory()
	options := converse.Options{Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return nil, converse.Later(time.Hour, "")
	}}
	last(t, play(t, process(t, store, newRoster(t, tool), options, asks(call("act", `{}`))), "Go."))
	const numbers = `{"a":9007199254740993,"b":-9007199254740993,"c":1.5,"d":7,"e":"x"}`
	answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAccept, Arguments: json.RawMessage(numbers)})
	talk := process(t, store, newRoster(t, tool), options, done)
	if _, err := talk.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := results(talk.History()); len(r) != 1 || canister.TextOf(r[0].Content) != numbers {
		t.Errorf("got %+v", r)
	}
}

// Of two equal questions, the one that was answered later gets the late answer.
func TestEqualQuestions(t *testing.T) {
	var l ledger
	var errs []error
	store := history.NewMemory()
	asked := 0
	options := converse.Options{Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		if asked++; asked == 2 {
			return nil, converse.Later(time.Hour, "")
		}
		return &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"n": asked}}, nil
	}}
	turn := last(t, play(t, process(t, store, newRoster(t, idempotent(asksTwice(&l, &errs))), options, asks(call("act", `{}`))), "Go."))
	if turn.Reason != converse.ReasonWaiting {
		t.Fatalf("the turn is %+v", turn)
	}
	answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictDecline})
	talk := process(t, store, newRoster(t, idempotent(asksTwice(&l, &errs))), options, done)
	if _, err := talk.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := results(talk.History()); len(r) != 1 || canister.TextOf(r[0].Content) != "acceptmap[n:3] declinemap[] acceptmap[n:4] " {
		t.Errorf("got %+v", r)
	}
}

// Earlier versions did not number equal questions.
func TestEqualQuestionsOfAnEarlierVersion(t *testing.T) {
	var l ledger
	var errs []error
	store := history.NewMemory()
	options := converse.Options{Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return nil, converse.Later(time.Hour, "")
	}}
	play(t, process(t, store, newRoster(t, idempotent(asksTwice(&l, &errs))), options, asks(call("act", `{}`))), "Go.")
	answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAccept})
	turn, err := process(t, store, newRoster(t, idempotent(asksTwice(&l, &errs))), options).Run(t.Context())
	if err != nil || turn.Reason != converse.ReasonWaiting {
		t.Fatalf("the turn is %+v, %v", turn, err)
	}
	before := history.NewMemory()
	for n, c := range of[canister.Canister](t, store, "talk") {
		if w, ok := c.(canister.Wait); ok {
			w.Question = json.RawMessage(strings.Replace(string(w.Question), `"key":"2",`, "", 1))
			c = w
		}
		if err := before.Append(t.Context(), "talk", n, c); err != nil {
			t.Fatal(err)
		}
	}
	answer(t, before, "talk", canister.Answer{Verdict: canister.VerdictDecline})
	talk := process(t, before, newRoster(t, idempotent(asksTwice(&l, &errs))), options)
	if turn, err = talk.Run(t.Context()); err != nil || turn.Reason != converse.ReasonWaiting {
		t.Fatalf("the turn is %+v, %v", turn, err)
	}
	if q, err := waits.Question(turn.Waits[0]); err != nil || q.Message != "Colour?" {
		t.Errorf("the question is %+v, %v", q, err)
	}
}
