// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"iter"
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
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// ledger counts effects by the keys that the calls carry.
type ledger struct {
	mu    sync.Mutex
	calls []string // key and arguments
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls)
}

// tool has an effect that the ledger has.
func (l *ledger) tool(name string) invoker.Invoker {
	return fn(name, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls = append(l.calls, call.ID+" "+string(call.Arguments))
		return invoker.Output{Content: canister.Texts("effect")}, nil
	})
}

func idempotent(i invoker.Invoker) invoker.Invoker {
	i.Definition().Hints.Idempotent = true
	return i
}

// process is a conversation over a store, as one process would have it.
func process(t testing.TB, store history.Log, roster *ensemble.Roster, opts converse.Options, lines ...conversetest.Line) *converse.Conversation {
	t.Helper()
	opts.Log = store
	if opts.ID == "" {
		opts.ID = "talk"
	}
	return converse.New(conversetest.NewScript(lines...), roster, &opts)
}

var done = conversetest.Line{Text: "Done."}

// asks is what a model says that calls tools.
func asks(calls ...conversetest.Call) conversetest.Line { return conversetest.Line{Calls: calls} }

// of returns the canisters of a kind that a log has.
func of[C canister.Canister](t testing.TB, log history.Log, id string) []C {
	t.Helper()
	var found []C
	for c, err := range log.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := c.(C); ok {
			found = append(found, c)
		}
	}
	return found
}

func kindsOf(history []canister.Canister) string {
	var kinds []string
	for _, c := range history {
		kinds = append(kinds, string(c.Kind()))
	}
	return strings.Join(kinds, " ")
}

// carryOn runs a conversation, which must end for the reason.
func carryOn(t testing.TB, talk *converse.Conversation, want converse.Reason) converse.Turn {
	t.Helper()
	turn, err := talk.Run(t.Context())
	if err != nil || turn.Reason != want {
		t.Fatalf("the turn ends as %q, %v; want %q", turn.Reason, err, want)
	}
	sound(t, settled(talk.History()))
	return turn
}

// settled is a history without what is open at its end.
func settled(history []canister.Canister) []canister.Canister {
	open := canister.Pending(history)
	return slices.DeleteFunc(slices.Clone(history), func(c canister.Canister) bool {
		i, ok := c.(canister.Invocation)
		belongs := func(id string) bool {
			return slices.ContainsFunc(open, func(v canister.Invocation) bool { return v.ID == id })
		}
		switch c := c.(type) {
		case canister.Intent:
			return belongs(c.Invocation)
		case canister.Wait:
			return belongs(c.Invocation)
		case canister.Answer:
			return len(open) > 0
		}
		return ok && belongs(i.ID)
	})
}

// put writes a history into a new store: u, a, then i1 and what the notes say.
func put(t testing.TB, behind ...canister.Canister) *history.Memory {
	t.Helper()
	store := history.NewMemory()
	whole := append([]canister.Canister{
		canister.User{Head: head("u"), Content: canister.Texts("Go.")},
		canister.Assistant{Head: head("a"), Finish: canister.FinishInvocations},
		canister.Invocation{Head: head("i1"), Message: "a", CallID: "c1", Name: "local__act", Arguments: `{"n":1}`},
	}, behind...)
	if err := store.Append(t.Context(), "talk", 0, whole...); err != nil {
		t.Fatal(err)
	}
	return store
}

func head(id string) canister.Head { return canister.Head{ID: id, Time: time.Now()} }

func intent(repeatable bool) canister.Intent {
	return canister.Intent{Head: head("t1"), Invocation: "i1", Attempt: 1, Key: keyOf("talk", "i1"), Repeatable: repeatable}
}

// keyOf is the idempotency key of an invocation.
func keyOf(conversation, invocation string) string {
	sum := sha256.Sum256([]byte(conversation + "\x00" + invocation))
	return base32.StdEncoding.EncodeToString(sum[:16])[:26]
}

