// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// logged is a log whose appends can be made to fail.
type logged struct {
	history.Log
	appends int
	before  func(n int) error // of the nth append: it is not made
	after   func(n int) error // it is made, and nobody learns of it
	read    []int             // how many canisters each Read passed over
}

func (l *logged) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	l.read = append(l.read, after)
	return l.Log.Read(ctx, id, after)
}

func (l *logged) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	l.appends++
	if l.before != nil {
		if err := l.before(l.appends); err != nil {
			return err
		}
	}
	if err := l.Log.Append(ctx, id, length, canisters...); err != nil {
		return err
	}
	if l.after != nil {
		return l.after(l.appends)
	}
	return nil
}

// longTalk is what the model says in a turn of three exchanges, from where the
// log is on.
func longTalk(t *testing.T, log history.Log) *conversetest.Script {
	lines := []conversetest.Line{
		{Calls: []conversetest.Call{call("a", `{}`), call("a", `{}`)}},
		{Calls: []conversetest.Call{call("a", `{}`)}},
		{Text: "Done."},
	}
	for c, err := range log.Read(t.Context(), "talk", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind() == canister.KindAssistant {
			lines = lines[1:]
		}
	}
	return conversetest.NewScript(lines...)
}

// Whatever the step at which a process dies, another one that has the log ends
// the turn as it would have ended.
func TestLogOutlivesTheConversation(t *testing.T) {
	died := errors.New("the process died")
	for _, arrives := range []bool{false, true} {
		for at := 1; ; at++ {
			store := history.NewMemory()
			fails := func(n int) error {
				if n >= at {
					return died
				}
				return nil
			}
			log := &logged{Log: store}
			if arrives {
				log.after = fails
			} else {
				log.before = fails
			}
			first := converse.New(longTalk(t, store), newRoster(t, echo("a")), &converse.Options{ID: "talk", Log: log, Instructions: "Be brief."})
			_, err := first.Ask(t.Context(), canister.Text("Go."))
			if err == nil {
				if at < 9 {
					t.Fatalf("there were %d appends", at-1)
				}
				break
			}
			if !errors.Is(err, died) {
				t.Fatalf("append %d: %v", at, err)
			}
			second := converse.New(longTalk(t, store), newRoster(t, echo("a")), &converse.Options{ID: "talk", Log: store, Instructions: "Be brief."})
			if err := second.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			turn := lastTurn(t, again(t, second))
			if turn.Text() != "Done." {
				t.Errorf("append %d, arrives %v: the turn ends with %q", at, arrives, turn.Text())
			}
			sound(t, second.History())
			if n := len(canister.Messages(second.History())); n != 11 {
				t.Errorf("append %d, arrives %v: %d canisters", at, arrives, n)
			}
			sameAs(t, store, "talk", second.History())
		}
	}
}

// again carries a conversation on, or begins it if nothing was said.
func again(t *testing.T, talk *converse.Conversation) iter.Seq2[converse.Event, error] {
	for _, c := range talk.History() {
		if c.Kind() == canister.KindUser {
			return talk.Continue(t.Context())
		}
	}
	return talk.Send(t.Context(), canister.Text("Go."))
}

func lastTurn(t *testing.T, events iter.Seq2[converse.Event, error]) (turn converse.Turn) {
	t.Helper()
	for event, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := event.(converse.TurnCompleted); ok {
			turn = done.Turn
		}
	}
	return turn
}

// sameAs reports where what a log has is not the history.
func sameAs(t *testing.T, log history.Log, id string, want []canister.Canister) {
	t.Helper()
	var ids []string
	for c, err := range log.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.Header().ID)
	}
	var wanted []string
	for _, c := range want {
		wanted = append(wanted, c.Header().ID)
	}
	if fmt.Sprint(ids) != fmt.Sprint(wanted) {
		t.Errorf("the log has %v, and the history %v", ids, wanted)
	}
}

