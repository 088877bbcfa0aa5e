// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
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

// runProgram is the [Engine] of a conversation whose model writes a program. The settings say
// before or after which canister the process dies, counted from 1; empty means nowhere.
func runProgram(ctx context.Context, c *Child) error {
	source := mcpadapter.HTTP(c.Tools, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}})
	shop := ensemble.New("shop", source, &ensemble.Options{Trust: ensemble.TrustAll})
	roster, err := ensemble.NewRoster(shop, runcode.Ensemble("code", nil))
	if err != nil {
		return err
	}
	defer roster.Close(ctx)
	store := c.Store
	if c.Settings != "" {
		dying := &dyingLog{Store: c.Store}
		if _, err := fmt.Sscan(c.Settings, &dying.moment, &dying.canister); err != nil {
			return err
		}
		store = dying
	}
	return Run(ctx, &Child{Spec: c.Spec, Store: store, Model: c.Model, Roster: roster})
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
func payWorld(t *testing.T, store string) *World {
	t.Helper()
	w := &World{tb: t, dir: t.TempDir(), started: make(chan struct{})}
	w.Spec = Spec{Store: store, Engine: "program", API: chat, Conversation: "talk", Parallel: 4}
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

// A process that runs a program is killed before and after canisters of it are stored, and
// another one carries the program on. Together, the stores have each canister.
func TestKilledPrograms(t *testing.T) {
	step := 24
	if os.Getenv("CONSORT_KILLED") == "all" && !raced {
		step = len(stores)
	}
	for i, name := range slices.Sorted(maps.Keys(stores)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := stores[name]
			whole := payWorld(t, open(t))
			whole.Start().Succeeds()
			whole.paid()
			last := len(whole.History(whole.Store()))
			if last < 3*payments {
				t.Fatalf("the conversation has only %d canisters", last)
			}
			for n := 2 + i; n <= last; n += step { // the first is the person's message
				for _, moment := range []string{"before", "after"} {
					t.Run(fmt.Sprint(moment, " ", n), func(t *testing.T) {
						w := payWorld(t, open(t))
						w.Spec.Settings = fmt.Sprint(moment, " ", n)
						w.Start().Dies()
						w.Spec.Settings = ""
						w.Start().Succeeds()
						w.paid()
					})
				}
			}
		})
	}
}
