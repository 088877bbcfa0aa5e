// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// model answers with a text; a text that begins with "call " asks for a tool.
type model func(ctx context.Context, history []canister.Canister) (string, error)

func (m model) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		text, err := m(ctx, request.History)
		if err != nil {
			yield(nil, err)
			return
		}
		reply := converse.Reply{Message: canister.Assistant{
			Head: canister.Head{ID: request.NewID()}, Content: canister.Texts(text), Finish: canister.FinishStop,
		}}
		if name, calls := strings.CutPrefix(text, "call "); calls && request.History[len(request.History)-1].Kind() == canister.KindUser {
			reply.Message.Content = nil
			reply.Invocations = []canister.Invocation{{
				Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID, CallID: "c", Name: name, Arguments: "{}",
			}}
		}
		yield(reply, nil)
	}
}

// echo repeats the message of the user.
func echo(_ context.Context, list []canister.Canister) (string, error) {
	for i := len(list) - 1; i >= 0; i-- {
		if c, ok := list[i].(canister.User); ok {
			return canister.TextOf(c.Content), nil
		}
	}
	return "", errors.New("nobody said anything")
}

// opens makes conversations of a model.
func opens(m converse.Model, log history.Log, opts converse.Options) converse.OpenFunc {
	return func(_ context.Context, id string) (*converse.Conversation, error) {
		mine := opts
		mine.ID, mine.Log = id, log
		return converse.New(m, nil, &mine), nil
	}
}

func start(t *testing.T, store history.Store, open converse.OpenFunc, opts *engine.Options) *engine.Local {
	t.Helper()
	local, err := engine.NewLocal(store, open, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return local
}

func send(t *testing.T, e engine.Engine, conversation, id, text string) {
	t.Helper()
	if err := e.Send(t.Context(), conversation, said(id, text)); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

func TestNewLocalRefuses(t *testing.T) {
	open := opens(model(echo), nil, converse.Options{})
	for name, err := range map[string]error{
		"no store": second(engine.NewLocal(nil, open, nil)),
		"no open":  second(engine.NewLocal(history.NewMemory(), nil, nil)),
		"work":     second(engine.NewLocal(history.NewMemory(), open, &engine.Options{Work: -1})),
		"others":   second(engine.NewLocal(history.NewMemory(), open, &engine.Options{Others: -1})),
	} {
		if err == nil {
			t.Errorf("NewLocal takes %s", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A failure is tried again after 1, 2, 4 seconds, and then no more until the next
// message.
func TestRetriesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		began := time.Now()
		var at []time.Duration
		broken := true
		m := model(func(context.Context, []canister.Canister) (string, error) {
			at = append(at, time.Since(began))
			if broken {
				return "", &converse.ModelError{Message: "away", Retryable: true}
			}
			return "here", nil
		})
		local := start(t, store, opens(m, store, converse.Options{}), &engine.Options{Retries: 3})
		synctest.Wait() // it has looked through the store
		send(t, local, "talk", "m1", "hello")
		if ended := waitFor(t, local, "talk", "m1"); ended.Error == "" {
			t.Errorf("the turn ended with %+v", ended)
		}
		time.Sleep(time.Hour)
		if want := "[0s 1s 3s 7s]"; fmt.Sprint(at) != want {
			t.Errorf("the model was asked at %v, want %v", at, want)
		}
		broken = false
		send(t, local, "talk", "m1", "hello") // the same message again
		synctest.Wait()
		if len(at) != 5 {
			t.Errorf("the model was asked %d times, want once more", len(at))
		}
	})
}

// What the model's server refuses is not tried again.
func TestPermanentFailuresAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		asked := 0
		m := model(func(context.Context, []canister.Canister) (string, error) {
			asked++
			return "", &converse.ModelError{Message: "no", Status: 400}
		})
		local := start(t, store, opens(m, store, converse.Options{}), nil)
		synctest.Wait()
		send(t, local, "talk", "m1", "hello")
		if ended := waitFor(t, local, "talk", "m1"); ended.Error == "" {
			t.Errorf("the turn ended with %+v", ended)
		}
		time.Sleep(time.Hour)
		if asked != 1 {
			t.Errorf("the model was asked %d times", asked)
		}
	})
}

// contested is a store in which another process always appends first.
type contested struct {
	history.Store
	tries atomic.Int64
}

func (c *contested) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	if canisters[0].Kind() == canister.KindUser {
		return c.Store.Append(ctx, conversation, length, canisters...)
	}
	c.tries.Add(1)
	return &history.ConflictError{Conversation: conversation, Expected: length, Length: length + 1}
}

// After a conflict with another process the engine looks again later, with growing
// delays.
func TestConflictsDoNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &contested{Store: history.NewMemory()}
		local := start(t, store, opens(model(echo), store, converse.Options{}), nil)
		send(t, local, "talk", "m1", "hello")
		time.Sleep(time.Hour)
		if n := store.tries.Load(); n < 30 || n > 150 {
			t.Errorf("in an hour it was tried %d times, want about once a minute", n)
		}
	})
}

func TestNoMoreAtWorkThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		var mu sync.Mutex
		now, most, total := 0, 0, 0
		m := model(func(context.Context, []canister.Canister) (string, error) {
			mu.Lock()
			now++
			total++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return "done", nil
		})
		local := start(t, store, opens(m, store, converse.Options{}), &engine.Options{Work: 3})
		for i := range 10 {
			send(t, local, fmt.Sprint("talk", i), "m1", "hello")
		}
		if err := local.Cancel(t.Context(), "talk9"); err != nil { // it has not begun
			t.Fatal(err)
		}
		began := time.Now()
		for i := range 9 {
			waitFor(t, local, fmt.Sprint("talk", i), "m1")
		}
		time.Sleep(time.Minute)
		if most != 3 || total != 9 {
			t.Errorf("%d turns, of which %d at a time; want 9 and 3", total, most)
		}
		if took := time.Since(began) - time.Minute; took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// An approval is waited for during 6 hours in which the process ends twice, and not
// longer.
func TestWaitsForHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		calls := 0
		roster := tools(t, func(context.Context) (string, error) { calls++; return "did it", nil })
		open := func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(model(echo), roster,
				&converse.Options{ID: id, Log: store, Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
					return converse.Defer(6*time.Hour, "ada"), nil
				}}), nil
		}
		began := time.Now()
		var wait string
		for hour := range 3 {
			local, err := engine.NewLocal(store, open, nil)
			if err != nil {
				t.Fatal(err)
			}
			if hour == 0 {
				send(t, local, "talk", "m1", "call local__tool")
				send(t, local, "late", "m1", "call local__tool")
			}
			for _, talk := range []string{"talk", "late"} {
				ended := waitFor(t, local, talk, "m1")
				if ended.Reason != converse.ReasonWaiting || talk == "talk" && wait != "" && ended.Waits[0] != wait {
					t.Fatalf("in hour %d %s ended with %+v, want the wait %s", hour, talk, ended, wait)
				}
				if talk == "talk" {
					wait = ended.Waits[0]
				}
			}
			time.Sleep(time.Hour)
			if err := local.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		local := start(t, store, open, nil)
		if err := local.Answer(t.Context(), "talk", canister.Answer{Wait: wait, Verdict: canister.VerdictAllow, By: "ada"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if calls != 1 {
			t.Errorf("the call was made %d times after the answer", calls)
		}
		time.Sleep(time.Until(began.Add(6*time.Hour + time.Second)))
		synctest.Wait()
		list := read(t, store, "late")
		if last := list[len(list)-1]; last.Kind() != canister.KindAssistant || calls != 1 {
			t.Errorf("after the deadline the log ends with %s, and %d calls were made", last.Kind(), calls)
		}
	})
}

// tools is a roster with the tool local__tool and more ensembles.
func tools(t *testing.T, do func(context.Context) (string, error), more ...*ensemble.Ensemble) *ensemble.Roster {
	t.Helper()
	made, err := invoker.New("tool", "A tool.", func(ctx context.Context, _ struct{}) (string, error) { return do(ctx) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(append(more, ensemble.Local("local", made))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roster.Close(context.Background()) })
	return roster
}

func read(t *testing.T, log history.Log, conversation string) []canister.Canister {
	t.Helper()
	var list []canister.Canister
	for c, err := range log.Read(context.Background(), conversation, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// withTool makes conversations with a roster.
func withTool(roster *ensemble.Roster, log history.Log) converse.OpenFunc {
	return func(_ context.Context, id string) (*converse.Conversation, error) {
		return converse.New(model(echo), roster, &converse.Options{ID: id, Log: log}), nil
	}
}

// Of two processes with Others, the second leaves a call alone that the first makes,
// and takes it up when the first has been silent for so long.
func TestOthersAreLeftAlone(t *testing.T) {
	for _, dies := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := history.NewMemory()
			calls := 0
			roster := tools(t, func(ctx context.Context) (string, error) {
				calls++
				select {
				case <-time.After(20 * time.Second):
					return "did it", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			})
			opts := &engine.Options{Others: 5 * time.Minute}
			first := start(t, store, withTool(roster, store), opts)
			send(t, first, "talk", "m1", "call local__tool")
			time.Sleep(10 * time.Second)
			second := start(t, store, withTool(roster, store), opts)
			if dies {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				if err := first.Close(ctx); err != nil {
					t.Error(err)
				}
			}
			send(t, second, "talk", "m1", "call local__tool") // again: it has a look at it too
			began := time.Now()
			ended := waitFor(t, second, "talk", "m1")
			took := time.Since(began)
			code := ""
			for _, c := range read(t, store, "talk") {
				if result, ok := c.(canister.Result); ok {
					code = result.Code
				}
			}
			if ended.Reason != converse.ReasonAnswered || calls != 1 {
				t.Errorf("it ended with %+v after %d calls", ended, calls)
			}
			if !dies && (code != "" || took > time.Minute) || dies && (code != string(invoker.OutcomeUnknown) ||
				took < 4*time.Minute || took > 11*time.Minute) {
				t.Errorf("the first process dies: %v; the result is %q after %v", dies, code, took)
			}
		})
	}
}

// Whom a turn works for comes with the conversation, not with the caller.
func TestOwnerAndValues(t *testing.T) {
	type key struct{}
	user := invoker.NewTrusted[string]("user")
	store := history.NewMemory()
	var mu sync.Mutex
	var seen []string
	see := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, name)
	}
	roster := tools(t, func(ctx context.Context) (string, error) {
		name, _ := user.From(ctx)
		see("tool " + name)
		return "did it", nil
	})
	open := func(ctx context.Context, id string) (*converse.Conversation, error) {
		if name, ok := user.From(ctx); ok {
			see("open " + name)
		}
		return converse.New(model(echo), roster, &converse.Options{ID: id, Log: store}), nil
	}
	local := start(t, store, open, &engine.Options{
		Owner: func(ctx context.Context) (string, error) { name, _ := ctx.Value(key{}).(string); return name, nil },
		Values: func(_ context.Context, info history.Info) ([]invoker.Value, error) {
			if info.Owner == "" {
				return nil, errors.New("nobody's")
			}
			return []invoker.Value{user.Value(info.Owner)}, nil
		},
	})
	for _, name := range []string{"ada", "bob"} { // the second is not the owner
		if err := local.Send(context.WithValue(t.Context(), key{}, name), "talk", said("m-"+name, "call local__tool")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, local, "talk", "m-"+name)
	}
	if err := local.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := 0
	for _, name := range seen {
		if name == "tool ada" {
			tools++
		} else if name != "open ada" { // also by who watches
			t.Errorf("a value was %q", name)
		}
	}
	if tools != 2 {
		t.Errorf("the tool was called %d times for ada: %v", tools, seen)
	}
}

func TestValuesThatFailEndTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		local := start(t, store, opens(model(echo), store, converse.Options{}), &engine.Options{
			Retries: -1,
			Values:  func(context.Context, history.Info) ([]invoker.Value, error) { return nil, errors.New("nobody's") },
		})
		send(t, local, "talk", "m1", "hello")
		if ended := waitFor(t, local, "talk", "m1"); strings.Contains(ended.Error, "nobody's") || !strings.Contains(ended.Error, `values of "talk"`) {
			t.Errorf("it ended with %+v", ended)
		}
	})
}

// What opens conversations may panic, or give the wrong one.
func TestBadOpen(t *testing.T) {
	store := history.NewMemory()
	good := opens(model(echo), store, converse.Options{})
	var mu sync.Mutex
	sent := map[string]bool{}
	local := start(t, store, func(ctx context.Context, id string) (*converse.Conversation, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case id == "good" || !sent[id]: // the first time is for the message
			sent[id] = true
			return good(ctx, id)
		case id == "panic":
			panic("cannot open")
		case id == "none":
			return nil, nil
		}
		return good(ctx, "other")
	}, &engine.Options{Work: 1, Retries: -1})
	for id, want := range map[string]string{"panic": "panicked", "none": "not \"none\"", "wrong": "not \"wrong\""} {
		send(t, local, id, "m1", "hello")
		if ended := waitFor(t, local, id, "m1"); !strings.Contains(ended.Error, want) {
			t.Errorf("%s ended with %+v, want %q", id, ended, want)
		}
	}
	send(t, local, "good", "m1", "hello")
	if ended := waitFor(t, local, "good", "m1"); ended.Reason != converse.ReasonAnswered {
		t.Errorf("the good one ended with %+v", ended)
	}
}

// A tool that ignores its context does not delay Close forever.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		gate := make(chan struct{})
		m := model(func(context.Context, []canister.Canister) (string, error) { <-gate; return "late", nil })
		local, err := engine.NewLocal(store, opens(m, store, converse.Options{}), nil)
		if err != nil {
			t.Fatal(err)
		}
		send(t, local, "talk", "m1", "hello")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err = local.Close(ctx)
		if took := time.Since(began); err == nil || took != 70*time.Second {
			t.Errorf("Close returned %v after %v, want an error after 70s", err, took)
		}
		close(gate)
		if err := local.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// Attempts grow from one process to the next, so that a client who watches across
// the death of one can tell them apart.
func TestAttemptsGrowAcrossProcesses(t *testing.T) {
	store, stream := history.NewMemory(), engine.NewStream()
	deltas, err := stream.Subscribe(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	for i := range 3 {
		local, err := engine.NewLocal(store, func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(conversetest.NewScript(conversetest.Line{Text: "hello"}), nil, &converse.Options{ID: id, Log: store}), nil
		}, &engine.Options{Stream: stream})
		if err != nil {
			t.Fatal(err)
		}
		send(t, local, "talk", fmt.Sprint("m", i), "hello")
		if err := local.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		text := ""
		for len(deltas) > 0 {
			if d := <-deltas; d.Text() != "" {
				if text += d.Text(); d.Attempt <= last || d.Attempt >= 1<<53 {
					t.Errorf("a delta of process %d has attempt %d, after %d", i, d.Attempt, last)
				}
				last = max(last, d.Attempt-1)
			}
		}
		if last++; text != "hello" {
			t.Errorf("the deltas of process %d say %q", i, text)
		}
	}
}