// Intents of calls that start together are one append, before any of them is
// made; their results enter as they come, and the model is told of neither.
func TestIntentsComeFirst(t *testing.T) {
	var l ledger
	log := &logged{Log: history.NewMemory()}
	log.before = func(n int) error {
		if n == 3 && l.count() > 0 { // the user, the model, the intents
			t.Error("a call was made before its intent was written")
		}
		return nil
	}
	first := make(chan struct{})
	slow := fn("slow", func(context.Context, *invoker.Call) (invoker.Output, error) {
		<-first
		return invoker.Output{Content: canister.Texts("slow")}, nil
	})
	quick := fn("quick", func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		defer close(first)
		return invoker.Output{Content: canister.Texts("quick")}, nil
	})
	told := ""
	talk := process(t, log, newRoster(t, slow, quick, l.tool("act")), converse.Options{},
		asks(call("slow", `{}`), call("quick", `{}`), call("act", `{"n":1}`)),
		conversetest.Line{Text: "Done.", Expect: func(r *converse.Request) error {
			for _, c := range r.History {
				if told += string(c.Kind()) + " "; c.Kind() == canister.KindResult {
					told += canister.TextOf(canister.ContentOf(c)) + " "
				}
			}
			return nil
		}})
	play(t, talk, "Go.")
	if want := "user assistant invocation invocation invocation result slow result quick result effect "; told != want {
		t.Errorf("the model is told %q, want %q", told, want)
	}
	if kinds := kindsOf(talk.History()); !strings.HasPrefix(kinds, "user assistant invocation invocation invocation intent intent intent result") {
		t.Errorf("the history is %s", kinds)
	}
	if log.appends != 7 { // user, model, intents, three results, model
		t.Errorf("%d appends", log.appends)
	}
	intents := of[canister.Intent](t, log, "talk")
	for i, invocation := range of[canister.Invocation](t, log, "talk") {
		if in := intents[i]; in.Attempt != 1 || in.Key != keyOf("talk", invocation.ID) || in.Invocation != invocation.ID || in.Repeatable {
			t.Errorf("the intent of %s is %+v", invocation.ID, in)
		}
	}
	if !slices.Equal(l.calls, []string{intents[2].Key + ` {"n":1}`}) {
		t.Errorf("the calls are %q, and the key is %s", l.calls, intents[2].Key)
	}
	sound(t, talk.History())
	sameAs(t, log, "talk", talk.History())
}

// With a log a result is written as it comes, whatever was asked for before.
func TestResultsAreWrittenAsTheyCome(t *testing.T) {
	store, release := history.NewMemory(), make(chan struct{})
	slow := fn("slow", func(context.Context, *invoker.Call) (invoker.Output, error) {
		<-release
		return invoker.Output{}, nil
	})
	talk := process(t, store, newRoster(t, slow, echo("quick")), converse.Options{}, asks(call("slow", `{}`), call("quick", `{}`)), done)
	for event, err := range talk.Send(t.Context(), canister.Text("Go.")) {
		if err != nil {
			t.Fatal(err)
		}
		if ended, ok := event.(converse.InvocationCompleted); ok && ended.Invocation.Name == "local__quick" {
			if r := of[canister.Result](t, store, "talk"); len(r) != 1 || r[0].Invocation != ended.Invocation.ID {
				t.Errorf("the log has the results %v", r)
			}
			close(release)
		}
	}
}

// A timer holds calls that are open, too.
func TestTimerHoldsCalls(t *testing.T) {
	var l ledger
	store := put(t, canister.Wait{Head: head("w"), For: canister.WaitTimer, Deadline: time.Now().Add(time.Hour)})
	carryOn(t, process(t, store, newRoster(t, l.tool("act")), converse.Options{}), converse.ReasonWaiting)
	if l.count() != 0 {
		t.Error("a call was made")
	}
	answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictCancel})
	carryOn(t, process(t, store, newRoster(t, l.tool("act")), converse.Options{}, done), converse.ReasonAnswered)
	if l.count() != 1 {
		t.Errorf("%d calls", l.count())
	}
}

