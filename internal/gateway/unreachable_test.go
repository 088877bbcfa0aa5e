// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
	"github.com/consort-go/consort/internal/conversetool"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/turncancel"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// unreachable is an engine that cannot be reached.
type unreachable struct {
	engine.Engine // nil; its other methods are not called
	err           error
	beforeSend    func(id string, user canister.User) // called before Send fails
}

func (u unreachable) Send(_ context.Context, id string, user canister.User) error {
	if u.beforeSend != nil {
		u.beforeSend(id, user)
	}
	return u.err
}

func (u unreachable) Watch(context.Context, string, int) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) { yield(nil, u.err) }
}

// TestUnreachableEngine: the error says whether the message has arrived and what to do,
// and allows repeating the message only if it has not arrived.
func TestUnreachableEngine(t *testing.T) {
	store, lost := history.NewMemory(), errors.New("connection refused at 10.0.0.7")
	enters := func(id string, user canister.User) {
		if err := store.Append(t.Context(), id, 1, user); err != nil {
			t.Error(err)
		}
	}
	kept := "arrived and will be answered"
	for name, test := range map[string]struct {
		engine           unreachable
		said             conversetool.Message
		want             string
		retryable, fresh bool
	}{
		"a new one": {unreachable{err: fmt.Errorf("%w: %w", engine.ErrKept, lost)}, conversetool.Message{Message: "Hi."}, kept, false, true},
		"one that continues": {
			unreachable{err: fmt.Errorf("%w: %w", engine.ErrKept, lost), beforeSend: enters},
			conversetool.Message{Message: "Hi.", Conversation: "a"}, kept, false, false,
		},
		"one that has arrived": {unreachable{err: lost, beforeSend: enters}, conversetool.Message{Message: "Hi.", Conversation: "a"}, kept, false, false},
		"one that has not":     {unreachable{err: lost}, conversetool.Message{Message: "Hi.", Conversation: "a"}, "has not arrived", true, false},
		"only a wait": {
			unreachable{err: lost}, conversetool.Message{Message: "", Conversation: "a"}, "The answer is not available at the moment", true, false,
		},
		"one that has failed": {unreachable{err: errFailed}, conversetool.Message{Message: "", Conversation: "a"}, "The assistant failed.", false, false},
		"one with open calls": {
			unreachable{err: fmt.Errorf("%w: %q", engine.ErrBusy, "c1")}, conversetool.Message{Message: "Hi.", Conversation: "a"}, "until a person cancels that turn", false, false,
		},
		"one with an open wait": {
			unreachable{err: engine.ErrWaiting}, conversetool.Message{Message: "Hi.", Conversation: "a"}, "accepts no message until then", false, false,
		},
	} {
		if err := store.Delete(t.Context(), "a", history.AnyLength); err != nil {
			t.Fatal(err)
		}
		owner := config.OwnerPrefix + "ada"
		if err := store.Append(t.Context(), "a", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("hi")}); err != nil {
			t.Fatal(err)
		}
		if err := store.Describe(t.Context(), "a", history.Change{Owner: &owner}); err != nil {
			t.Fatal(err)
		}
		feed := httpapi.NewFeed(test.engine, store)
		t.Cleanup(feed.Close)
		served := &conversations{engine: test.engine, feed: feed, store: histories.ClientsOnly{Store: store}, ending: t.Context(),
			owner: func(context.Context) (string, error) { return owner, nil }, withSender: unmarked}
		_, err := served.call(t.Context(), test.said)
		failure, ok := errors.AsType[*invoker.Failure](err)
		if !ok || !strings.Contains(failure.Message, test.want) || failure.Retryable != test.retryable || strings.Contains(failure.Message, "10.0.0.7") {
			t.Errorf("%s: %+v, %v", name, err, errors.Unwrap(failure))
			continue
		}
		if test.want == kept && (failure.Code != invoker.Unavailable || !strings.Contains(failure.Message, "without a message")) {
			t.Errorf("%s: %+v", name, failure)
		}
		if id := "a"; test.want == kept && !test.fresh && !strings.Contains(failure.Message, `"`+id+`"`) {
			t.Errorf("%s: %s", name, failure.Message)
		}
	}
}

