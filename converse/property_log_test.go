// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/invoker/audit"
)

// Whatever happens, and at whatever append a process dies or its log fails: what
// the log has is a sound history, from which the same follows for whoever reads
// it; no call is made without its intent, or twice unless its tool may be called
// twice; the results are true; and another process carries on to the end.
func TestWhateverHappensToALog(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) { newLogWorld(t, seed).live() })
}

// logWorld is a world in which there is a log, and processes die.
type logWorld struct {
	*world
	store *history.Memory
	dead  bool // the process is
}

func newLogWorld(t *testing.T, seed uint64) *logWorld {
	w := &logWorld{store: history.NewMemory(), world: &world{
		T: t, rng: rand.New(rand.NewPCG(seed, 2)), ran: map[string]int{}, ended: map[string]int{}, inside: map[string]int{}, audited: map[string]int{},
	}}
	w.opts = *w.options()
	w.opts.ID, w.opts.Log = "talk", w
	w.opts.Audit = audit.New(w, nil)
	w.opts.AskDoubt = w.of(0, 1) == 1
	if w.opts.Approve != nil {
		w.opts.Approve = w.mayDefer
	}
	w.talk = converse.New(w, w.newRoster(), &w.opts)
	return w
}

func (w *logWorld) mayDefer(ctx context.Context, ask converse.Approval) (converse.Decision, error) {
	if w.of(0, 1) == 0 {
		return converse.Defer(time.Duration(w.of(0, 1, 60))*time.Minute, ""), nil
	}
	return w.approve(ctx, ask)
}

func (w *logWorld) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	return w.store.Read(ctx, id, after)
}

func (w *logWorld) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if ctx.Err() != nil {
		w.Error("the log is cancelled with the turn")
	}
	fails, late, panics, dies := w.chance(30), w.chance(2), w.chance(100), w.chance(2)
	w.mu.Lock()
	dead := w.dead
	w.dead = dead || fails && dies
	w.mu.Unlock()
	if dead || fails && !late {
		return errors.New("the disk is gone")
	}
	if panics {
		panic(planned)
	}
	if err := w.store.Append(ctx, id, length, canisters...); err != nil || !fails {
		return err
	}
	return errors.New("the answer of the disk is gone")
}

func (w *logWorld) live() {
	defer w.strays.Wait()
	for range w.of(2, 4, 8) {
		w.work(w.of(0, 0, 1, 1, 2, 3))
		w.judge()
		if w.of(0, 1) == 0 {
			w.answerSome()
		}
		if w.dead || w.closed || w.chance(3) {
			w.move()
		}
	}
	w.mu.Lock()
	w.kind = true
	w.mu.Unlock()
	w.move()
	for n := 0; ; n++ {
		turn, err := w.talk.Run(context.Background())
		if err != nil || n > 50 {
			w.Fatalf("at last: %+v, %v", turn, err)
		}
		if w.judge(); turn.Reason != converse.ReasonWaiting {
			break
		}
		if w.answerSome(); w.of(0, 1) == 0 {
			time.Sleep(time.Until(turn.Waits[0].Deadline))
		}
	}
	if turn, err := w.talk.Ask(context.Background(), canister.Text("And now?")); err != nil || turn.Reason == converse.ReasonWaiting {
		w.Errorf("at last: %+v, %v", turn, err)
	}
	sound(w, w.talk.History())
	sameAs(w.T, w.store, "talk", w.talk.History())
	if err := w.talk.Close(context.Background()); err != nil {
		w.Error(err)
	}
}

// move takes the conversation up in another process.
func (w *logWorld) move() {
	if err := w.talk.Close(context.Background()); err != nil {
		w.Error(err)
	}
	w.dead, w.closed = false, false
	w.talk = converse.New(w, w.newRoster(), &w.opts)
}