// A process that wakes up late, with its call approved, does not make it.
func TestZombieStopsBeforeItsEffect(t *testing.T) {
	var l ledger
	store := history.NewMemory()
	entered, release := make(chan struct{}), make(chan struct{})
	zombie := process(t, store, newRoster(t, l.tool("act")), converse.Options{
		Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			close(entered)
			<-release
			return converse.Allow(), nil
		},
	}, asks(call("act", `{}`)))
	failed := make(chan error, 1)
	go func() {
		_, err := zombie.Ask(t.Context(), canister.Text("Go."))
		failed <- err
	}()
	<-entered
	carryOn(t, process(t, store, newRoster(t, l.tool("act")), converse.Options{}, done), converse.ReasonAnswered)
	close(release)
	var conflict *history.ConflictError
	if err := <-failed; !errors.As(err, &conflict) {
		t.Errorf("the zombie ends with %v", err)
	}
	if l.count() != 1 {
		t.Errorf("%d effects", l.count())
	}
	if err := zombie.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	sameAs(t, store, "talk", zombie.History())
	if turn := carryOn(t, zombie, converse.ReasonAnswered); turn.Text() != "Done." || l.count() != 1 {
		t.Errorf("the zombie says %q, %d effects", turn.Text(), l.count())
	}
}

// An intent that a log did not take, or took without saying so, is no doubt to the
// process that knows that it made no call; others have to doubt it.
func TestIntentThatFailed(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		var l ledger
		log := &logged{Log: history.NewMemory()}
		fails := func(n int) error {
			if n == 3 {
				return errors.New("the disk is full")
			}
			return nil
		}
		if log.before = fails; arrives {
			log.before, log.after = nil, fails
		}
		talk := process(t, log, newRoster(t, l.tool("act")), converse.Options{}, asks(call("act", `{}`)), done)
		if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil || l.count() != 0 {
			t.Fatalf("err = %v, %d effects", err, l.count())
		}
		carryOn(t, talk, converse.ReasonAnswered)
		if r := results(talk.History()); len(r) != 1 || r[0].Code != "" || l.count() != 1 {
			t.Errorf("arrives %v: the results are %v, %d effects", arrives, r, l.count())
		}
	}
}

// Who trusts no hints of an ensemble has none of its calls made twice.
func TestDoubtAboutWhatIsNotTrusted(t *testing.T) {
	for _, test := range []struct {
		trust ensemble.Trust
		tool  func(invoker.Invoker) invoker.Invoker
		calls int
	}{
		{ensemble.TrustNone, readOnly, 0}, {ensemble.TrustNone, idempotent, 0},
		{ensemble.TrustReads, readOnly, 1}, {ensemble.TrustReads, idempotent, 1}, {ensemble.TrustReads, plain, 0},
		{ensemble.TrustAll, readOnly, 1}, {ensemble.TrustAll, idempotent, 1}, {ensemble.TrustAll, plain, 0},
	} {
		var l ledger
		e := ensemble.New("local", ensemble.LocalSource(test.tool(l.tool("act"))), &ensemble.Options{Trust: test.trust})
		talk := process(t, put(t, intent(true)), rosterOf(t, e), converse.Options{}, done)
		carryOn(t, talk, converse.ReasonAnswered)
		if got := l.count(); got != test.calls {
			t.Errorf("trust %q: %d calls, want %d", test.trust, got, test.calls)
		}
	}
}

