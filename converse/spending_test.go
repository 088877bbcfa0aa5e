// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// policy is one with a ledger in memory and prices for a script.
func policy(caps ...budget.Cap) *budget.Policy {
	return &budget.Policy{
		Ledger: budget.NewMemory(), Caps: caps, Currency: "EUR",
		Prices: map[string]budget.Price{"script": {Input: budget.Unit, Output: 4 * budget.Unit}},
	}
}

// tokens is a cap of tokens for each conversation.
func tokens(limit int64) budget.Cap { return budget.Cap{Scope: budget.Conversation, Tokens: limit} }

// standing returns what the first cap has of the conversation called talk.
func standing(t testing.TB, p *budget.Policy) budget.Standing {
	t.Helper()
	standings, err := p.Standings(t.Context(), budget.Who{Conversation: "talk"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return standings[0]
}

// spent checks what the conversation called talk has spent of tokens, and that
// nothing is reserved any more.
func spent(t testing.TB, p *budget.Policy, from, to int64) {
	t.Helper()
	if s := standing(t, p); s.Spent.Tokens < from || s.Spent.Tokens > to || s.Reserved != (budget.Amount{}) {
		t.Errorf("%d tokens are spent and %d reserved, want %d to %d spent", s.Spent.Tokens, s.Reserved.Tokens, from, to)
	}
}

// bounds expects an answer to be bounded.
func bounds(from, to int64) func(*converse.Request) error {
	return func(request *converse.Request) error {
		if request.MaxTokens < from || request.MaxTokens > to {
			return fmt.Errorf("the answer may have %d tokens, want %d to %d", request.MaxTokens, from, to)
		}
		return nil
	}
}

// ended checks that a turn was ended by the budget, and what it says.
func ended(t testing.TB, turn converse.Turn, words string) {
	t.Helper()
	if turn.Reason != converse.ReasonBudget || !turn.Reason.Limited() || turn.Reached == nil || !strings.Contains(turn.Reached.Error(), words) {
		t.Errorf("the turn ended with %s: %v; want %q", turn.Reason, turn.Reached, words)
	}
}

// The answer is bounded by what the request leaves, what was used is settled, and
// where too little is left the turn ends and names the cap. Under a higher cap the
// same turn goes on.
func TestBudgetOfTokens(t *testing.T) {
	p := policy(tokens(12000))
	script := conversetest.NewScript(
		conversetest.Line{Expect: bounds(8192, 8192), Calls: []conversetest.Call{call("echo", `{}`)}, Usage: usage(900, 5000)},
		// 6100 are left; the request has the 5900 that the server knows of, and the result.
		conversetest.Line{Text: "then", Usage: usage(1, 1)},
	)
	talk := converse.New(script, newRoster(t, echo("echo")), &converse.Options{ID: "talk", Budget: p, Limits: converse.Limits{FinalAnswer: true}})
	turn := last(t, play(t, talk, "hello"))
	ended(t, turn, "the budget of 12000 tokens for each conversation does not suffice for the next step: 5900 tokens are spent, ")
	if want := (budget.Amount{Tokens: 5900, Money: 900 + 20000}); turn.Spent != want {
		t.Errorf("%+v is spent, want %+v", turn.Spent, want)
	}
	spent(t, p, 5900, 5900)
	sound(t, talk.History())
	if _, ok := talk.Next().(converse.Exchange); !ok {
		t.Errorf("what is next does not depend on the budget, and is %+v", talk.Next())
	}
	p.Caps[0].Tokens = 14000
	if turn, err := talk.Run(t.Context()); err != nil || turn.Reason != converse.ReasonAnswered || turn.Spent.Tokens != 2 || turn.Reached != nil {
		t.Errorf("with more, the turn ends with %+v, %v", turn, err)
	}
	spent(t, p, 5902, 5902)
	played(t, script)
}

// The bound of an answer is what is left, and lesser bounds count.
func TestBudgetBoundsTheAnswer(t *testing.T) {
	p := policy(budget.Cap{Scope: budget.Conversation, Money: 2000})
	script := conversetest.NewScript(conversetest.Line{Expect: bounds(200, 400), Text: "short", Usage: usage(20, 300)})
	turn := last(t, play(t, converse.New(script, nil, &converse.Options{ID: "talk", Budget: p}), "hello"))
	if turn.Reason != converse.ReasonAnswered || turn.Spent.Money != 1220 {
		t.Errorf("the turn is %+v", turn)
	}
	played(t, script)
}

// A model that is told nothing of images counts them all the same.
func TestBudgetCountsWhatIsSent(t *testing.T) {
	for _, test := range []struct {
		content canister.Content
		least   int64
	}{
		{canister.Text(strings.Repeat("word ", 2000)), 10_000},
		{canister.ImageContent{MIME: "image/png", Data: []byte("small")}, 8192},
		{canister.StructuredContent{JSON: []byte(`"` + strings.Repeat("x", 9000) + `"`)}, 9000},
	} {
		p := policy(tokens(test.least))
		talk := converse.New(conversetest.NewScript(), nil, &converse.Options{ID: "talk", Budget: p})
		turn, err := talk.Ask(t.Context(), test.content)
		if err != nil {
			t.Fatal(err)
		}
		ended(t, turn, "0 tokens are spent")
	}
}

// What a failed exchange has cost: nothing if the server refused it or was not
// reached, and otherwise all that it was allowed.
func TestBudgetOfFailures(t *testing.T) {
	for _, test := range []struct {
		line conversetest.Line
		cost bool
	}{
		{conversetest.Line{Err: &converse.ModelError{Message: "too many", Status: 429, Retryable: true}}, false},
		{conversetest.Line{Err: &converse.ModelError{Message: "down", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}}, false},
		{conversetest.Line{Err: &converse.ModelError{Message: "lost", Err: &net.OpError{Op: "read", Err: errors.New("reset")}}}, true},
		{conversetest.Line{Text: "some of it", Err: &converse.ModelError{Message: "broken", Status: 500}}, true},
		{conversetest.Line{Err: &converse.ModelError{Message: "too long, in a stream", Status: 200, Code: converse.CodeContextLength}}, false},
		{conversetest.Line{Text: "some", Err: &converse.ModelError{Message: "overloaded, later", Status: 200, Code: "overloaded_error"}}, true},
		{conversetest.Line{Reasoning: "some", Err: &converse.ModelError{Message: "overloaded, later", Status: 200, Code: "overloaded_error"}}, true},
		{conversetest.Line{Err: &converse.ModelError{Message: "overloaded, later", Status: 200, Code: "overloaded_error", Ran: "open_ticket"}}, true},
		{conversetest.Line{Text: "no usage"}, true},
		{conversetest.Line{Text: "wrong usage", Usage: usage(-7, 7)}, true},
		{conversetest.Line{Text: "no usage", Usage: usage(0, 0)}, true},
	} {
		p := policy(tokens(100_000))
		p.Answer = 2000
		talk := converse.New(conversetest.NewScript(test.line), nil, &converse.Options{ID: "talk", Budget: p})
		_, err := talk.Ask(t.Context(), canister.Text("hello"))
		if (err != nil) != (test.line.Err != nil) {
			t.Fatal(err)
		}
		if test.cost {
			spent(t, p, 2100, 3000)
		} else {
			spent(t, p, 0, 0)
		}
	}
}

// An attempt that the server refused in a stream costs nothing, whatever becomes of the next.
func TestBudgetOfRefusedAttempts(t *testing.T) {
	for _, test := range []struct {
		err  *converse.ModelError
		cost bool
	}{
		{&converse.ModelError{Message: "overloaded", Status: 200, Code: "overloaded_error", Retryable: true}, false},
		{&converse.ModelError{Message: "the answer broke off", Status: 200, Retryable: true}, true},
	} {
		p := policy(tokens(100_000))
		p.Answer = 2000
		refusing := model(func(_ *converse.Request, yield func(converse.ModelEvent, error) bool) {
			_ = yield(converse.Retry{Attempt: 1, Err: test.err}, nil) && yield(nil, &converse.ModelError{Message: "too many", Status: 429})
		})
		talk := converse.New(refusing, nil, &converse.Options{ID: "talk", Budget: p})
		if _, err := talk.Ask(t.Context(), canister.Text("hello")); err == nil {
			t.Fatal("the turn succeeded")
		}
		if test.cost {
			spent(t, p, 2100, 3000)
		} else {
			spent(t, p, 0, 0)
		}
	}
}

// Who leaves in the middle of an answer has paid for it.
func TestBudgetOfLeaving(t *testing.T) {
	p := policy(tokens(100_000))
	talk := converse.New(conversetest.NewScript(conversetest.Line{Text: strings.Repeat("word ", 20)}), nil, &converse.Options{ID: "talk", Budget: p})
	for event, err := range talk.Send(t.Context(), canister.Text("hello")) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := event.(converse.TextDelta); ok {
			break
		}
	}
	spent(t, p, 8192, 9500)
}

// Conversations of one identity share its accounts, others do not; what is
// reserved for an answer under way is not there for another one.
func TestBudgetOfAnIdentity(t *testing.T) {
	p := policy(budget.Cap{Scope: budget.Identity, Window: budget.Day, Tokens: 15_000})
	release := make(chan struct{})
	begun := make(chan struct{})
	slow := conversetest.Line{Expect: func(*converse.Request) error { close(begun); return nil }, Text: "slow", Usage: usage(10, 10), Wait: release}
	open := func(id, person string, lines ...conversetest.Line) *converse.Conversation {
		return converse.New(conversetest.NewScript(lines...), nil, &converse.Options{
			ID: id, Budget: p, Identity: []string{"person"},
			Trusted: []invoker.Value{
				invoker.TrustedJSON("person", json.RawMessage(`"`+person+`"`)), invoker.TrustedJSON("request", json.RawMessage(`"`+id+`"`)),
			},
		})
	}
	first := make(chan converse.Turn, 1)
	go func() {
		turn, err := open("one", "ada", slow).Ask(t.Context(), canister.Text("hello"))
		if err != nil {
			t.Error(err)
		}
		first <- turn
	}()
	<-begun
	turn, err := open("two", "ada", conversetest.Line{Expect: bounds(4000, 6000), Text: "less", Usage: usage(10, 10)}).Ask(t.Context(), canister.Text("hello"))
	if err != nil || turn.Reason != converse.ReasonAnswered {
		t.Error(turn, err)
	}
	turn, err = open("three", "bob", conversetest.Line{Expect: bounds(8192, 8192), Text: "all", Usage: usage(10, 10)}).Ask(t.Context(), canister.Text("hello"))
	if err != nil || turn.Reason != converse.ReasonAnswered {
		t.Error(turn, err)
	}
	p.Caps[0].Tokens = 9000
	turn, err = open("four", "ada").Ask(t.Context(), canister.Text("hello"))
	if err != nil {
		t.Error(err)
	}
	ended(t, turn, "the budget of 9000 tokens per day for each identity does not suffice for the next step: 20 tokens are spent, ")
	if turn.Reached != nil && !strings.Contains(turn.Reached.Error(), " are reserved for work in progress, ") {
		t.Error(turn.Reached)
	}
	close(release)
	<-first
	if turn, err := open("four", "ada", conversetest.Line{Text: "now"}).Ask(t.Context(), canister.Text("hello")); err != nil ||
		turn.Reason != converse.ReasonAnswered {
		t.Error(turn, err)
	}
}

// What tools ask the model counts, and a tool is told of a cap that is reached.
func TestBudgetOfSampling(t *testing.T) {
	p := policy(tokens(2000))
	p.Answer = 1000
	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("ask", `{}`)}, Usage: usage(100, 20)},
		conversetest.Line{Expect: bounds(900, 1000), Text: "one", Usage: usage(250, 900)},
	)
	talk := converse.New(script, newRoster(t, asker("ask", 2)), &converse.Options{ID: "talk", Budget: p})
	turn := last(t, play(t, talk, "hello"))
	ended(t, turn, "1270 tokens are spent")
	said := canister.TextOf(results(talk.History())[0].Content)
	if !strings.Contains(said, "DENIED: The model was not asked: the budget of 2000 tokens for each conversation does not suffice for the next step") ||
		turn.Spent.Tokens != 1270 {
		t.Errorf("the tool says %q; %+v is spent", said, turn.Spent)
	}
	played(t, script)
}

