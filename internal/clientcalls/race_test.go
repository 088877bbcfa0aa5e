// SPDX-License-Identifier: Apache-2.0

package clientcalls_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/consort-go/consort/invoker"
)

const (
	atOnce  = 500 // races that share a server
	clients = 2
	targets = 2
)

// In random races of clients that repeat their calls in several processes, people who
// answer, answers that expire, and processes that die at each step, no call is made without
// an approval, and each approval is used at most once. CONSORT_HISTORIES is how
// many, 2,000 if it is not set, and a quarter of them under the race detector.
func TestRaces(t *testing.T) {
	races, err := strconv.Atoi(cmp.Or(os.Getenv("CONSORT_HISTORIES"), strconv.Itoa(raced.Fewer(2000))))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for first := 0; first < races; first += atOnce {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.demand.Within = time.Minute
			for seed := first; seed < first+atOnce; seed++ {
				w.store, w.effects = history.NewMemory(), map[string]int{}
				w.race(rand.New(rand.NewPCG(uint64(seed), 1)))
				total += w.judge(seed)
			}
			_ = w.ensemble.Close(context.Background())
		})
	}
	if total < races/2 {
		t.Errorf("only %d effects in %d races: they show little", total, races)
	}
	t.Logf("%d effects in %d races", total, races)
}

// race lets clients, people and processes do random things at the same time.
func (w *world) race(r *rand.Rand) {
	var all sync.WaitGroup
	for range 3 { // processes
		process := &mortal{Store: w.store, left: 1 + r.IntN(20), late: r.IntN(2) == 0}
		gate := clientcalls.NewGate()
		for range 3 {
			dice := rand.New(rand.NewPCG(r.Uint64(), 2))
			all.Go(func() {
				for range 2 {
					pause(dice)
					client, to := fmt.Sprint("c", dice.IntN(clients)), fmt.Sprint("t", dice.IntN(targets))
					_, _ = w.call(w.t.Context(), gate, process, client, `{"to":"`+to+`"}`, w.user(dice.IntN(8)))
				}
			})
		}
	}
	for range 2 {
		dice := rand.New(rand.NewPCG(r.Uint64(), 3))
		all.Go(func() { w.answers(dice) })
	}
	all.Wait()
}

// pause waits for a part of the time in which an answer holds, or not at all.
func pause(dice *rand.Rand) {
	time.Sleep(time.Duration(dice.IntN(3)) * time.Duration(dice.IntN(25)) * time.Second)
}

// user returns the function that asks the user of a client, who mostly is not there.
func (w *world) user(kind int) func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
	reply := map[int]*invoker.ElicitResult{
		0: {Action: invoker.Accept, Content: map[string]any{"decision": "allow"}}, 1: {Action: invoker.Decline}, 2: {Action: invoker.Dismiss},
	}[kind]
	if reply == nil {
		return nil
	}
	return func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) { return reply, nil }
}

// answers lets a person answer what waits.
func (w *world) answers(dice *rand.Rand) {
	for range 3 {
		pause(dice)
		for info, err := range w.store.List(w.t.Context(), history.Filter{}) {
			if err != nil {
				w.t.Error(err)
				return
			}
			canisters, _ := history.From(w.t.Context(), w.store, info.ID, 0)
			for _, wait := range waits.Open(info.ID, canisters, time.Now()) {
				verdict := []canister.Verdict{canister.VerdictAllow, canister.VerdictAllow, canister.VerdictDeny}[dice.IntN(3)]
				_ = waits.Answer(
					w.t.Context(), w.store, info.ID, canister.Answer{Wait: wait.ID, Verdict: verdict, By: "dana"}, time.Now(),
				) // another one may be faster
			}
		}
	}
}

// judge compares the effects with the logs, and returns how many there are.
func (w *world) judge(seed int) (effects int) {
	intents, used := map[string]int{}, map[string]bool{}
	for info, err := range w.store.List(w.t.Context(), history.Filter{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		canisters, err := history.From(w.t.Context(), w.store, info.ID, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		waiting, answers := map[string]canister.Wait{}, map[string]canister.Answer{}
		for _, c := range canisters {
			switch c := c.(type) {
			case canister.Wait:
				waiting[c.ID] = c
			case canister.Answer:
				answers[c.Wait] = c
			case canister.Intent:
				wait, given := waiting[c.Wait], answers[c.Wait]
				if given.Verdict != canister.VerdictAllow || !given.Time.Before(wait.Deadline) || c.Time.After(given.Time.Add(wait.Deadline.Sub(wait.Time))) {
					w.t.Errorf("seed %d: a call with the answer %+v to %+v", seed, given, wait)
				}
				if used[c.Wait] {
					w.t.Errorf("seed %d: the approval %s was used twice", seed, c.Wait)
				}
				used[c.Wait] = true
				var client, to string
				_, _ = fmt.Sscanf(canister.TextOf(canisters[0].(canister.User).Content), "%s", &client)
				_, _ = fmt.Sscanf(wait.Arguments, `{"to":%q}`, &to)
				intents[client+" "+to]++
			}
		}
	}
	for what, n := range w.effects {
		effects += n
		if n > intents[what] {
			w.t.Errorf("seed %d: %d effects of %s, and %d approvals were used", seed, n, what, intents[what])
		}
	}
	return effects
}