// What becomes of a call with an intent and no result.
func TestDoubt(t *testing.T) {
	for _, test := range []struct {
		name       string
		repeatable bool                                  // says the intent
		tool       func(invoker.Invoker) invoker.Invoker // the tool now; nil for none
		ask        bool                                  // the policy
		answer     *canister.Answer                      // to the wait
		later      time.Duration                         // until the next process
		id         string                                // of the conversation there
		want       string                                // code and part of the text of the result
		calls      int
		waits      bool
	}{
		{name: "reported", tool: plain, want: "OUTCOME_UNKNOWN started at"},
		{name: "again", repeatable: true, tool: idempotent, want: " effect", calls: 1},
		{name: "again, read-only", repeatable: true, tool: readOnly, want: " effect", calls: 1},
		{name: "again, whatever the policy", repeatable: true, tool: idempotent, ask: true, want: " effect", calls: 1},
		{name: "no longer repeatable", repeatable: true, tool: plain, want: "OUTCOME_UNKNOWN"},
		{name: "was not repeatable", tool: idempotent, want: "OUTCOME_UNKNOWN"},
		{name: "no tool", repeatable: true, want: "OUTCOME_UNKNOWN"},
		{name: "asked", tool: plain, ask: true, waits: true},
		{name: "asked, too late", tool: plain, ask: true, waits: true, later: 25 * time.Hour, want: "OUTCOME_UNKNOWN in time"},
		{name: "call again", tool: plain, ask: true, waits: true, answer: &canister.Answer{Verdict: canister.VerdictAllow}, want: " effect", calls: 1},
		{
			name: "it was made", tool: plain, ask: true, waits: true,
			answer: &canister.Answer{Verdict: canister.VerdictDone, Content: canister.Texts("all well")}, want: " all well",
		},
		{
			name: "nobody knows", tool: plain, ask: true, waits: true,
			answer: &canister.Answer{Verdict: canister.VerdictUnknown, Reason: "no trace"}, want: "OUTCOME_UNKNOWN according to dana: no trace",
		},
		{name: "an answer in a fork", tool: plain, ask: true, waits: true, answer: &canister.Answer{Verdict: canister.VerdictAllow}, id: "fork", want: "wait"},
		{name: "an outcome in a fork", tool: plain, ask: true, waits: true, answer: &canister.Answer{Verdict: canister.VerdictDone}, id: "fork", want: "wait"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l ledger
				store := put(t, intent(test.repeatable))
				roster := func() *ensemble.Roster {
					if test.tool == nil {
						return newRoster(t)
					}
					return newRoster(t, test.tool(l.tool("act")))
				}
				options := converse.Options{AskDoubt: test.ask}
				if test.waits {
					turn := carryOn(t, process(t, store, roster(), options), converse.ReasonWaiting)
					if w := turn.Waits[0]; w.For != canister.WaitOutcome || w.Arguments != `{"n":1}` || w.Deadline.Sub(w.Time) != 24*time.Hour {
						t.Errorf("it waits for %+v", w)
					}
					if test.answer == nil && test.later == 0 {
						return
					}
					if answer := test.answer; answer != nil {
						answer.Wait, answer.By = turn.Waits[0].ID, "dana"
						if err := waits.Answer(t.Context(), store, "talk", *answer, time.Now()); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(test.later)
				}
				if test.id != "" {
					if err := store.Fork(t.Context(), "talk", len(of[canister.Canister](t, store, "talk")), test.id); err != nil {
						t.Fatal(err)
					}
					options.ID = test.id
					carryOn(t, process(t, store, roster(), options), converse.ReasonWaiting)
					return
				}
				talk := process(t, store, roster(), options, done)
				carryOn(t, talk, converse.ReasonAnswered)
				code, text, _ := strings.Cut(test.want, " ")
				if r := results(talk.History()); len(r) != 1 || r[0].Code != code || !strings.Contains(canister.TextOf(r[0].Content), text) {
					t.Errorf("the results are %v, want %s", r, test.want)
				}
				if l.count() != test.calls || test.calls == 1 && l.calls[0] != keyOf("talk", "i1")+` {"n":1}` {
					t.Errorf("the calls are %q", l.calls)
				}
				if in := of[canister.Intent](t, store, "talk"); test.calls == 1 && (len(in) != 2 || in[1].Attempt != 2 || in[1].Key != in[0].Key) {
					t.Errorf("the intents are %+v", in)
				}
			})
		})
	}
}

func plain(i invoker.Invoker) invoker.Invoker { return i }

// Send makes no call, and tells the truth about those that are open.
func TestSendTellsWhatIsOpen(t *testing.T) {
	wait := canister.Wait{Head: head("w"), For: canister.WaitApproval, Invocation: "i1", Conversation: "talk", Deadline: time.Now().Add(time.Hour)}
	asked := canister.Wait{Head: head("w"), For: canister.WaitElicitation, Invocation: "i1", Conversation: "talk", Deadline: time.Now().Add(time.Hour)}
	for _, test := range []struct {
		behind []canister.Canister
		want   string
	}{
		{nil, "CANCELED The call was not started"},
		{[]canister.Canister{intent(false)}, "OUTCOME_UNKNOWN It may or may not have taken effect"},
		{[]canister.Canister{intent(true)}, "OUTCOME_UNKNOWN It may or may not have taken effect"},
		{[]canister.Canister{wait}, "CANCELED The call was not started"},
		{[]canister.Canister{intent(true), asked}, "CANCELED The call was stopped"},
	} {
		var l ledger
		talk := process(t, put(t, test.behind...), newRoster(t, l.tool("act")), converse.Options{}, done)
		play(t, talk, "And now?")
		code, text, _ := strings.Cut(test.want, " ")
		if r := results(talk.History()); len(r) != 1 || r[0].Code != code || !strings.Contains(canister.TextOf(r[0].Content), text) || l.count() != 0 {
			t.Errorf("the results are %v, want %s; %d calls", r, test.want, l.count())
		}
		sound(t, talk.History())
	}
}