// TestAskingForAnAnswerContinuesTheTurn: if other processes may run turns, the engine
// continues the turn of a process that died only after a while; a call that asks for the
// answer continues it immediately.
func TestAskingForAnAnswerContinuesTheTurn(t *testing.T) {
	store, owner := histories.ClientsOnly{Store: history.NewMemory(), Scope: "scope-"}, config.OwnerPrefix+"ada"
	kept := store.Owner(owner)
	if err := store.Append(t.Context(), "a", 0,
		canister.User{Head: canister.Head{ID: "u", Time: time.Now()}, Content: canister.Texts("Are you there?")}); err != nil {
		t.Fatal(err)
	}
	if err := store.Describe(t.Context(), "a", history.Change{Owner: &kept}); err != nil {
		t.Fatal(err)
	}
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(conversetest.NewScript(conversetest.Line{Text: "Here I am."}), nil, &converse.Options{ID: id, Log: store}), nil
	}
	local, err := engine.NewLocal(store, open, &engine.Options{Others: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close(t.Context())
	feed := httpapi.NewFeed(local, store)
	defer feed.Close()
	served := &conversations{engine: local, feed: feed, store: store, open: open, ending: t.Context(),
		owner: func(context.Context) (string, error) { return owner, nil }, withSender: unmarked}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if h, err := served.call(ctx, conversetool.Message{Conversation: "a"}); err != nil || h.Answer != "Here I am." {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestWhoMayBeAtWork: if each host starts its own process there may be other processes;
// with an address there are none unless machines share the store.
func TestWhoMayBeAtWork(t *testing.T) {
	at := &serve.Options{HTTP: values.Plain("127.0.0.1:0")}
	for name, test := range map[string]struct {
		cfg  config.Config
		want time.Duration
	}{
		"at an address":  {config.Config{Serve: at, History: &config.History{}}, 0},
		"a shared store": {config.Config{Serve: at, History: &config.History{Store: config.StorePostgres}}, 11 * time.Minute},
		"standard input": {config.Config{Serve: &serve.Options{}, History: &config.History{}}, 11 * time.Minute},
	} {
		if got := test.cfg.Others(false); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// unmarked records no sender.
func unmarked(ctx context.Context) (context.Context, error) { return ctx, nil }

// deleting is an engine whose conversations are deleted just before a message arrives.
type deleting struct {
	engine.Engine
	store history.Store
}

func (d deleting) Send(ctx context.Context, conversation string, message canister.User) error {
	if err := d.store.Delete(ctx, conversation, history.AnyLength); err != nil {
		return err
	}
	return engine.Post(ctx, d.store, nil, conversation, message, time.Now())
}

// A conversation that is deleted while a message or an answer is on its way stays deleted.
func TestDeletedConversationsStayDeleted(t *testing.T) {
	owner := config.OwnerPrefix + "ada"
	for name, send := range map[string]func(*conversations) error{
		"a message": func(c *conversations) error {
			return (&servedTurn{tool: c, id: "a"}).continueWith(t.Context(), owner, "Hi.")
		},
		"a check": func(c *conversations) error {
			return c.recheck(t.Context(), "a", canister.User{Head: canister.Head{ID: "u", Time: time.Now()}, Content: canister.Texts("hi")})
		},
	} {
		store := history.NewMemory()
		err := store.Append(t.Context(), "a", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("hi")})
		if err = errors.Join(err, store.Describe(t.Context(), "a", history.Change{Owner: &owner})); err != nil {
			t.Fatal(err)
		}
		c := &conversations{engine: deleting{store: store}, store: histories.ClientsOnly{Store: store}, ending: t.Context(),
			owner: func(context.Context) (string, error) { return owner, nil }, withSender: unmarked}
		if err := send(c); !errors.Is(err, history.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := store.Info(t.Context(), "a"); !errors.Is(err, history.ErrNotFound) {
			t.Errorf("%s: the conversation is there again: %+v, %v", name, info, err)
		}
	}
}

// sends is an engine that counts the messages that it gets.
type sends struct {
	engine.Engine
	n int
}

func (s *sends) Send(context.Context, string, canister.User) error {
	s.n++
	return nil
}

// A conversation that has got an answer is continued, and a fork that ends with one is not.
func TestForksAreNotContinued(t *testing.T) {
	owner, store := config.OwnerPrefix+"ada", history.NewMemory()
	deadline := time.Now().Add(time.Hour)
	err := errors.Join(store.Append(t.Context(), "talk", 0,
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("hi")}, canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "ask", Arguments: "{}"},
		canister.Wait{Head: canister.Head{ID: "w"}, Invocation: "i", For: canister.WaitApproval, Deadline: deadline},
		canister.Answer{Head: canister.Head{ID: "x"}, Wait: "w", Verdict: canister.VerdictAllow},
	), store.Describe(t.Context(), "talk", history.Change{Owner: &owner}))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Fork(t.Context(), "talk", 5, "fork"); err != nil {
		t.Fatal(err)
	}
	counted := &sends{}
	c := &conversations{engine: counted, store: histories.ClientsOnly{Store: store}}
	poll := answerPoll{of: c, log: zap.NewNop(), seen: map[string]checkedAnswer{}}
	if poll.once(t.Context()); counted.n != 1 {
		t.Errorf("%d conversations are continued, want one", counted.n)
	}
}

// TestShutdownBeforeTheConversation: a call that ends with the program before its conversation begins
// names none.
func TestShutdownBeforeTheConversation(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	served := &conversations{store: histories.ClientsOnly{Store: history.NewMemory()}, ending: ctx,
		owner: func(context.Context) (string, error) { return config.OwnerPrefix + "ada", nil }, withSender: unmarked}
	_, err := served.call(ctx, conversetool.Message{Message: "Hi."})
	if failure, ok := errors.AsType[*invoker.Failure](err); !ok || failure.Code != invoker.Canceled || failure.Message != "The program is shutting down." {
		t.Errorf("%+v", err)
	}
}

// leaving is a store whose caller leaves just before a conversation gets its owner. It fails when
// the context has ended.
type leaving struct {
	history.Store
	leave context.CancelFunc
}

func (l leaving) Describe(ctx context.Context, id string, change history.Change) error {
	l.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.Store.Describe(ctx, id, change)
}

// bounded is an engine that keeps how much time a cancel may take.
type bounded struct {
	engine.Engine
	limit time.Duration
}

func (b *bounded) Cancel(ctx context.Context, _ string) error {
	deadline, _ := ctx.Deadline()
	b.limit = time.Until(deadline)
	return nil
}

// TestStubbornTurnOfACallerThatLeaves: its cancel has the time that a turn needs whose functions ignore its end.
func TestStubbornTurnOfACallerThatLeaves(t *testing.T) {
	stubborn := &bounded{}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	turn := &servedTurn{tool: &conversations{engine: stubborn, ending: t.Context()}, id: "a", sent: true}
	if err := turn.failed(ctx, ctx.Err()); !errors.Is(err, context.Canceled) || stubborn.limit < turncancel.Limit-10*time.Second {
		t.Errorf("%v, and the cancel may take %v", err, stubborn.limit)
	}
}

// TestCallerThatLeavesAtTheBeginning: a caller that leaves when its message is in the log leaves
// no conversation without an owner, and its turn ends.
func TestCallerThatLeavesAtTheBeginning(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	store := histories.ClientsOnly{Store: leaving{history.NewMemory(), leave}}
	open := func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(conversetest.NewScript(conversetest.Line{Text: "Hi."}), nil, &converse.Options{ID: id, Log: store}), nil
	}
	local, err := engine.NewLocal(store, open, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close(t.Context())
	feed := httpapi.NewFeed(local, store)
	defer feed.Close()
	served := &conversations{engine: local, feed: feed, store: store, open: open, ending: t.Context(),
		owner: func(context.Context) (string, error) { return config.OwnerPrefix + "ada", nil }, withSender: unmarked}
	_, _ = served.call(ctx, conversetool.Message{Message: "Hi."}) // cancelled, or answered before
	n := 0
	for info, err := range store.List(t.Context(), history.Filter{}) {
		if n++; err != nil || info.Owner != config.OwnerPrefix+"ada" {
			t.Errorf("the conversation has the owner %q, %v", info.Owner, err)
		}
		for event, err := range local.Watch(t.Context(), info.ID, 1) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := event.(engine.Ended); ok {
				break
			}
		}
	}
	if n != 1 {
		t.Errorf("%d conversations", n)
	}
}
