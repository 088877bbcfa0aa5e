// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// leaver is a store whose append ends the context of a Send that has a leaveKey.
type leaver struct {
	history.Store
	left   atomic.Bool // a context was ended
	failed error       // the first description fails with it, if it is set
}

// leaveKey is the key of the function that ends the context which has it.
type leaveKey struct{}

func (s *leaver) Append(ctx context.Context, id string, expected int, all ...canister.Canister) error {
	err := s.Store.Append(ctx, id, expected, all...)
	if leave, ok := ctx.Value(leaveKey{}).(context.CancelFunc); ok {
		leave()
		s.left.Store(true)
	}
	return err
}

func (s *leaver) Describe(ctx context.Context, id string, change history.Change) error {
	if err := errors.Join(ctx.Err(), s.failed); err != nil {
		s.failed = nil
		return err
	}
	return s.Store.Describe(ctx, id, change)
}

// TestOwnerOfABeginning: a conversation belongs to the sender of its first message, also if that
// Send was cut off; a message of another person does not change that.
func TestOwnerOfABeginning(t *testing.T) {
	type key struct{}
	for name, failed := range map[string]error{"the context ends": nil, "the store fails": errors.New("disk")} {
		t.Run(name, func(t *testing.T) {
			store := &leaver{Store: history.NewMemory(), failed: failed}
			open := opens(model(echo), store, converse.Options{})
			local := start(t, store, open, &engine.Options{
				Owner: func(ctx context.Context) (string, error) { return ctx.Value(key{}).(string), nil },
			})
			send := func(who, id string) error {
				ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, who))
				defer cancel()
				if who == "ada" && failed == nil {
					ctx = context.WithValue(ctx, leaveKey{}, cancel)
				}
				return local.Send(ctx, "talk", said(id, "hello"))
			}
			if err := send("ada", "m1"); err == nil && failed != nil {
				t.Error("the first Send reports no error")
			}
			if failed == nil && !store.left.Load() {
				t.Error("the context of the first Send has not ended")
			}
			if err := send("bob", "m2"); err != nil {
				t.Fatal(err)
			}
			waitFor(t, local, "talk", "m2")
			if info, err := store.Info(t.Context(), "talk"); err != nil || info.Owner == "bob" {
				t.Errorf("after the message of bob: %+v, %v", info, err)
			}
			if err := send("ada", "m1"); err != nil {
				t.Error(err)
			}
			if info, err := store.Info(t.Context(), "talk"); err != nil || info.Owner != "ada" {
				t.Errorf("after ada has sent again: %+v, %v", info, err)
			}
		})
	}
}

// TestMessageOfTheFuture: a message with a time that is far ahead is refused, because it could not be
// found again and would be stored twice.
func TestMessageOfTheFuture(t *testing.T) {
	store := history.NewMemory()
	local := start(t, store, opens(model(echo), store, converse.Options{}), nil)
	message := said("m1", "pay")
	message.Time = time.Now().Add(3 * engine.Skew)
	var failure *invoker.Failure
	if err := local.Send(t.Context(), "talk", message); !errors.As(err, &failure) || failure.Code != invoker.InvalidArguments {
		t.Errorf("it was sent: %v", err)
	}
	message.Time = time.Now().Add(engine.Skew / 2)
	for range 2 {
		if err := local.Send(t.Context(), "talk", message); err != nil {
			t.Error(err)
		}
		if err := local.Send(t.Context(), "talk", said("m2", "more")); err != nil {
			t.Error(err)
		}
	}
	waitFor(t, local, "talk", "m2")
	if info, err := store.Info(t.Context(), "talk"); err != nil || info.Length > 4 {
		t.Errorf("%+v, %v", info, err)
	}
}
