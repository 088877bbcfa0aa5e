// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// flaky is a store whose appends of one kind of canister fail for some time. Kept says that the
// canisters are appended nevertheless, and meanwhile is called at the first failure.
type flaky struct {
	*history.Memory
	kind      canister.Kind
	until     time.Time
	kept      bool
	meanwhile func()
	failures  int
}

func (f *flaky) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if canisters[0].Kind() != f.kind || !time.Now().Before(f.until) {
		return f.Memory.Append(ctx, id, length, canisters...)
	}
	if f.kept {
		if err := f.Memory.Append(ctx, id, length, canisters...); err != nil {
			return err
		}
	}
	if f.failures++; f.failures == 1 && f.meanwhile != nil {
		f.meanwhile()
	}
	return errors.New("connection reset by peer")
}

// resultOf returns the only result of a conversation, as its code and text.
func resultOf(t *testing.T, log history.Log, conversation string) string {
	t.Helper()
	var found []string
	for _, c := range read(t, log, conversation) {
		if result, ok := c.(canister.Result); ok {
			found = append(found, result.Code+canister.TextOf(result.Content))
		}
	}
	if len(found) != 1 {
		t.Fatalf("the log has the results %q, want one", found)
	}
	return found[0]
}

// A result that the log did not accept at first is in the log in the end, and its call is made
// once. So is the result of a call whose intent the log did not confirm.
func TestResultsSurviveAFailingLog(t *testing.T) {
	for name, test := range map[string]struct {
		kind  canister.Kind
		lasts time.Duration
		kept  bool
	}{
		"the result fails once":                 {canister.KindResult, time.Nanosecond, false},
		"the result fails for 10 seconds":       {canister.KindResult, 10 * time.Second, false},
		"the result arrives all the same":       {canister.KindResult, 10 * time.Second, true},
		"the intent arrives and is unconfirmed": {canister.KindIntent, 10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &flaky{Memory: history.NewMemory(), kind: test.kind, until: time.Now().Add(test.lasts), kept: test.kept}
				calls := 0
				roster := tools(t, func(context.Context) (string, error) { calls++; return "paid, receipt", nil })
				local := start(t, store, withTool(roster, store), nil)
				send(t, local, "talk", "m1", "call local__tool")
				time.Sleep(time.Minute)
				if got := resultOf(t, store, "talk"); got != "paid, receipt" || calls != 1 || store.failures == 0 {
					t.Errorf("the result is %q after %d calls and %d failures", got, calls, store.failures)
				}
				if ended := waitFor(t, local, "talk", "m1"); ended.Reason != "answered" {
					t.Errorf("the turn ended with %+v", ended)
				}
			})
		})
	}
}

// A result that the log did not accept is dropped if another process has ended the turn.
func TestResultsAreDroppedAfterAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Memory: history.NewMemory(), kind: canister.KindResult, until: time.Now().Add(10 * time.Second)}
		store.meanwhile = func() {
			if err := engine.Interrupt(t.Context(), store.Memory, "talk", time.Now()); err != nil {
				t.Error(err)
			}
		}
		roster := tools(t, func(context.Context) (string, error) { return "paid, receipt", nil })
		local := start(t, store, withTool(roster, store), nil)
		send(t, local, "talk", "m1", "call local__tool")
		time.Sleep(time.Minute)
		list := read(t, store, "talk")
		if last, ok := list[len(list)-1].(canister.Assistant); !ok || last.Finish != canister.FinishCancelled {
			t.Errorf("the log ends with %+v", list[len(list)-1])
		}
		if got := resultOf(t, store, "talk"); got == "paid, receipt" {
			t.Errorf("the result is %q", got)
		}
	})
}

// A turn that is cancelled between two attempts, or is not retried, has its result nevertheless.
func TestResultsSurviveACancel(t *testing.T) {
	for _, retries := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			store := &flaky{Memory: history.NewMemory(), kind: canister.KindResult, until: time.Now().Add(time.Nanosecond)}
			roster := tools(t, func(context.Context) (string, error) { return "paid, receipt", nil })
			local := start(t, store, withTool(roster, store), &engine.Options{Retries: retries, Backoff: time.Minute})
			store.meanwhile = func() { time.Sleep(time.Second) } // the log works again
			send(t, local, "talk", "m1", "call local__tool")
			time.Sleep(10 * time.Second)
			if err := local.Cancel(t.Context(), "talk"); err != nil {
				t.Error(err)
			}
			if got := resultOf(t, store, "talk"); got != "paid, receipt" {
				t.Errorf("Retries is %d; the result is %q", retries, got)
			}
		})
	}
}

// A log that fails for good does not keep the engine from closing.
func TestFailingLogEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Memory: history.NewMemory(), kind: canister.KindResult, until: time.Now().Add(time.Hour)}
		roster := tools(t, func(context.Context) (string, error) { return "paid, receipt", nil })
		local := start(t, store, withTool(roster, store), nil)
		send(t, local, "talk", "m1", "call local__tool")
		time.Sleep(5 * time.Second) // it waits for a retry
		began := time.Now()
		if err := local.Close(t.Context()); err != nil || time.Since(began) > 0 || store.failures != 7 {
			t.Errorf("Close returned %v after %v and %d failures, want 7", err, time.Since(began), store.failures)
		}
	})
}
