// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
)

// Cancel ends a turn that has had more exchanges than the default limit, and no later process
// continues it.
func TestCancelAfterManyExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		calls := 0
		roster := tools(t, func(context.Context) (string, error) { calls++; return "did it", nil })
		call := conversetest.Line{Calls: []conversetest.Call{{Name: "local__tool", Arguments: "{}"}}}
		script := conversetest.NewScript(append(slices.Repeat([]conversetest.Line{call}, 20), conversetest.Line{Wait: make(chan struct{})})...)
		open := func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(script, roster, &converse.Options{ID: id, Log: store, Limits: converse.Limits{Exchanges: 50}}), nil
		}
		local := start(t, store, open, nil)
		send(t, local, "talk", "m1", "hello")
		if synctest.Wait(); calls != 20 {
			t.Fatalf("the model has called the tool %d times, want 20", calls)
		}
		if err := local.Cancel(t.Context(), "talk"); err != nil {
			t.Fatal(err)
		}
		list := read(t, store, "talk")
		if last, ok := list[len(list)-1].(canister.Assistant); !ok || last.Finish != canister.FinishCancelled {
			t.Fatalf("after Cancel the log ends with %+v", list[len(list)-1])
		}
		start(t, store, open, nil)
		synctest.Wait()
		if err := script.Err(); err != nil || len(read(t, store, "talk")) != len(list) {
			t.Errorf("another process has continued the turn: %v", err)
		}
		if ended := waitFor(t, local, "talk", "m1"); ended.Reason != converse.ReasonCancelled {
			t.Errorf("the turn ended with %+v", ended)
		}
	})
}
