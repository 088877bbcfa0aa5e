// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker/audit"
)

// resultsOf returns the codes and texts of the results in a log.
func resultsOf(t *testing.T, store history.Log) (texts []string) {
	t.Helper()
	for _, r := range of[canister.Result](t, store, "talk") {
		texts = append(texts, r.Code+" "+canister.TextOf(r.Content))
	}
	return texts
}

// wantUnmade checks that calls were reported as not started, and had no effect.
func wantUnmade(t *testing.T, store history.Log, l *ledger, calls int) {
	t.Helper()
	results := resultsOf(t, store)
	for _, text := range results {
		if !strings.HasPrefix(text, "INTERNAL The call was not started") {
			t.Errorf("a result is %q", text)
		}
	}
	if len(results) != calls || l.count() != 0 {
		t.Errorf("%d results and %d effects, want %d and 0", len(results), l.count(), calls)
	}
}

// A call whose goroutine is left behind right before the call is made is not made
// afterwards: its result says that it was not started.
func TestCallLeftBehindIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		var kept records
		h, store := newHangs(1), history.NewMemory()
		now := func() time.Time {
			if strings.Contains(string(debug.Stack()), "(*batch).make(") {
				h.wait()
			}
			return time.Now()
		}
		talk := process(t, store, newRoster(t, l.tool("act")), converse.Options{Now: now, Audit: audit.New(&kept, nil)}, asks(call("act", "{}")), done)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := talk.Ask(ctx, canister.Text("Go.")); err == nil || h.calls.Load() == 0 {
			t.Fatalf("Ask: %v; %d calls hang", err, h.calls.Load())
		}
		wantUnmade(t, store, &l, 1)
		close(h.gate)
		synctest.Wait()
		wantUnmade(t, store, &l, 1)
		if len(kept.tools) != 1 {
			t.Errorf("there are %d records of the call, want 1", len(kept.tools))
		}
	})
}

// slowRule hangs while it decides about the tool slow.
func slowRule(h *hangs) func(context.Context, converse.Approval) (string, bool) {
	return func(_ context.Context, ask converse.Approval) (string, bool) {
		if ask.Tool == "slow" {
			h.wait()
		}
		return "", false
	}
}

// A call that waits for another one, which is left behind, ends its wait: it is not
// started, and nothing of it is left. (A goroutine that is left fails the bubble.)
func TestCallThatWaitsForOneLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		h, store := newHangs(1), history.NewMemory()
		talk := process(t, store, newRoster(t, l.tool("slow"), l.tool("quick")), converse.Options{Forbid: slowRule(h)},
			asks(call("slow", "{}"), call("quick", "{}")), done)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := talk.Ask(ctx, canister.Text("Go.")); err == nil {
			t.Fatal("Ask succeeded")
		}
		wantUnmade(t, store, &l, 2)
		close(h.gate)
		synctest.Wait()
		wantUnmade(t, store, &l, 2)
	})
}

// Calls that are left behind while the work is suspended get no result: another
// process makes them, and this one does not when its function returns.
func TestCallsLeftBehindAreForAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		h, store, roster := newHangs(1), history.NewMemory(), newRoster(t, l.tool("slow"), l.tool("quick"))
		talk := process(t, store, roster, converse.Options{Forbid: slowRule(h)}, asks(call("slow", "{}"), call("quick", "{}")))
		ended := make(chan error, 1)
		go func() {
			_, err := talk.Ask(t.Context(), canister.Text("Go."))
			ended <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := talk.Suspend(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Suspend: %v", err)
		}
		if err := <-ended; !errors.Is(err, converse.ErrSuspended) {
			t.Errorf("Ask: %v", err)
		}
		if results := resultsOf(t, store); len(results) > 0 {
			t.Errorf("the results are %q", results)
		}
		carryOn(t, process(t, store, roster, converse.Options{}, done), converse.ReasonAnswered)
		close(h.gate)
		synctest.Wait()
		if l.count() != 2 {
			t.Errorf("%d effects, want 2", l.count())
		}
	})
}

// records notes the tools of which it gets records.
type records struct{ tools []string }

func (r *records) Record(_ context.Context, record *audit.Record) error {
	r.tools = append(r.tools, record.Tool)
	return nil
}

// A call that is left behind after the log has failed is not said to be unmade:
// another process may be making it.
func TestCallLeftBehindAfterTheLogFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		var kept records
		h, failed, hangs := newHangs(1), errors.New("the disk is full"), make(chan struct{})
		forbid := func(_ context.Context, ask converse.Approval) (string, bool) {
			if ask.Tool == "slow" {
				close(hangs)
				h.wait()
			}
			<-hangs
			return "", false
		}
		log := &logged{Log: history.NewMemory(), before: func(n int) error {
			if n > 2 { // the user, the model
				return failed
			}
			return nil
		}}
		talk := process(t, log, newRoster(t, l.tool("slow"), l.tool("quick")), converse.Options{
			Forbid: forbid, Audit: audit.New(&kept, nil),
			Approve: func(context.Context, converse.Approval) (converse.Decision, error) { return converse.Allow(), nil },
		}, asks(call("slow", "{}"), call("quick", "{}")))
		if _, err := talk.Ask(t.Context(), canister.Text("Go.")); !errors.Is(err, failed) {
			t.Errorf("Ask: %v", err)
		}
		close(h.gate)
		synctest.Wait()
		if l.count() != 0 || len(kept.tools) > 0 {
			t.Errorf("%d effects and records of %q, want none", l.count(), kept.tools)
		}
	})
}
