// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/runcode"
	"github.com/consort-go/consort/invoker"
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

// The approval of a call that a program makes takes effect at once: the program does not run while
// its calls wait.
func TestApprovalOfACallOfAProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		calls := 0
		roster := tools(t, func(context.Context) (string, error) { calls++; return "did it", nil }, runcode.Ensemble("code", nil))
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{{Name: "code__run_code", Arguments: `{"program":"return local__tool()"}`}}},
			conversetest.Line{Text: "Done."})
		approve := func(_ context.Context, a converse.Approval) (converse.Decision, error) {
			if a.Invocation.Name == "local__tool" {
				return converse.Defer(6*time.Hour, ""), nil
			}
			return converse.Allow(), nil
		}
		local := start(t, store, func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(script, roster, &converse.Options{ID: id, Log: store, Approve: approve}), nil
		}, &engine.Options{Others: time.Hour})
		send(t, local, "talk", "m1", "hello")
		ended := waitFor(t, local, "talk", "m1")
		if ended.Reason != converse.ReasonWaiting {
			t.Fatalf("the turn ended with %+v, want a wait", ended)
		}
		if err := local.Answer(t.Context(), "talk", canister.Answer{Wait: ended.Waits[0], Verdict: canister.VerdictAllow, By: "ada"}); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); calls != 1 || script.Err() != nil {
			t.Errorf("the call was made %d times after the answer; %v", calls, script.Err())
		}
	})
}

// The deadline of a wait that another process has left holds however young the wait is, and so does an
// answer that was given while no process was there.
func TestYoungWaitsAtTheStart(t *testing.T) {
	for name, answer := range map[string][]canister.Canister{
		"a wait":    nil,
		"an answer": {canister.Answer{Head: canister.Head{ID: "n"}, Wait: "w", Verdict: canister.VerdictCancel}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, now := history.NewMemory(), time.Now()
				for i := range answer {
					answer[i] = canister.WithHead(answer[i], canister.Head{ID: "n", Time: now})
				}
				wait := canister.Wait{Head: canister.Head{ID: "w", Time: now}, For: canister.WaitTimer, Conversation: "talk", Deadline: now.Add(time.Minute)}
				if err := store.Append(t.Context(), "talk", 0, append([]canister.Canister{said("m1", "hello"), wait}, answer...)...); err != nil {
					t.Fatal(err)
				}
				start(t, store, opens(model(echo), store, converse.Options{}), &engine.Options{Others: 11 * time.Minute})
				if time.Sleep(2 * time.Minute); read(t, store, "talk")[len(read(t, store, "talk"))-1].Kind() != canister.KindAssistant {
					t.Errorf("the conversation has %d canisters, and no answer of the model", len(read(t, store, "talk")))
				}
			})
		})
	}
}

// A message that another process appends while a turn is opened is answered with the trusted values of its
// author.
func TestValuesOfTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		user := invoker.NewTrusted[string]("user")
		values := func(ctx context.Context, info history.Info) ([]invoker.Value, error) {
			list := read(t, store, info.ID)
			author := canister.TextOf(list[len(list)-1].(canister.User).Content)
			if author == "ada" {
				if err := engine.Post(ctx, store, nil, info.ID, said("m2", "bob"), time.Now()); err != nil {
					return nil, err
				}
			}
			return []invoker.Value{user.Value(author)}, nil
		}
		local := start(t, store, opens(model(func(ctx context.Context, _ []canister.Canister) (string, error) {
			name, _ := user.From(ctx)
			return "you are " + name, nil
		}), store, converse.Options{}), &engine.Options{Values: values})
		send(t, local, "talk", "m1", "ada")
		time.Sleep(time.Minute)
		list := read(t, store, "talk")
		answer, is := list[len(list)-1].(canister.Assistant)
		if !is || canister.TextOf(answer.Content) != "you are bob" || len(list) != 3 {
			t.Errorf("%d canisters, the last is %+v", len(list), list[len(list)-1])
		}
	})
}

// A call that the parent of a fork may be making is not one of the fork's, which goes on at once.
func TestForkDuringACallOfItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, now := history.NewMemory(), time.Now()
		list := []canister.Canister{said("m1", "call local__tool"), canister.Assistant{Head: canister.Head{ID: "a"}}}
		var intents []canister.Canister
		for _, id := range []string{"i1", "i2"} {
			list = append(list, canister.Invocation{Head: canister.Head{ID: id}, Message: "a", CallID: id, Name: "local__tool", Arguments: "{}"})
			intents = append(intents, canister.Intent{Head: canister.Head{ID: "t" + id, Time: now}, Invocation: id, Attempt: 1, Key: calls.Key("talk", id)})
		}
		list = append(list, intents...)
		list = append(list, canister.Result{Head: canister.Head{ID: "r1", Time: now}, Invocation: "i1", Content: canister.Texts("did it")})
		if err := store.Append(t.Context(), "talk", 0, list...); err != nil {
			t.Fatal(err)
		}
		if err := store.Fork(t.Context(), "talk", len(list), "fork"); err != nil {
			t.Fatal(err)
		}
		roster := tools(t, func(context.Context) (string, error) { return "did it", nil })
		local := start(t, store, withTool(roster, store), &engine.Options{Others: time.Hour})
		send(t, local, "talk", "m1", "call local__tool")
		send(t, local, "fork", "m1", "call local__tool")
		if ended := waitFor(t, local, "fork", "m1"); ended.Reason != converse.ReasonAnswered || !time.Now().Equal(now) {
			t.Errorf("the fork ended after %v with %+v", time.Since(now), ended)
		}
		if time.Sleep(59 * time.Minute); len(read(t, store, "talk")) != len(list) {
			t.Error("the parent has gone on while another process may be making its call")
		}
		if time.Sleep(2 * time.Minute); len(read(t, store, "talk")) == len(list) {
			t.Error("the parent has not gone on")
		}
	})
}

