// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// A panic of a function given to the engine is an error of Send, and the conversation can
// be used again.
func TestPanicOfWhatOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		good := opens(model(echo), store, converse.Options{})
		bad := errors.New("open")
		open := func(ctx context.Context, id string) (*converse.Conversation, error) {
			switch bad.Error() {
			case "open":
				panic("the function panics")
			case "nothing":
				return nil, nil
			}
			return good(ctx, id)
		}
		owner := func(context.Context) (string, error) {
			if bad.Error() == "owner" {
				panic("the function panics")
			}
			return "ann", nil
		}
		local := start(t, store, open, &engine.Options{Owner: owner})
		for what, says := range map[string]string{"open": "panicked", "owner": "panicked", "nothing": "is not"} {
			bad = errors.New(what)
			if err := local.Send(t.Context(), "talk", said("m1", "hello")); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("Send, where %s is bad, says %v", what, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := local.Cancel(ctx, "talk"); err != nil {
				t.Errorf("Cancel after a Send, where %s is bad: %v", what, err)
			}
			cancel()
		}
		bad = errors.New("none")
		send(t, local, "talk", "m1", "hello")
		if ended := waitFor(t, local, "talk", "m1"); ended.Reason != converse.ReasonAnswered {
			t.Errorf("then the turn ends with %+v", ended)
		}
	})
}

// A late watcher of a conversation that cannot be opened receives nothing, and does not
// panic either.
func TestPanicOfWhatOpensInWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		calls := 0
		open := func(ctx context.Context, id string) (*converse.Conversation, error) {
			if calls++; calls > 1 {
				panic("the function panics")
			}
			// A limit ends the turn, so that Watch has to look for the next one.
			return opens(model(func(context.Context, []canister.Canister) (string, error) { return "call unknown", nil }),
				store, converse.Options{Limits: converse.Limits{Exchanges: 1}})(ctx, id)
		}
		if err := store.Append(t.Context(), "talk", 0, said("m1", "hello")); err != nil {
			t.Fatal(err)
		}
		local := start(t, store, open, nil)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for event, err := range local.Watch(ctx, "talk", 0) {
			if err == nil {
				continue
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Watch ends with %v behind %+v", err, event)
			}
		}
		if calls < 2 {
			t.Error("the function was not asked")
		}
	})
}

// A message that the conversation has kept for itself was not sent.
func TestSendWithoutALog(t *testing.T) {
	local := start(t, history.NewMemory(), opens(model(echo), nil, converse.Options{}), nil)
	if err := local.Send(t.Context(), "talk", said("m1", "hello")); err == nil || !strings.Contains(err.Error(), "Log") {
		t.Errorf("Send says %v of a message that is not in the log", err)
	}
}

// A turn whose Cancel did not come as far as the log is carried on.
func TestCancelThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		free, asked := make(chan struct{}), 0
		m := model(func(context.Context, []canister.Canister) (string, error) {
			if asked++; asked == 1 {
				<-free // whatever its context says
				return "", errors.New("late")
			}
			return "here", nil
		})
		local := start(t, store, opens(m, store, converse.Options{}), nil)
		send(t, local, "talk", "m1", "hello")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := local.Cancel(ctx, "talk"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Cancel: %v", err)
		}
		close(free)
		if ended := waitFor(t, local, "talk", "m1"); ended.Reason != converse.ReasonAnswered {
			t.Errorf("the turn ends with %+v", ended)
		}
	})
}

// Another writer creates the conversation at the moment when a message would create it.
func TestPostWhileAnotherBegins(t *testing.T) {
	call := []canister.Canister{
		said("m0", "hello"),
		canister.Assistant{Head: canister.Head{ID: "a0"}, Finish: canister.FinishInvocations},
		canister.Invocation{Head: canister.Head{ID: "i0"}, Message: "a0", CallID: "c", Name: "slow", Arguments: "{}"},
	}
	for name, c := range map[string]struct {
		theirs []canister.Canister
		want   error
	}{
		"the same message": {call[:1], nil},
		"a call":           {call, engine.ErrBusy},
	} {
		store := history.NewMemory()
		open := func(ctx context.Context, id string) (*converse.Conversation, error) {
			if err := store.Append(ctx, id, 0, c.theirs...); err != nil {
				return nil, err
			}
			return opens(model(echo), store, converse.Options{})(ctx, id)
		}
		message := said("m0", "hello")
		if c.want != nil {
			message = said("m1", "hello")
		}
		if err := engine.Post(t.Context(), store, open, "talk", message, time.Now()); !errors.Is(err, c.want) {
			t.Errorf("%s: Post says %v, want %v", name, err, c.want)
		}
		if info, err := store.Info(t.Context(), "talk"); err != nil || info.Length != len(c.theirs) {
			t.Errorf("%s: the log has %+v, %v", name, info, err)
		}
	}
}

// A turn that panics is parked with its reason, at every start, and does not affect other
// conversations. Repeating the message resumes it.
func TestTurnsThatPanicAreParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		var healed atomic.Bool
		var tries atomic.Int64
		open := func(ctx context.Context, id string) (*converse.Conversation, error) {
			options := converse.Options{NewID: func() string {
				if id == "bad" && !healed.Load() {
					tries.Add(1)
					panic("no more identities")
				}
				return rand.Text()
			}}
			return opens(model(echo), store, options)(ctx, id)
		}
		if err := store.Append(t.Context(), "bad", 0, said("m1", "hello")); err != nil {
			t.Fatal(err)
		}
		for start := range 3 {
			local, err := engine.NewLocal(store, open, nil)
			if err != nil {
				t.Fatal(err)
			}
			other := fmt.Sprint("good ", start)
			send(t, local, other, "m1", "hello")
			if ended := waitFor(t, local, other, "m1"); ended.Reason != converse.ReasonAnswered {
				t.Errorf("the other conversation ended with %+v", ended)
			}
			time.Sleep(time.Hour)
			ended := waitFor(t, local, "bad", "m1")
			if !strings.Contains(ended.Error, "Options.NewID panicked: no more identities") || !ended.Again.IsZero() {
				t.Errorf("the turn ended with %+v", ended)
			}
			if n := tries.Load(); n != int64(start)+1 {
				t.Errorf("after %d starts there were %d tries", start+1, n)
			}
			if start == 2 {
				healed.Store(true)
				send(t, local, "bad", "m1", "hello")
				synctest.Wait()
				if ended := waitFor(t, local, "bad", "m1"); ended.Reason != converse.ReasonAnswered {
					t.Errorf("then it ended with %+v", ended)
				}
			}
			if err := local.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