// Time that is up ends a call, whose result says so, and then the turn.
func TestBudgetOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy(budget.Cap{Scope: budget.Conversation, Time: 20 * time.Second})
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("wait", `{}`), call("echo", `{}`)}},
			conversetest.Line{Text: "never"},
		)
		talk := converse.New(script, newRoster(t, waiter("wait"), echo("echo")), &converse.Options{ID: "talk", Budget: p})
		began := time.Now()
		turn := last(t, play(t, talk, "hello"))
		ended(t, turn, "the budget of 20s for each conversation does not suffice for the next step: 20s are spent, and up to 1ms are needed")
		found := results(talk.History())
		if len(found) != 2 || found[0].Code != string(invoker.Canceled) || found[1].Code != "" ||
			!strings.Contains(canister.TextOf(found[0].Content), "interrupted: the 20s are over that the budget of 20s for each conversation had left") {
			t.Errorf("the results are %+v", found)
		}
		if took := time.Since(began); took != 20*time.Second || turn.Spent.Time != took {
			t.Errorf("it took %v, and %v are spent", took, turn.Spent.Time)
		}
		sound(t, talk.History())
	})
}

// Without time, calls are not begun, and say why.
func TestNoTimeForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy(budget.Cap{Scope: budget.Conversation, Time: time.Minute})
		slow := make(chan struct{})
		time.AfterFunc(time.Minute-time.Microsecond, func() { close(slow) })
		script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("echo", `{}`)}, Wait: slow})
		talk := converse.New(script, newRoster(t, echo("echo")), &converse.Options{ID: "talk", Budget: p})
		ended(t, last(t, play(t, talk, "hello")), "59.999999s are spent, and up to 1ms are needed")
		if found := results(talk.History()); len(found) != 1 || found[0].Code != string(invoker.Denied) ||
			!strings.HasPrefix(canister.TextOf(found[0].Content),
				"The call was not started: the budget of 1m0s for each conversation does not suffice for the next step") {
			t.Errorf("the results are %+v", found)
		}
	})
}