// Calls that this process has begun itself are not those of another process: after a turn that was given up because
// the log was away, a message enters as soon as the log is back.
func TestOwnCallsAreNotThoseOfOthers(t *testing.T) {
	for kind, kept := range map[canister.Kind]bool{canister.KindIntent: true, canister.KindResult: false} {
		synctest.Test(t, func(t *testing.T) {
			store := &flaky{Memory: history.NewMemory(), kind: kind, until: time.Now().Add(time.Minute), kept: kept}
			roster := tools(t, func(context.Context) (string, error) { return "did it", nil })
			local := start(t, store, withTool(roster, store), &engine.Options{Others: 11 * time.Minute})
			send(t, local, "talk", "m1", "call local__tool")
			time.Sleep(time.Minute)
			if _, hasFailed := local.Failed("talk", 0); !hasFailed {
				t.Fatalf("%s: the turn was not given up", kind)
			}
			began := time.Now()
			send(t, local, "talk", "m2", "hello")
			if ended := waitFor(t, local, "talk", "m2"); ended.Reason != converse.ReasonAnswered || time.Since(began) > 5*time.Second {
				t.Errorf("%s: after %v the turn ended with %+v", kind, time.Since(began), ended)
			}
		})
	}
}

// unconfirmed is a log that accepts no results of calls of the model for a while.
type unconfirmed struct {
	*history.Memory
	until time.Time
}

func (u *unconfirmed) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	if result, is := canisters[0].(canister.Result); is && result.Parent == "" && time.Now().Before(u.until) {
		return errors.New("connection reset by peer")
	}
	return u.Memory.Append(ctx, id, length, canisters...)
}

// A program of a process that has died, and that this process has taken over, is not under way elsewhere.
func TestTakenOverProgramsAreOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, calls := &unconfirmed{Memory: history.NewMemory()}, 0
		roster := tools(t, func(ctx context.Context) (string, error) {
			if calls++; calls == 2 {
				<-ctx.Done()
			}
			return "did it", ctx.Err()
		}, runcode.Ensemble("code", nil))
		script := conversetest.NewScript(
			conversetest.Line{Calls: []conversetest.Call{{Name: "code__run_code", Arguments: `{"program":"local__tool()\nreturn local__tool()"}`}}},
			conversetest.Line{Text: "Done."}, conversetest.Line{Text: "Done again."})
		open := func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(script, roster, &converse.Options{ID: id, Log: store}), nil
		}
		options := &engine.Options{Others: time.Hour}
		dies := start(t, store, open, options)
		send(t, dies, "talk", "m1", "hello")
		synctest.Wait()
		ended, end := context.WithCancel(t.Context())
		end()
		if err := dies.Close(ended); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		store.until = time.Now().Add(time.Minute)
		local := start(t, store, open, options)
		time.Sleep(time.Minute)
		if _, hasFailed := local.Failed("talk", 0); !hasFailed || calls < 2 {
			t.Fatalf("after %d calls the turn was not given up", calls)
		}
		began := time.Now()
		send(t, local, "talk", "m2", "hello")
		if ended := waitFor(t, local, "talk", "m2"); ended.Reason != converse.ReasonAnswered || time.Since(began) > 5*time.Second {
			t.Errorf("after %v the turn ended with %+v", time.Since(began), ended)
		}
	})
}

// An engine remembers no calls of a conversation whose turn was cancelled, or that was deleted.
func TestBegunCallsAreForgotten(t *testing.T) {
	for _, isDeleted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := history.NewMemory()
			returns := make(chan struct{})
			roster := tools(t, func(ctx context.Context) (string, error) {
				select {
				case <-returns:
				case <-ctx.Done():
				}
				return "", ctx.Err()
			})
			local := start(t, store, withTool(roster, store), &engine.Options{Others: time.Hour})
			send(t, local, "talk", "m1", "call local__tool")
			synctest.Wait()
			if local.Begun() != 1 {
				t.Fatal("the call was not begun")
			}
			if isDeleted {
				if err := store.Delete(t.Context(), "talk", history.AnyLength); err != nil {
					t.Fatal(err)
				}
				close(returns)
				time.Sleep(time.Minute)
			} else if err := local.Cancel(t.Context(), "talk"); err != nil {
				t.Fatal(err)
			}
			if synctest.Wait(); local.Begun() != 0 {
				t.Errorf("deleted %v: the engine remembers the call", isDeleted)
			}
		})
	}
}
