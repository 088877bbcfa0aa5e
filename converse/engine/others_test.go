// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/runcode"
)

// A call that another process begins while a turn is opened is left alone.
func TestOthersBeginWhileATurnOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		began, calls := make(chan struct{}), 0
		roster := tools(t, func(context.Context) (string, error) {
			if calls++; calls == 1 {
				close(began)
			}
			time.Sleep(20 * time.Second)
			return "did it", nil
		})
		open := withTool(roster, store)
		if err := engine.Post(t.Context(), store, nil, "talk", said("m1", "call local__tool"), time.Now()); err != nil {
			t.Fatal(err)
		}
		opened := 0
		local := start(t, store, func(ctx context.Context, id string) (*converse.Conversation, error) {
			if opened++; opened == 1 {
				other, err := open(ctx, id)
				if err != nil {
					return nil, err
				}
				go func() {
					if _, err := other.Run(context.Background()); err != nil {
						t.Errorf("the other process: %v", err)
					}
				}()
				<-began
			}
			return open(ctx, id)
		}, &engine.Options{Others: time.Hour})
		send(t, local, "talk", "m1", "call local__tool")
		time.Sleep(3 * time.Hour)
		if got := resultOf(t, store, "talk"); got != "did it" || calls != 1 {
			t.Errorf("the result is %q after %d calls", got, calls)
		}
	})
}

// The approval of a call that a program makes takes effect at once: the program does not run while
// its calls wait.
func TestApprovalOfACallOfAProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		calls := 0
		roster := tools(t, func(context.Context) (string, error) { calls++; return "did it", nil }, runcode.Ensemble("code", nil))
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{{Name: "code__run_code", Arguments: `{"program":"return local__tool()"}`}}},
			conversetest.Line{Text: "Done."})
		approve := func(_ context.Context, a converse.Approval) (converse.Decision, error) {
			if a.Invocation.Name == "local__tool" {
				return converse.Defer(6*time.Hour, ""), nil
			}
			return converse.Allow(), nil
		}
		local := start(t, store, func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(script, roster, &converse.Options{ID: id, Log: store, Approve: approve}), nil
		}, &engine.Options{Others: time.Hour})
		send(t, local, "talk", "m1", "hello")
		ended := waitFor(t, local, "talk", "m1")
		if ended.Reason != converse.ReasonWaiting {
			t.Fatalf("the turn ended with %+v, want a wait", ended)
		}
		if err := local.Answer(t.Context(), "talk", canister.Answer{Wait: ended.Waits[0], Verdict: canister.VerdictAllow, By: "ada"}); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); calls != 1 || script.Err() != nil {
			t.Errorf("the call was made %d times after the answer; %v", calls, script.Err())
		}
	})
}