// Results that a log took without saying so are not written twice, and their
// calls are not made again.
func TestLogThatTookItAfterAll(t *testing.T) {
	var ran atomic.Int32
	counts := fn("a", func(context.Context, *invoker.Call) (invoker.Output, error) {
		ran.Add(1)
		return invoker.Output{Content: canister.Texts("ok")}, nil
	})
	log := &logged{Log: history.NewMemory()}
	lost := errors.New("the answer of the log was lost")
	log.after = func(n int) error {
		if n == 4 { // the user, the model, the intent, the result
			return lost
		}
		return nil
	}
	script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("a", `{}`)}}, conversetest.Line{Text: "Done."})
	talk := converse.New(script, newRoster(t, counts), &converse.Options{ID: "talk", Log: log})
	if _, err := talk.Ask(t.Context(), canister.Text("Go.")); !errors.Is(err, lost) {
		t.Fatalf("err = %v", err)
	}
	if turn := lastTurn(t, talk.Continue(t.Context())); turn.Text() != "Done." || ran.Load() != 1 {
		t.Errorf("the turn ends with %q, and the tool ran %d times", turn.Text(), ran.Load())
	}
	sound(t, talk.History())
	sameAs(t, log, "talk", talk.History())
}

// A process that was given up for dead and wakes up late adds nothing.
func TestLogKnowsOneWriter(t *testing.T) {
	store := history.NewMemory()
	entered, release := make(chan struct{}), make(chan struct{})
	slow := fn("a", func(context.Context, *invoker.Call) (invoker.Output, error) {
		close(entered)
		<-release
		return invoker.Output{Content: canister.Texts("late")}, nil
	})
	asks := conversetest.Line{Calls: []conversetest.Call{call("a", `{}`)}}
	zombie := converse.New(conversetest.NewScript(asks), newRoster(t, slow), &converse.Options{ID: "talk", Log: store})
	failed := make(chan error, 1)
	go func() {
		_, err := zombie.Ask(t.Context(), canister.Text("Go."))
		failed <- err
	}()
	<-entered
	heir := converse.New(conversetest.NewScript(conversetest.Line{Text: "Done."}), newRoster(t, echo("a")), &converse.Options{ID: "talk", Log: store})
	if turn := lastTurn(t, heir.Continue(t.Context())); turn.Text() != "Done." {
		t.Errorf("the heir ends with %q", turn.Text())
	}
	close(release)
	var conflict *history.ConflictError
	if err := <-failed; !errors.As(err, &conflict) || conflict.Length != 6 {
		t.Errorf("the zombie ends with %v", err)
	}
	if err := zombie.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	sameAs(t, store, "talk", zombie.History())
	sound(t, zombie.History())
	if strings.Contains(fmt.Sprint(zombie.History()), "late") {
		t.Error("what the zombie did is in the history")
	}
}

// A conversation that was deleted, and begun anew by others, does not go on with the new one.
func TestBegunAnew(t *testing.T) {
	store := history.NewMemory()
	script := conversetest.NewScript(conversetest.Line{Text: "Old."})
	old := converse.New(script, nil, &converse.Options{ID: "talk", Log: store})
	play(t, old, "A secret.")
	info, err := store.Info(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), "talk", info.Length); err != nil {
		t.Fatal(err)
	}
	anew := converse.New(conversetest.NewScript(conversetest.Line{Text: "New."}, conversetest.Line{Text: "Newer."}), nil, &converse.Options{ID: "talk", Log: store})
	play(t, anew, "Go.")
	play(t, anew, "Go on.")
	_, err = old.Ask(t.Context(), canister.Text("And now?"))
	if conflict, ok := errors.AsType[*history.ConflictError](err); !ok || conflict.Length != 0 {
		t.Errorf("the deleted conversation goes on: %v", err)
	}
	sameAs(t, store, "talk", anew.History())
	played(t, script)
}

