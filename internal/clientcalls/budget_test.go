// SPDX-License-Identifier: Apache-2.0

package clientcalls_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/budget"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/invoker"
)

// Each client may make so many calls in a window, and is told when more are possible. Calls
// that are not made do not count.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, gate := newWorld(t), clientcalls.NewGate()
		defer w.ensemble.Close(context.Background())
		w.free, w.ledger = true, budget.NewMemory()
		w.budgets = []clientcalls.Budget{{Window: budget.Hour, Calls: 3}, {Window: budget.Day, Calls: 4}}
		call := func(client string) error {
			_, err := w.call(t.Context(), gate, w.store, client, toAda, nil)
			return err
		}
		var made atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if call("ada") == nil {
					made.Add(1)
				}
			})
		}
		all.Wait()
		if made.Load() != 3 || w.count() != 3 {
			t.Fatalf("%d calls, %d effects", made.Load(), w.count())
		}
		refused := func(until time.Duration) {
			t.Helper()
			err := call("ada")
			fails(t, err, invoker.Unavailable)
			free := time.Now().UTC().Truncate(until).Add(until)
			if failure := invoker.AsFailure(err); !strings.Contains(failure.Message, free.Format(time.RFC3339)) || failure.RetryAfter != time.Until(free) {
				t.Errorf("%s, after %v", failure.Message, failure.RetryAfter)
			}
		}
		refused(time.Hour)
		if err := call("ben"); err != nil {
			t.Errorf("another client: %v", err)
		}
		time.Sleep(time.Hour)
		if err := call("ada"); err != nil {
			t.Errorf("an hour later: %v", err)
		}
		refused(24 * time.Hour)
		time.Sleep(24 * time.Hour)
		w.free = false
		for range 5 { // a call that waits is not made
			fails(t, call("ada"), invoker.Conflict)
		}
		id := fails(t, call("ada"), invoker.Conflict)
		for range 3 {
			answer(t, w.store, id, canister.Answer{Verdict: canister.VerdictAllow})
			if err := call("ada"); err != nil {
				t.Error(err)
			}
			_ = call("ada")
		}
		refused(time.Hour)
	})
}

// A ledger that does not work stops calls before they are made.
func TestBudgetWithoutLedger(t *testing.T) {
	w := newWorld(t)
	w.free, w.ledger, w.budgets = true, brokenLedger{budget.NewMemory()}, []clientcalls.Budget{{Window: budget.Hour, Calls: 3}}
	_, err := w.call(t.Context(), clientcalls.NewGate(), w.store, "ada", toAda, nil)
	fails(t, err, invoker.Unavailable)
	if w.count() != 0 {
		t.Errorf("%d effects", w.count())
	}
}

type brokenLedger struct{ budget.Ledger }

func (brokenLedger) Reserve(context.Context, budget.Reservation) ([]int64, error) {
	return nil, errDead
}
