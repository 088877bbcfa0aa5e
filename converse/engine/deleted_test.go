// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// A conversation that is deleted while its turn is opened does not come back.
func TestDeletedWhileATurnOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		plain := opens(model(echo), store, converse.Options{Instructions: "Be kind."})
		if err := engine.Post(t.Context(), store, plain, "talk", said("m1", "hello"), time.Now()); err != nil {
			t.Fatal(err)
		}
		opened := 0
		start(t, store, func(ctx context.Context, id string) (*converse.Conversation, error) {
			opened++
			if err := store.Delete(ctx, id, history.AnyLength); err != nil {
				t.Error(err)
			}
			return plain(ctx, id)
		}, nil)
		time.Sleep(time.Minute)
		if info, err := store.Info(t.Context(), "talk"); opened != 1 || !errors.Is(err, history.ErrNotFound) {
			t.Errorf("after %d turns the store has %+v (%v)", opened, info, err)
		}
	})
}