// What was read is not read again, and what others add is. Then the last canister is compared.
func TestLogIsReadOnce(t *testing.T) {
	log := &logged{Log: history.NewMemory()}
	options := &converse.Options{ID: "talk", Log: log}
	talk := converse.New(conversetest.NewScript(conversetest.Line{Text: "One."}, conversetest.Line{Text: "Two."}), nil, options)
	play(t, talk, "Go.")
	other := converse.New(conversetest.NewScript(), nil, &converse.Options{ID: "talk", Log: log.Log})
	if err := other.Add(t.Context(), canister.Document{Title: "News"}); err != nil {
		t.Fatal(err)
	}
	play(t, talk, "Go on.")
	if fmt.Sprint(log.read) != "[0 2 1]" || len(talk.History()) != 5 {
		t.Errorf("reads from %v; %d canisters", log.read, len(talk.History()))
	}
}

// Who only looks leaves no conversation behind.
func TestLoadWritesNothing(t *testing.T) {
	log := &logged{Log: history.NewMemory()}
	talk := converse.New(conversetest.NewScript(), nil, &converse.Options{ID: "talk", Log: log, Instructions: "Be brief."})
	if err := talk.Load(t.Context()); err != nil || log.appends != 0 || len(talk.History()) != 0 {
		t.Errorf("err = %v, %d appends", err, log.appends)
	}
}

func TestLogAndHistory(t *testing.T) {
	talk := converse.New(conversetest.NewScript(), nil, &converse.Options{ID: "talk", Log: history.NewMemory(), History: putDown(t)})
	if err := talk.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "both History and Log") {
		t.Errorf("err = %v", err)
	}
	broken := history.NewMemory()
	orphan := canister.Result{Head: canister.Head{ID: "r"}, Invocation: "nobody"}
	if err := broken.Append(t.Context(), "talk", 0, orphan); err != nil {
		t.Fatal(err)
	}
	talk = converse.New(conversetest.NewScript(), nil, &converse.Options{ID: "talk", Log: broken})
	if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil || !strings.Contains(err.Error(), "sequence.Repair") {
		t.Errorf("err = %v", err)
	}
	if len(talk.History()) != 0 {
		t.Error("what is no history was taken up")
	}
}

// Work that finds an empty log does not begin a conversation: it may have been deleted.
func TestOnlySendAndAddBeginAConversation(t *testing.T) {
	store := history.NewMemory()
	talk := process(t, store, nil, converse.Options{Instructions: "Be kind."}, done)
	if turn, err := talk.Run(t.Context()); err != nil || turn.Reason != converse.ReasonNothing {
		t.Errorf("Run: %+v, %v", turn, err)
	}
	for _, err := range talk.Step(t.Context()) {
		if err != nil {
			t.Errorf("Step: %v", err)
		}
	}
	if info, err := store.Info(t.Context(), "talk"); !errors.Is(err, history.ErrNotFound) {
		t.Errorf("the store has %+v (%v)", info, err)
	}
	play(t, talk, "Hello.")
	if got := kinds(talk.History()); got != "supervisor user assistant" {
		t.Errorf("the history has %s", got)
	}
}

// Close appends the results that the log did not accept, unless another process has carried on
// the conversation.
func TestCloseStoresOwedResults(t *testing.T) {
	for _, overtaken := range []bool{false, true} {
		var l ledger
		failed := false
		store := newWatchedLog(func(_ context.Context, added []canister.Canister) error {
			if added[0].Kind() != canister.KindResult || failed {
				return nil
			}
			failed = true
			return errors.New("connection reset by peer")
		})
		talk := process(t, store, newRoster(t, l.tool("act")), converse.Options{}, asks(call("act", `{}`)))
		if _, err := talk.Ask(t.Context(), canister.Text("Go.")); err == nil || l.count() != 1 {
			t.Fatalf("Ask returned %v after %d calls", err, l.count())
		}
		if overtaken {
			if _, err := process(t, store, nil, converse.Options{}, done).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		before := len(of[canister.Canister](t, store, "talk"))
		for range 2 {
			if err := talk.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		results, after := of[canister.Result](t, store, "talk"), len(of[canister.Canister](t, store, "talk"))
		if len(results) != 1 || overtaken != (results[0].Code == "OUTCOME_UNKNOWN") || !overtaken && after != before+1 || overtaken && after != before {
			t.Errorf("overtaken: %v; Close appended %d canisters, and the results are %+v", overtaken, after-before, results)
		}
	}
}