// An answer that takes all of its time ends the turn, and nothing of it enters.
func TestNoTimeForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy(budget.Cap{Scope: budget.Conversation, Window: budget.Month, Time: time.Hour})
		p.Step = time.Minute
		script := conversetest.NewScript(conversetest.Line{Text: "a beginning", Wait: make(chan struct{})})
		talk := converse.New(script, nil, &converse.Options{ID: "talk", Budget: p})
		turn := last(t, play(t, talk, "hello"))
		ended(t, turn, "the 1m0s are over that the budget of 1h0m0s per month for each conversation had left")
		if len(talk.History()) != 1 || turn.Spent.Time != time.Minute {
			t.Errorf("%+v is spent; the history is %v", turn.Spent, talk.History())
		}
	})
}

// A process dies between an answer and its settlement. Whoever carries on makes
// the same reservation again, which counts once.
func TestBudgetAfterACrash(t *testing.T) {
	store := history.NewMemory()
	p := policy(tokens(20_000))
	died := errors.New("the process is gone")
	dying := *p
	dying.Ledger = &deadEnd{Ledger: p.Ledger, err: died}
	options := converse.Options{ID: "talk", Log: &deadLog{Log: store, after: 1, err: died}, Budget: &dying}
	talk := converse.New(conversetest.NewScript(conversetest.Line{Text: "lost", Usage: usage(10, 10)}), nil, &options)
	if _, err := talk.Ask(t.Context(), canister.Text("hello")); !errors.Is(err, died) {
		t.Fatal(err)
	}
	before := standing(t, p)
	if before.Reserved.Tokens < 8192 || before.Spent.Tokens != 0 {
		t.Errorf("after the crash there is %+v", before)
	}
	release, begun := make(chan struct{}), make(chan struct{})
	line := conversetest.Line{Expect: func(*converse.Request) error { close(begun); return nil }, Text: "again", Usage: usage(10, 10), Wait: release}
	again := converse.New(conversetest.NewScript(line), nil, &converse.Options{ID: "talk", Log: store, Budget: p})
	turns := make(chan converse.Turn, 1)
	go func() {
		turn, err := again.Run(t.Context())
		if err != nil {
			t.Error(err)
		}
		turns <- turn
	}()
	<-begun
	if now := standing(t, p); now.Reserved != before.Reserved {
		t.Errorf("%+v is reserved, and was %+v", now.Reserved, before.Reserved)
	}
	close(release)
	if turn := <-turns; turn.Text() != "again" || turn.Spent.Tokens != 20 {
		t.Errorf("the turn is %+v", turn)
	}
	spent(t, p, 20, 20)
}