// answerSome answers what is waited for, or some of it.
func (w *logWorld) answerSome() {
	for _, wait := range waits.Open("", w.kept(), time.Now()) {
		verdicts := wait.For.Answers()
		answer := canister.Answer{Wait: wait.ID, Verdict: verdicts[w.of(0, 1, 2)%len(verdicts)], By: "dana", Content: canister.Texts("it did")}
		if answer.Verdict == canister.VerdictChange {
			answer.Arguments = []byte(`{"x":2}`)
		}
		if w.of(0, 1, 2) == 0 {
			continue
		}
		if err := waits.Answer(context.Background(), w.store, "talk", answer, time.Now()); err != nil {
			w.Error(err)
		}
	}
}

// kept returns what the log has.
func (w *logWorld) kept() []canister.Canister {
	var kept []canister.Canister
	for c, err := range w.store.Read(context.Background(), "talk", 0) {
		if err != nil {
			w.Fatal(err)
		}
		kept = append(kept, c)
	}
	return kept
}

// judge looks at what the log has.
func (w *logWorld) judge() {
	w.Helper()
	kept := w.kept()
	for i, c := range w.talk.History() {
		if i >= len(kept) || kept[i].Header().ID != c.Header().ID {
			w.Errorf("canister %d of the history is not in the log", i)
			break
		}
	}
	for _, problem := range sequence.Check(kept) {
		if problem.Rule != sequence.RuleOpen {
			w.Errorf("the log is not sound: %v", problem)
		}
	}
	w.judgeNext(kept)
	tools, intents, done := map[string]string{}, map[string]bool{}, map[string]bool{}
	waits, invocations := map[string]string{}, map[string]string{} // the latter by their keys
	for _, c := range kept {
		switch c := c.(type) {
		case canister.Invocation:
			tools[c.ID], invocations[keyOf("talk", c.ID)] = c.Name, c.ID
		case canister.Intent:
			intents[c.Invocation] = true
		case canister.Wait:
			waits[c.ID] = c.Invocation
		case canister.Answer:
			done[waits[c.Wait]] = done[waits[c.Wait]] || c.Verdict == canister.VerdictDone || c.Verdict == canister.VerdictAllow && tools[waits[c.Wait]] != ""
		case canister.Result:
			w.judgeTruth(c, done[c.Invocation])
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, n := range w.ran {
		switch id := invocations[key]; {
		case !intents[id]:
			w.Errorf("the tool of %s ran without an intent", id)
		case n > 1 && tools[id] != "local__reads" && !done[id]:
			w.Errorf("the tool %s of %s ran %d times", tools[id], id, n)
		}
	}
}

// judgeNext sees to it that the same follows from the log as it is written down.
func (w *logWorld) judgeNext(kept []canister.Canister) {
	var file bytes.Buffer
	if err := canister.Encode(&file, kept...); err != nil {
		w.Fatal(err)
	}
	var read []canister.Canister
	for c, err := range canister.Decode(&file) {
		if err != nil {
			w.Fatal(err)
		}
		read = append(read, c)
	}
	policy, now := converse.Policy{Limits: w.opts.Limits}, time.Now()
	if got, want := fmt.Sprintf("%T", converse.Next(read, policy, now)), fmt.Sprintf("%T", converse.Next(kept, policy, now)); got != want {
		w.Errorf("next is %s as read, and was %s", got, want)
	}
}

// judgeTruth judges what a result says of a call.
func (w *logWorld) judgeTruth(result canister.Result, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, id := canister.TextOf(result.Content), result.Invocation
	switch {
	case (strings.Contains(text, "not started") || strings.Contains(text, "not called")) && w.ran[keyOf("talk", id)] > 0 && !answered:
		w.Errorf("the result says %q, but the tool of %s ran", text, id)
	case result.Code == "" && w.ended[keyOf("talk", id)] == 0 && !answered:
		w.Errorf("the tool of %s succeeded without running", id)
	case result.Code == "OUTCOME_UNKNOWN" && strings.Contains(text, "not started"):
		w.Errorf("the result of %s says %q", id, text)
	}
}
