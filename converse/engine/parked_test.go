// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
)

// withOpenCall returns a store with the conversation "talk", which ends with a call without a result.
func withOpenCall(t *testing.T) *history.Memory {
	t.Helper()
	store := history.NewMemory()
	if err := store.Append(t.Context(), "talk", 0, said("m", "x"), canister.Assistant{Head: canister.Head{ID: "a"}, Finish: canister.FinishInvocations},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "local__pay", Arguments: "{}"}); err != nil {
		t.Fatal(err)
	}
	return store
}

// TestSendToATurnThatFails: a message to a conversation whose calls cannot be completed, because its
// turn panics, is refused with what failed, and does not try again and again.
func TestSendToATurnThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := withOpenCall(t)
		var opened atomic.Int32
		local := start(t, store, func(context.Context, string) (*converse.Conversation, error) {
			opened.Add(1)
			panic("orchid")
		}, nil)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := local.Send(ctx, "talk", said("m2", "y"))
		if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "panicked") || strings.Contains(err.Error(), "orchid") || opened.Load() > 2 {
			t.Errorf("after %d attempts: %v", opened.Load(), err)
		}
	})
}

// TestSendToATurnThatKeepsFailing: a message to a conversation whose calls cannot be completed, because its
// turn fails each time, is refused after the retries, and does not prevent that the turn is cancelled.
func TestSendToATurnThatKeepsFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := withOpenCall(t)
		var opened atomic.Int32
		local := start(t, store, func(context.Context, string) (*converse.Conversation, error) {
			opened.Add(1)
			return nil, errors.New("the secrets cannot be had")
		}, nil)
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := local.Send(ctx, "talk", said("m2", "y"))
		if took := time.Since(began); !errors.Is(err, engine.ErrBusy) || took < 31*time.Second || took > 35*time.Second || opened.Load() != 1+6 {
			t.Errorf("after %v and %d attempts: %v", took, opened.Load(), err)
		}
		ends := make(chan error)
		go func() { ends <- local.Send(ctx, "talk", said("m3", "z")) }()
		time.Sleep(10 * time.Second) // the fourth retry is 8 seconds after the third one
		began = time.Now()
		if err := local.Cancel(ctx, "talk"); err != nil || time.Since(began) > time.Second {
			t.Errorf("Cancel took %v: %v", time.Since(began), err)
		}
		if err := <-ends; err != nil {
			t.Errorf("after the cancellation: %v", err)
		}
	})
}

// TestInvalidHistoryIsPermanent: a turn whose log breaks the rules of a history is not retried.
func TestInvalidHistoryIsPermanent(t *testing.T) {
	store := history.NewMemory()
	open := opens(model(echo), store, converse.Options{})
	if err := store.Append(t.Context(), "talk", 0, said("m", "x"), canister.Result{Head: canister.Head{ID: "r"}, Invocation: "none"}); err != nil {
		t.Fatal(err)
	}
	conv, err := open(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range conv.Continue(t.Context()) {
	}
	var damaged *history.CorruptError
	if !engine.Permanent(err) || !errors.As(err, &damaged) || damaged.Conversation != "talk" {
		t.Errorf("it is not permanent: %v", err)
	}
}

// TestProgramErrorsAreNotPublished: watchers read what failed, and not the text of an error of the
// program's own functions, which can have its secrets.
func TestProgramErrorsAreNotPublished(t *testing.T) {
	for name, test := range map[string]struct {
		broken func() error
		want   string
	}{
		"an error": {func() error { return errors.New("Get https://vault.example/?token=orchid: timeout") }, "cannot be had"},
		"a panic":  {func() error { panic("orchid") }, "panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			store := history.NewMemory()
			local := start(t, store, opens(model(echo), store, converse.Options{}), &engine.Options{Retries: -1,
				Values: func(context.Context, history.Info) ([]invoker.Value, error) { return nil, test.broken() }})
			if err := local.Send(t.Context(), "talk", said("m", "hello")); err != nil {
				t.Fatal(err)
			}
			if ended := waitFor(t, local, "talk", "m"); strings.Contains(ended.Error, "orchid") || !strings.Contains(ended.Error, test.want) {
				t.Errorf("watchers read %q", ended.Error)
			}
		})
	}
}

// TestSearchBehind: work that another process has left is found, although the clock of the store is
// late by more than Options.Others; a conversation that has failed is not scheduled again without a change.
func TestSearchBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := behind{history.NewMemory(), time.Minute}
		var opened atomic.Int32
		good := opens(model(echo), store, converse.Options{})
		open := func(ctx context.Context, id string) (*converse.Conversation, error) {
			if id == "bad" {
				opened.Add(1)
				panic("boom")
			}
			return good(ctx, id)
		}
		local := start(t, store, open, &engine.Options{Others: time.Second})
		time.Sleep(10 * time.Second)
		for _, id := range []string{"good", "bad"} {
			if err := engine.Post(t.Context(), store, good, id, said("m", "hello"), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if ended := waitFor(t, local, "good", "m"); ended.Reason != converse.ReasonAnswered {
			t.Errorf("it ended with %+v", ended)
		}
		time.Sleep(time.Hour / 2)
		if n := opened.Load(); n != 1 {
			t.Errorf("the turn that panics ran %d times", n)
		}
	})
}
