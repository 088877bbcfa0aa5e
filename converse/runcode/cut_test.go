// SPDX-License-Identifier: Apache-2.0

package runcode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/converse/runcode"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

const payments = 20

// payProgram makes 20 calls with an effect, half of them in parallel.
const payProgram = `def pay(n):
    value, error = attempt(bank__pay, n=n)
    return value or error["code"]
paid = gather(pay, range(10))
for n in range(10, 20):
    paid.append(pay(n))
return paid`

// bank counts payments, which must not be repeated.
type bank struct {
	mu   sync.Mutex
	paid map[int]int
}

func (b *bank) talk(t *testing.T, log history.Log, lines ...conversetest.Line) *converse.Conversation {
	t.Helper()
	type payment struct {
		N int `json:"n"`
	}
	pay, err := invoker.New("pay", "Pay.", func(_ context.Context, p payment) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.paid[p.N]++
		return fmt.Sprintf("paid %d", p.N), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(ensemble.Local("bank", pay), runcode.Ensemble("code", nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roster.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return converse.New(conversetest.NewScript(lines...), roster, &converse.Options{ID: "talk", Log: log})
}

// A process dies before or after any canister of a program with 20 calls is stored, on each
// store. Another process carries the program on: it comes to the same value, and each effect
// happened once, or is reported as unknown.
func TestCutAtEveryCanister(t *testing.T) {
	if testing.Short() {
		t.Skip("it opens a store for each of 66 canisters, twice")
	}
	whole := history.NewMemory()
	first := &bank{paid: map[int]int{}}
	asked := conversetest.Line{Calls: []conversetest.Call{{Name: "code__run_code", Arguments: programText(payProgram)}}}
	done := conversetest.Line{Text: "Done."}
	talk := first.talk(t, whole, asked, done)
	if _, err := talk.Ask(t.Context(), canister.Text("Pay.")); err != nil {
		t.Fatal(err)
	}
	list := talk.History()
	if len(first.paid) != payments || len(list) < 3*payments {
		t.Fatalf("%d payments, %d canisters", len(first.paid), len(list))
	}
	folder := t.TempDir()
	for name, open := range map[string]func(t *testing.T, n int) history.Store{
		"files": func(t *testing.T, n int) history.Store {
			store, err := files.Open(filepath.Join(folder, fmt.Sprint(n)), nil)
			if err != nil {
				t.Fatal(err)
			}
			return store
		},
		"SQLite": func(t *testing.T, n int) history.Store {
			store, err := sqlite.Open(filepath.Join(folder, fmt.Sprint(n, ".db")), nil)
			if err != nil {
				t.Fatal(err)
			}
			return store
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; n < len(list); n++ {
				if call, ok := list[n].(canister.Invocation); ok && call.Parent == "" {
					continue // it is stored with its message, or not at all
				}
				store := open(t, n)
				carryOn(t, store, list[:n], asked, done)
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// carryOn continues a conversation of which only the beginning was stored, and judges the
// outcome. Every call with an intent may have been made before.
func carryOn(t *testing.T, store history.Log, before []canister.Canister, asked, done conversetest.Line) {
	t.Helper()
	if err := store.Append(t.Context(), "talk", 0, before...); err != nil {
		t.Fatal(err)
	}
	lines, ended, numbers := []conversetest.Line{asked, done}, map[string]bool{}, map[string]int{}
	for _, c := range before {
		switch c := c.(type) {
		case canister.Assistant:
			lines = []conversetest.Line{done}
		case canister.Result:
			ended[c.Invocation] = true
		case canister.Invocation:
			var arguments struct{ N int }
			if json.Unmarshal([]byte(c.Arguments), &arguments) == nil && c.Parent != "" {
				numbers[c.ID] = arguments.N
			}
		}
	}
	second := &bank{paid: map[int]int{}}
	unknown := map[int]bool{}
	for _, c := range before {
		if intent, ok := c.(canister.Intent); ok {
			if n, inner := numbers[intent.Invocation]; inner {
				second.paid[n]++ // by the process that died
				unknown[n] = !ended[intent.Invocation]
			}
		}
	}
	talk := second.talk(t, store, lines...)
	turn, err := talk.Run(t.Context())
	if err != nil || turn.Text() != "Done." {
		t.Fatalf("after %d canisters: %+v, %v", len(before), turn, err)
	}
	for _, problem := range sequence.Check(talk.History()) {
		t.Errorf("after %d canisters: %v", len(before), problem)
	}
	var value []string
	for _, c := range talk.History() {
		if result, ok := c.(canister.Result); ok && result.Parent == "" {
			if err := json.Unmarshal([]byte(canister.TextOf(result.Content)), &value); err != nil {
				t.Fatalf("after %d canisters: %v", len(before), result)
			}
		}
	}
	for n := range payments {
		want := fmt.Sprintf("paid %d", n)
		if unknown[n] {
			want = string(invoker.OutcomeUnknown)
		}
		if second.paid[n] != 1 || len(value) != payments || value[n] != want {
			t.Errorf("after %d canisters, payment %d was made %d times, want %s: %q", len(before), n, second.paid[n], want, value)
		}
	}
}
