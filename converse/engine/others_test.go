// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
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