// The same holds for a summary and for the questions of a tool to the model: the work is the same, whatever
// the canisters of its request are called.
func TestBudgetOfWorkAsideAfterACrash(t *testing.T) {
	for name, test := range map[string]struct {
		log   []canister.Canister
		dies  int // after so many appends
		lines []conversetest.Line
		work  func(*converse.Conversation) error
	}{
		"a summary": {
			log: []canister.Canister{
				canister.User{Head: head("u1"), Content: canister.Texts(strings.Repeat("long ", 2000))},
				canister.Assistant{Head: head("a1"), Content: canister.Texts("Yes."), Finish: canister.FinishStop},
				canister.User{Head: head("u2"), Content: canister.Texts("And?")},
				canister.Assistant{Head: head("a2"), Content: canister.Texts("No."), Finish: canister.FinishStop},
			},
			lines: []conversetest.Line{{Text: "They talked.", Usage: usage(100, 10)}},
			work: func(talk *converse.Conversation) (failed error) {
				for _, err := range talk.Compact(t.Context()) {
					failed = errors.Join(failed, err)
				}
				return failed
			},
		},
		"questions of a tool": {
			log: []canister.Canister{
				canister.User{Head: head("u"), Content: canister.Texts("Go.")},
				canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
				canister.Invocation{Head: head("i"), Message: "a", CallID: "c", Name: "local__ask", Arguments: `{}`},
			},
			dies:  1,
			lines: []conversetest.Line{{Text: "one", Usage: usage(50, 5)}, {Text: "two", Usage: usage(50, 5)}, {Text: "Done.", Usage: usage(1, 1)}},
			work:  func(talk *converse.Conversation) error { _, err := talk.Run(t.Context()); return err },
		},
	} {
		store, p, died := history.NewMemory(), policy(tokens(1_000_000)), errors.New("the process is gone")
		if err := store.Append(t.Context(), "talk", 0, test.log...); err != nil {
			t.Fatal(err)
		}
		process := func(log history.Log, ledger budget.Ledger) error {
			policy := *p
			policy.Ledger = ledger
			return test.work(converse.New(conversetest.NewScript(test.lines...), newRoster(t, idempotent(asker("ask", 2))), &converse.Options{
				ID: "talk", Log: log, Budget: &policy, Compaction: &converse.Compaction{Keep: 1},
			}))
		}
		if err := process(&deadLog{Log: store, after: test.dies, err: died}, &deadEnd{p.Ledger, died}); !errors.Is(err, died) {
			t.Fatalf("%s: %v", name, err)
		}
		if s := standing(t, p); s.Reserved.Tokens == 0 {
			t.Errorf("%s: after the crash there is %+v", name, s)
		}
		if err := process(store, p.Ledger); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s := standing(t, p); s.Reserved != (budget.Amount{}) || s.Spent.Tokens < 110 || s.Spent.Tokens > 112 {
			t.Errorf("%s: at the end there is %+v", name, s)
		}
	}
}

