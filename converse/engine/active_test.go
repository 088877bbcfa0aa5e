// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// TestActive: an engine is active in a conversation that it runs, retries, or wakes when a wait ends, and not
// in one whose turn has failed for good or that is a fork in the middle of a turn. Sending the last message
// again resumes these.
func TestActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, release := history.NewMemory(), make(chan struct{})
		var isBack atomic.Bool
		roster := tools(t, func(context.Context) (string, error) { return "did it", nil })
		open := func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(model(echo), roster, &converse.Options{ID: id, Log: store,
				Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
					<-release
					return converse.Defer(0, ""), nil
				}}), nil
		}
		values := func(_ context.Context, info history.Info) ([]invoker.Value, error) {
			if info.ID == "fails" && !isBack.Load() {
				return nil, errors.New("away")
			}
			return nil, nil
		}
		local := start(t, store, open, &engine.Options{Retries: 1, Values: values})
		is := func(id string, want bool) {
			t.Helper()
			if synctest.Wait(); local.Active(id) != want {
				t.Errorf("%s is active: %t", id, !want)
			}
		}
		is("waits", false)
		send(t, local, "waits", "m1", "call local__tool")
		is("waits", true) // it runs
		close(release)
		is("waits", true) // it waits
		send(t, local, "fails", "m1", "hello")
		is("fails", true) // a retry is scheduled
		if ended := waitFor(t, local, "fails", "m1"); ended.Error == "" {
			t.Errorf("it ends with %+v", ended)
		}
		is("fails", false)
		if err := store.Fork(t.Context(), "fails", 1, "fork"); err != nil {
			t.Fatal(err)
		}
		is("fork", false)
		isBack.Store(true)
		for _, id := range []string{"fails", "fork"} {
			send(t, local, id, "m1", "hello")
			if ended := waitFor(t, local, id, "m1"); ended.Reason != converse.ReasonAnswered {
				t.Errorf("%s ends with %+v", id, ended)
			}
			is(id, false)
		}
	})
}