// Wherever a process dies, a tool without hints has one effect at most, and the
// result says so if that cannot be known; an idempotent one is called again with
// the same key.
func TestEffectsOverCrashes(t *testing.T) {
	died := errors.New("the process died")
	for _, again := range []bool{false, true} {
		for _, arrives := range []bool{false, true} {
			for at := 1; ; at++ {
				var l ledger
				tool := l.tool("act")
				if again {
					tool = idempotent(tool)
				}
				log := &logged{Log: history.NewMemory()}
				fails := func(n int) error {
					if n >= at {
						return died
					}
					return nil
				}
				if log.before = fails; arrives {
					log.before, log.after = nil, fails
				}
				_, err := process(t, log, newRoster(t, tool), converse.Options{}, asks(call("act", `{}`)), done).Ask(t.Context(), canister.Text("Go."))
				if err == nil {
					break
				}
				store := log.Log
				before, intents := l.count(), len(of[canister.Intent](t, store, "talk"))
				wrote := len(of[canister.Result](t, store, "talk"))
				heir := process(t, store, newRoster(t, tool), converse.Options{}, longLines(t, store)...)
				if lastTurn(t, taken(t, heir)).Text() != "Done." {
					t.Errorf("append %d: the turn does not end", at)
				}
				r := results(heir.History())[0]
				where := fmt.Sprintf("again %v, arrives %v, append %d: %d effects, %v", again, arrives, at, l.count(), r)
				switch {
				case intents == 0 && before > 0:
					t.Error("no intent, but an effect: " + where)
				case again && r.Code != "", !again && l.count() > 1, r.Code == "" && l.count() == 0:
					t.Error(where)
				case !again && intents > 0 && wrote == 0 && r.Code != "OUTCOME_UNKNOWN":
					t.Error("not in doubt: " + where)
				}
				keys := map[string]bool{}
				for _, c := range l.calls {
					keys[c] = true
				}
				if len(keys) != 1 && l.count() > 0 {
					t.Errorf("the keys differ: %q", l.calls)
				}
			}
		}
	}
}

// longLines returns the answers of a model that the log has not got yet: a call, and the end.
func longLines(t *testing.T, log history.Log) []conversetest.Line {
	return []conversetest.Line{asks(call("act", `{}`)), done}[len(of[canister.Assistant](t, log, "talk")):]
}

func taken(t *testing.T, talk *converse.Conversation) iter.Seq2[converse.Event, error] {
	if err := talk.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return again(t, talk)
}

// A call in doubt that is about to be repeated when its turn is cancelled may have been made before.
func TestCancelledBeforeItIsRepeated(t *testing.T) {
	var l ledger
	ctx, cancel := context.WithCancel(t.Context())
	options := converse.Options{Forbid: func(context.Context, converse.Approval) (string, bool) {
		cancel()
		return "", false
	}}
	talk := process(t, put(t, intent(true)), newRoster(t, idempotent(l.tool("act"))), options)
	if turn, err := talk.Run(ctx); err == nil {
		t.Errorf("the turn is %+v", turn)
	}
	r := results(talk.History())
	if len(r) != 1 || r[0].Code != "OUTCOME_UNKNOWN" || !strings.Contains(canister.TextOf(r[0].Content), "It was not repeated: the turn was cancelled.") {
		t.Errorf("the results are %v", r)
	}
	if l.count() != 0 {
		t.Errorf("the calls are %q", l.calls)
	}
}