// deadEnd is the ledger of a process that dies before it settles.
type deadEnd struct {
	budget.Ledger
	err error
}

func (d *deadEnd) Settle(context.Context, string, map[string]int64) error { return d.err }

// deadLog is the log of a process that dies after some appends.
type deadLog struct {
	history.Log
	after int
	err   error
}

func (d *deadLog) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	if d.after--; d.after < 0 {
		return d.err
	}
	return d.Log.Append(ctx, conversation, length, canisters...)
}

// broken is a ledger that cannot be reached.
type broken struct{ deadEnd }

func (b *broken) Reserve(context.Context, budget.Reservation) ([]int64, error) { return nil, b.err }

// A ledger that cannot be reached ends the turn before the model is asked, and
// calls before they run; one that does not take a settlement is logged, and what
// was reserved counts.
func TestBudgetWithoutItsLedger(t *testing.T) {
	down := errors.New("the database is down")
	p := policy(tokens(100_000))
	p.Ledger = &broken{deadEnd{p.Ledger, down}}
	talk := converse.New(conversetest.NewScript(), nil, &converse.Options{ID: "talk", Budget: p})
	if _, err := talk.Ask(t.Context(), canister.Text("hello")); !errors.Is(err, down) {
		t.Errorf("without a ledger: %v", err)
	}
	p.Ledger = &deadEnd{budget.NewMemory(), down}
	core, lines := observer.New(zap.ErrorLevel)
	talk = converse.New(conversetest.NewScript(conversetest.Line{Text: "yes", Usage: usage(1, 1)}), nil,
		&converse.Options{ID: "talk", Budget: p, Logger: zap.New(core)})
	if turn := last(t, play(t, talk, "hello")); turn.Reason != converse.ReasonAnswered {
		t.Errorf("the turn ended with %s", turn.Reason)
	}
	if found := lines.All(); len(found) != 1 || found[0].ContextMap()["event"] != "budget.settle.failed" {
		t.Errorf("the log has %v", found)
	}
	if s := standing(t, p); s.Reserved.Tokens < 8192 {
		t.Errorf("there is %+v", s)
	}
}

