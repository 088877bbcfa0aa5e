// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/invoker"
)

// hooked is a log that something happens to before and behind each operation.
type hooked struct {
	history.Log
	n  int
	at func(n int, when string) error
}

func (h *hooked) hook(when string) error {
	h.n++
	return h.at(h.n, when)
}

func (h *hooked) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		if err := h.hook("before read"); err != nil {
			yield(nil, err)
			return
		}
		for c, err := range h.Log.Read(ctx, id, after) {
			if !yield(c, err) {
				return
			}
		}
		_ = h.hook("behind read")
	}
}

func (h *hooked) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if err := h.hook("before append"); err != nil {
		return err
	}
	if err := h.Log.Append(ctx, id, length, canisters...); err != nil {
		return err
	}
	return h.hook("behind append")
}

// answerAll has two people answer all that is waited for.
func answerAll(t *testing.T, store history.Log) {
	for _, wait := range waits.Open("", of[canister.Canister](t, store, "talk"), time.Now()) {
		verdict := canister.VerdictAllow
		if wait.For == canister.WaitElicitation {
			verdict = canister.VerdictAccept
		}
		for n, want := range []error{nil, waits.ErrNotOpen} {
			err := waits.Answer(t.Context(), store, "talk", canister.Answer{Wait: wait.ID, Verdict: verdict, By: "dana"}, time.Now())
			if !errors.Is(err, want) {
				t.Errorf("answer %d: %v", n, err)
			}
		}
	}
}

// thrice calls each of three tools, and then is done, whatever became of what it
// has said before.
type thrice struct{}

func (thrice) Exchange(ctx context.Context, r *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	line := done
	if len(results(r.History)) == 0 {
		line = asks(call("act", `{"n":1}`), call("asking", `{}`), call("other", `{}`))
	}
	return conversetest.NewScript(line).Exchange(ctx, r)
}

// momentous is a conversation with a call that needs an approval, one that asks a
// person, and one that does neither.
type momentous struct {
	*testing.T
	ledger
	log     *hooked
	options converse.Options
	tools   []invoker.Invoker
}

func newMomentous(t *testing.T) *momentous {
	m := &momentous{T: t, log: &hooked{Log: history.NewMemory()}}
	m.options = converse.Options{ID: "talk", Log: m.log, Approve: defers, Ask: func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return nil, converse.Later(0, "dana")
	}}
	effect := m.tool("asking")
	asking := fn("asking", func(ctx context.Context, c *invoker.Call) (invoker.Output, error) {
		if r, err := c.Ask(ctx, &invoker.ElicitRequest{Message: "Sure?", Anew: true}); err != nil || r.Action != invoker.Accept {
			return invoker.Output{}, err
		}
		return effect.Invoke(ctx, c)
	})
	m.tools = []invoker.Invoker{m.tool("act"), asking, m.tool("other")}
	return m
}

// work carries the conversation on, and reports whether it is answered.
func (m *momentous) work(talk *converse.Conversation) (answered bool) {
	defer func() { _ = recover() }() // of the log
	events := talk.Continue(m.Context())
	if len(of[canister.User](m, m.log.Log, "talk")) == 0 {
		events = talk.Send(m.Context(), canister.Text("Go."))
	}
	for event, err := range events {
		if completed, ok := event.(converse.TurnCompleted); ok && err == nil {
			answered = completed.Turn.Reason == converse.ReasonAnswered
		}
	}
	return answered
}

// The answers come at each operation of the log, and the log fails at each, with
// what it was given or without, or panics. The same conversation goes on then, or
// one in another process. No call is made twice, none that has failed unsaid, and
// the history is sound.
func TestEachMoment(t *testing.T) {
	broken := errors.New("the disk is full")
	for mode, happens := range map[string]func(store history.Log, when string) error{
		"answers": func(store history.Log, _ string) error { answerAll(t, store); return nil },
		"fails":   func(history.Log, string) error { return broken },
		"answers and fails": func(store history.Log, _ string) error {
			answerAll(t, store)
			return broken
		},
		"panics": func(_ history.Log, when string) error {
			if strings.HasSuffix(when, "append") {
				panic(broken)
			}
			return nil
		},
	} {
		for _, same := range []bool{true, false} {
			for moment, reached := 1, true; reached; moment++ {
				reached = tryMoment(t, fmt.Sprintf("%s at %d, the same process %v", mode, moment, same), same, moment, happens)
			}
		}
	}
}

func tryMoment(t *testing.T, name string, same bool, moment int, happens func(history.Log, string) error) (reached bool) {
	m := newMomentous(t)
	m.log.at = func(n int, when string) error {
		if n != moment || reached {
			return nil
		}
		reached = true
		return happens(m.log.Log, when)
	}
	roster := newRoster(t, m.tools...)
	talk := converse.New(thrice{}, roster, &m.options)
	for tries := 0; !m.work(talk); tries++ {
		if tries > 12 {
			t.Fatalf("%s: no end: %s", name, kindsOf(of[canister.Canister](t, m.log.Log, "talk")))
		}
		answerAll(t, m.log.Log)
		if !same {
			talk = converse.New(thrice{}, roster, &m.options)
		}
	}
	whole := of[canister.Canister](t, m.log.Log, "talk")
	sound(t, whole)
	good := 0
	for _, r := range results(whole) {
		switch r.Code {
		case "":
			good++
		case "OUTCOME_UNKNOWN", "CANCELED":
		default:
			t.Errorf("%s: the result is %v", name, r)
		}
	}
	made := map[string]bool{}
	for _, c := range m.calls {
		if made[c] {
			t.Errorf("%s: made twice: %s", name, c)
		}
		made[c] = true
	}
	if len(made) < good || good < 1 || len(results(whole)) != 3 {
		t.Errorf("%s: %d calls, %d good results of %d", name, len(made), good, len(results(whole)))
	}
	return reached
}

// Wherever a conversation is forked, an approval of the one does not let a call of
// the other be made.
func TestForksOfAnApproval(t *testing.T) {
	var l ledger
	store := history.NewMemory()
	lines := []conversetest.Line{asks(call("act", `{"n":1}`), call("other", `{}`)), done}
	talk := process(t, store, newRoster(t, l.tool("act"), echo("other")), converse.Options{Approve: defers}, lines...)
	play(t, talk, "Go.")
	answer(t, store, "talk", canister.Answer{Verdict: canister.VerdictAllow})
	carryOn(t, talk, converse.ReasonAnswered)
	for n := 1; n <= len(talk.History()); n++ {
		id := fmt.Sprint("fork", n)
		if err := store.Fork(t.Context(), "talk", n, id); err != nil {
			t.Fatal(err)
		}
		said := len(of[canister.Assistant](t, store, id))
		fork := process(t, store, newRoster(t, l.tool("act"), echo("other")), converse.Options{ID: id, Approve: defers}, lines[said:]...)
		if _, err := fork.Run(t.Context()); err != nil {
			t.Fatal(n, err)
		}
		sound(t, settled(fork.History()))
	}
	if l.count() != 1 {
		t.Errorf("%d calls", l.count())
	}
}
