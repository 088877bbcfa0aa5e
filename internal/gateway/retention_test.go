// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// undeletable is a store that cannot delete.
type undeletable struct{ history.Store }

func (undeletable) Delete(context.Context, string, int) error {
	return errors.New("the disk is read-only")
}

// TestRetention: expired conversations are deleted within an hour, failures are logged,
// and nothing runs after stop.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, seen := observer.New(zap.InfoLevel)
		store := history.NewMemory()
		done := []canister.Canister{
			canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("hi")},
			canister.Assistant{Head: canister.Head{ID: "a"}, Content: canister.Texts("hello")},
		}
		left := func() (n int) {
			for range store.List(t.Context(), history.Filter{}) {
				n++
			}
			return n
		}
		if err := store.Append(t.Context(), "a", 0, done...); err != nil {
			t.Fatal(err)
		}
		retention := history.Retention{Keep: 90 * time.Minute}
		stop := startRetention(t.Context(), store, retention, zap.New(core))
		time.Sleep(time.Hour + time.Minute)
		if synctest.Wait(); left() != 1 {
			t.Error("it was deleted too early")
		}
		time.Sleep(time.Hour)
		if synctest.Wait(); left() != 0 {
			t.Error("it was not deleted")
		}
		stop()
		if lines := seen.TakeAll(); len(lines) != 1 || lines[0].ContextMap()["event"] != "history.pruned" ||
			lines[0].ContextMap()["conversations"] != int64(1) {
			t.Errorf("the log: %v", lines)
		}
		if err := store.Append(t.Context(), "b", 0, done...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if left() != 1 {
			t.Error("it continues after its end")
		}
		startRetention(t.Context(), undeletable{store}, retention, zap.New(core))()
		if lines := seen.TakeAll(); len(lines) > 1 || len(lines) == 1 && lines[0].ContextMap()["event"] != "history.prune.failed" {
			t.Errorf("the log: %v", lines)
		}
		deleteExpired(t.Context(), undeletable{store}, retention, zap.New(core))
		if lines := seen.TakeAll(); len(lines) != 1 || lines[0].ContextMap()["event"] != "history.prune.failed" {
			t.Errorf("the log: %v", lines)
		}
	})
}