// The requests of a tool with another context, such as the one of a connection, are paid by the
// identity of the conversation, whose trusted values the model and the person's function see.
func TestBudgetOfWhatToolsAskFor(t *testing.T) {
	user := invoker.NewTrusted[string]("person")
	for name, own := range map[string]context.Context{
		"of a connection":   context.Background(),
		"for somebody else": invoker.WithTrusted(context.Background(), user.Value("eve")),
	} {
		p := policy(budget.Cap{Scope: budget.Identity, Window: budget.Day, Tokens: 50_000})
		var seen []string
		sees := func(ctx context.Context) {
			person, _ := user.From(ctx)
			seen = append(seen, person)
		}
		tool := fn("ask", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			if _, err := call.Ask(own, &invoker.ElicitRequest{Message: "Really?"}); err != nil {
				return invoker.Output{}, err
			}
			_, err := call.Sample(own, sampleRequest("question"))
			return invoker.Output{}, err
		})
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{call("ask", "{}")}, Usage: usage(1, 1)},
			conversetest.Line{Text: "yes", Usage: usage(1000, 10)},
			conversetest.Line{Text: "done", Usage: usage(20, 1)},
		)
		talk := converse.New(contextual{script, sees}, newRoster(t, tool), &converse.Options{
			ID: "talk", Budget: p, Identity: []string{"person"}, Trusted: []invoker.Value{user.Value("ada")},
			Ask: func(ctx context.Context, _ *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
				sees(ctx)
				return &invoker.ElicitResult{Action: invoker.Accept}, nil
			},
		})
		if r := play(t, talk, "go"); last(t, r).Reason != converse.ReasonAnswered || results(talk.History())[0].Code != "" {
			t.Fatalf("%s: the results are %v", name, results(talk.History()))
		}
		account := sha256.Sum256([]byte(`["person","\"ada\""]`))
		standings, err := p.Standings(t.Context(), budget.Who{Conversation: "talk", Identity: hex.EncodeToString(account[:])}, time.Now())
		if err != nil || standings[0].Spent.Tokens != 1033 || standings[0].Reserved != (budget.Amount{}) {
			t.Errorf("%s: the account has %+v, %v", name, standings, err)
		}
		if got := strings.Join(seen, " "); got != "ada ada ada ada" {
			t.Errorf("%s: the work is done for %s", name, got)
		}
	}
}

// After a compaction the budget needs the tokens of the short request, not of the long one.
func TestBudgetAfterACompaction(t *testing.T) {
	for name, options := range map[string]converse.Compaction{
		"results are cut": {Window: 50_000, Keep: 1},
		"a summary":       {Window: 50_000, Keep: 1, Trim: -1},
	} {
		p := policy(tokens(60_000))
		script := conversetest.NewScript(conversetest.Line{Text: "yes", Usage: usage(1000, 10)})
		if options.Trim < 0 {
			options.Model = conversetest.NewScript(conversetest.Line{Text: "They looked.", Usage: usage(10, 10)})
		}
		talk := converse.New(script, newRoster(t, echo("look")), &converse.Options{
			ID: "talk", Budget: p, Compaction: &options,
			History: []canister.Canister{
				canister.User{Head: head("u"), Content: canister.Texts("Look.")},
				canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations, Usage: usage(1000, 10)},
				canister.Invocation{Head: head("i"), Message: "a", CallID: "c", Name: "local__look", Arguments: `{}`},
				canister.Result{Head: head("r"), Invocation: "i", Content: canister.Texts(strings.Repeat("word ", 90_000))},
				canister.Assistant{Head: head("b"), Content: canister.Texts("I see."), Finish: canister.FinishStop, Usage: usage(100_000, 3000)},
			},
		})
		turn := last(t, play(t, talk, "hello"))
		if turn.Reason != converse.ReasonAnswered || len(talk.History()) != 8 {
			t.Errorf("%s: the turn ended with %s: %v; the history is %s", name, turn.Reason, turn.Reached, kindsOf(talk.History()))
		}
	}
}

