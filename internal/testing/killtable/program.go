// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/runcode"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// payments is how many calls the program makes.
const payments = 20

// program makes half of its calls in parallel. It returns what became of each.
const program = `def pay(n):
    value, error = attempt(shop__effect, key=str(n))
    return error["code"] if error else "paid"
paid = gather(pay, range(10))
for n in range(10, 20):
    paid.append(pay(n))
return paid`

// Program is the [Engine] of a conversation whose model writes a program. Another engine runs
// it.
func Program(engine Engine) Engine {
	return func(ctx context.Context, c *Child) error {
		source := mcpadapter.HTTP(c.Tools, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}})
		shop := ensemble.New("shop", source, &ensemble.Options{Trust: ensemble.TrustAll})
		roster, err := ensemble.NewRoster(shop, runcode.Ensemble("code", nil))
		if err != nil {
			return err
		}
		defer roster.Close(ctx)
		store := c.Store
		if c.Canister != "" {
			dying := &dyingLog{Store: c.Store}
			if _, err := fmt.Sscan(c.Canister, &dying.moment, &dying.canister); err != nil {
				return err
			}
			store = dying
		}
		return engine(ctx, &Child{Spec: c.Spec, Store: store, Model: c.Model, Roster: roster})
	}
}

// dyingLog is a store whose process dies when it stores a canister.
type dyingLog struct {
	history.Store
	moment   string // before or after
	canister int    // counted from 1
}

// Append implements [history.Log].
func (l *dyingLog) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	struck := length < l.canister && l.canister <= length+len(canisters)
	if struck && l.moment == "before" {
		(&death{}).strike()
	}
	err := l.Store.Append(ctx, conversation, length, canisters...)
	if struck && err == nil {
		(&death{}).strike()
	}
	return err
}

// payWorld starts the servers of a conversation with one program.
func (c Column) payWorld(t *testing.T) *World {
	t.Helper()
	w := &World{tb: t, dir: t.TempDir(), started: make(chan struct{})}
	w.Spec = Spec{Store: c.Store(t), Engine: c.Engine, API: chat, Conversation: "talk-" + rand.Text(), Parallel: 4}
	if c.Settings != nil {
		w.Spec.Settings = c.Settings(t)
	}
	tools, err := faultserver.StartHTTP(faultserver.Script{Dir: w.dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tools.Close() })
	arguments, err := json.Marshal(map[string]string{"program": program})
	if err != nil {
		t.Fatal(err)
	}
	var script openaiserver.Script
	script.Steps = []openaiserver.Step{
		{Reply: openaiserver.Message{Calls: []openaiserver.Call{{ID: "call_1", Name: "code__run_code", Arguments: string(arguments)}}}},
		{Expect: openaiserver.Expect{ToolMessages: 1}, Reply: openaiserver.Message{Text: "All of it is paid."}},
	}
	model, err := openaiserver.Start(script, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	w.Tools, w.Model, w.Spec.Model, w.Spec.Tools = tools, model, model.URL(), tools.URL()
	return w
}

// paid checks the outcome of a program: it returned what became of each call; an effect
// happened once, or the value says that the outcome is unknown.
func (w *World) paid() {
	w.tb.Helper()
	var value []string
	for _, c := range w.History(w.Store()) {
		if result, ok := c.(canister.Result); ok && result.Parent == "" {
			if err := json.Unmarshal([]byte(canister.TextOf(result.Content)), &value); err != nil {
				w.tb.Fatalf("the program failed: %+v", result)
			}
		}
	}
	effects := map[string]int{}
	for _, e := range w.Ledger().Of(faultserver.KindEffect) {
		effects[string(e.Arguments)]++
	}
	if len(value) != payments {
		w.tb.Fatalf("the value is %q", value)
	}
	unknown := 0
	for n, outcome := range value {
		switch made := effects[fmt.Sprintf(`{"key":"%d"}`, n)]; {
		case outcome == "paid" && made == 1:
		case outcome == string(invoker.OutcomeUnknown) && made <= 1:
			unknown++
		default:
			w.tb.Errorf("payment %d was made %d times, and the value says %q", n, made, outcome)
		}
	}
	if unknown > w.Spec.Parallel {
		w.tb.Errorf("%d outcomes are unknown, and %d calls run at a time", unknown, w.Spec.Parallel)
	}
}

// TestPrograms kills a process that runs a program of 20 calls before and after canisters of
// it are stored: the canister first, counted from 1, and each step-th that follows. Another
// process carries the program on.
func (c Column) TestPrograms(t *testing.T, first, step int) {
	t.Helper()
	whole := c.payWorld(t)
	whole.Start().Succeeds()
	whole.paid()
	last := len(whole.History(whole.Store()))
	if last < 3*payments {
		t.Fatalf("the conversation has only %d canisters", last)
	}
	slots := make(chan struct{}, max(c.Parallel, 1))
	var killed sync.WaitGroup
	for n := first; n <= last; n += step {
		for _, moment := range []string{"before", "after"} {
			slots <- struct{}{}
			killed.Go(func() {
				defer func() { <-slots }()
				t.Run(fmt.Sprint(moment, " ", n), func(t *testing.T) {
					w := c.payWorld(t)
					w.Spec.Canister = fmt.Sprint(moment, " ", n)
					w.Start().Dies()
					w.Spec.Canister = ""
					w.Start().Succeeds()
					w.paid()
				})
			})
		}
	}
	killed.Wait()
}
