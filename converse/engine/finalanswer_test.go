// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// The reason of a turn with a final answer is the limit for all watchers, also for those that come later, at other
// processes, and with other limits.
func TestWatchSeesTheLimitOfAFinalAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		roster := tools(t, func(context.Context) (string, error) { return "looked", nil })
		open := func(limits converse.Limits) converse.OpenFunc {
			return func(_ context.Context, id string) (*converse.Conversation, error) {
				return converse.New(model(echo), roster, &converse.Options{ID: id, Log: store, Limits: limits}), nil
			}
		}
		local, other := start(t, store, open(converse.Limits{Exchanges: 1, FinalAnswer: true}), nil), start(t, store, open(converse.Limits{}), nil)
		synctest.Wait() // they have searched
		live := make(chan []string, 1)
		go func() { live <- endsOf(t, local, 5*time.Second) }()
		synctest.Wait()
		send(t, local, "talk", "m1", "call local__tool")
		want := []string{"m1: exchange_limit"}
		if ends := <-live; !slices.Equal(ends, want) {
			t.Errorf("a watcher that is there sees the ends %q", ends)
		}
		if ends := endsOf(t, local, 5*time.Second); !slices.Equal(ends, want) {
			t.Errorf("a later watcher sees the ends %q", ends)
		}
		if ends := endsOf(t, other, 5*time.Second); !slices.Equal(ends, want) {
			t.Errorf("a watcher of another process sees the ends %q", ends)
		}
		before := len(read(t, store, "talk"))
		if err := local.Cancel(t.Context(), "talk"); err != nil || len(read(t, store, "talk")) != before {
			t.Errorf("Cancel of a turn that is over changes the log, or returns %v", err)
		}
	})
}