// What is wrong with a budget is the error of the first piece of work.
func TestBudgetIsChecked(t *testing.T) {
	p := policy(budget.Cap{Scope: budget.Identity, Money: budget.Unit})
	delete(p.Prices, "script")
	talk := converse.New(conversetest.NewScript(), nil, &converse.Options{Budget: p})
	if _, err := talk.Ask(t.Context(), canister.Text("hello")); err == nil ||
		err.Error() != `converse: Options.Budget: budget: a cap of money needs a price for the model "script"` {
		t.Error(err)
	}
	p = policy(budget.Cap{Scope: budget.Identity, Money: budget.Unit})
	talk = converse.New(conversetest.NewScript(), nil,
		&converse.Options{Budget: p, Compaction: &converse.Compaction{Model: nameless{conversetest.NewScript()}}})
	if _, err := talk.Ask(t.Context(), canister.Text("hello")); err == nil || !strings.Contains(err.Error(),
		"the model of Compaction: budget: a cap of money needs a price for the model \"\"") {
		t.Error(err)
	}
}

// nameless is a model that does not say what it is.
type nameless struct{ converse.Model }

func TestBudgetInEvents(t *testing.T) {
	line, err := eventjson.Marshal(converse.TurnCompleted{Turn: converse.Turn{
		Reason:  converse.ReasonBudget,
		Spent:   budget.Amount{Tokens: 7, Money: 250_000, Time: 1500 * time.Millisecond},
		Reached: &budget.ReachedError{Cap: tokens(9), Unit: "tokens", Spent: 7, Needed: 3},
	}})
	want := `{"event":"turn_completed","reason":"budget","spent":{"tokens":7,"money":"0.25","time_ms":1500},` +
		`"budget":"the budget of 9 tokens for each conversation does not suffice for the next step: 7 tokens are spent, and up to 3 tokens are needed"}`
	if err != nil || string(line) != want {
		t.Errorf("%s, %v", line, err)
	}
}

// A summary is paid for as an answer is; where it cannot be, the turn ends.
func TestBudgetOfSummaries(t *testing.T) {
	p, model := policy(tokens(1_000_000)), &narrow{}
	p.Answer = 500
	turn := last(t, play(t, grown(t, model, converse.Options{ID: "talk", Budget: p}), "hello"))
	if len(model.summaries) != 1 || model.summaries[0].MaxTokens != 500 || turn.Spent.Tokens != turn.Usage.Total() {
		t.Errorf("%d summaries; %d tokens are spent, and used are %+v", len(model.summaries), turn.Spent.Tokens, turn.Usage)
	}
	spent(t, p, turn.Usage.Total(), turn.Usage.Total())
	p, model = policy(tokens(15_000)), &narrow{}
	ended(t, last(t, play(t, grown(t, model, converse.Options{ID: "talk", Budget: p}), "hello")), "0 tokens are spent")
	if len(model.summaries) != 0 || len(model.requests) != 0 {
		t.Errorf("%d summaries and %d answers", len(model.summaries), len(model.requests))
	}
}

// The tools of a request count for each exchange, also if the server does not tell its usage.
func TestBudgetCountsToolsWithoutUsage(t *testing.T) {
	look, err := invoker.New("look", strings.Repeat("Look. ", 3000), func(context.Context, struct{}) (string, error) { return "There.", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	// An exchange needs about 18,800 tokens before its answer. The first one is settled with
	// 8192 more, and leaves 5000 for the answer of the second one.
	p := policy(tokens(2*18800 + 8192 + 5000))
	script := conversetest.NewScript(
		conversetest.Line{Expect: bounds(8192, 8192), Calls: []conversetest.Call{call("look", `{}`)}},
		conversetest.Line{Expect: bounds(4000, 6000), Text: "Done."},
	)
	turn := last(t, play(t, converse.New(script, newRoster(t, look), &converse.Options{ID: "talk", Budget: p}), "hello"))
	if turn.Reason != converse.ReasonAnswered {
		t.Errorf("the turn is %+v", turn)
	}
	played(t, script)
}
