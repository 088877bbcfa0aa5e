// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

// A slow reader loses the oldest deltas and receives their number; the last one always
// arrives.
func TestSlowReadersLoseAndAreTold(t *testing.T) {
	stream := engine.NewStream()
	ctx, cancel := context.WithCancel(t.Context())
	deltas, err := stream.Subscribe(ctx, "talk")
	if err != nil {
		t.Fatal(err)
	}
	const sent = 1000
	for i := range sent {
		if err := stream.Publish(ctx, "talk", engine.Delta{Index: i}); err != nil {
			t.Fatal(err)
		}
		if err := stream.Publish(ctx, "other", engine.Delta{Index: -1}); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	read, missed, last := 0, 0, -1
	for d := range deltas { // it ends with the context
		if d.Index <= last {
			t.Errorf("delta %d comes behind %d", d.Index, last)
		}
		read, missed, last = read+1, missed+d.Missed, d.Index
	}
	if read+missed != sent || missed == 0 || last != sent-1 {
		t.Errorf("%d were read, the last of them number %d, and %d are told to be lost; %d were sent", read, last, missed, sent)
	}
	if _, err := stream.Subscribe(ctx, "talk"); err == nil {
		t.Error("Subscribe takes a context that has ended")
	}
}

func TestDeltaForm(t *testing.T) {
	for _, d := range []engine.Delta{
		{},
		{Turn: "m1", Attempt: 1 << 52, Index: 3, Position: 7, Missed: 2, Event: json.RawMessage(`{"event":"text_delta","text":"hello"}`)},
		{Turn: "m1", Ended: &engine.Ended{Turn: "m1", Reason: converse.ReasonWaiting, Waits: []string{"w1"}}},
		{Ended: &engine.Ended{Error: "away", Again: time.Unix(1, 5).UTC()}},
	} {
		form, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back engine.Delta
		if err := json.Unmarshal(form, &back); err != nil || !reflect.DeepEqual(back, d) {
			t.Errorf("%s becomes %+v: %v", form, back, err)
		}
	}
	if text := (engine.Delta{Event: json.RawMessage(`{"event":"text_delta","text":"hello"}`)}).Text(); text != "hello" {
		t.Errorf("the text is %q", text)
	}
	if text := (engine.Delta{Event: json.RawMessage(`{"event":"reasoning_delta","text":"hello"}`)}).Text(); text != "" {
		t.Errorf("the text of a thought is %q", text)
	}
}

// told watches a log and a stream, and returns the events of a Watch until so many ends.
func told(t *testing.T, w engine.Watcher, after, ends int) []string {
	t.Helper()
	var list []string
	for event, err := range w.Watch(t.Context(), "talk", after) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.(type) {
		case engine.Added:
			list = append(list, fmt.Sprint(e.Position, e.Canister.Kind()))
		case engine.Delta:
			list = append(list, fmt.Sprint("delta ", e.Attempt, ".", e.Index, " missed ", e.Missed))
		case engine.Ended:
			list = append(list, fmt.Sprint("ended ", e.Turn, e.Reason, e.Error))
			if ends--; ends == 0 {
				return list
			}
		}
	}
	return list
}

func answer(id string) canister.Assistant {
	return canister.Assistant{Head: canister.Head{ID: id}, Content: canister.Texts("hello"), Finish: canister.FinishStop}
}

// Deltas are yielded in their position or not at all: those of a failed attempt and those
// of a complete message are superseded.
func TestWatchPutsDeltasInTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, stream := history.NewMemory(), engine.NewStream()
		if err := store.Append(t.Context(), "talk", 0, said("m1", "hello")); err != nil {
			t.Fatal(err)
		}
		go func() {
			synctest.Wait() // the Watch waits
			event := json.RawMessage(`{"event":"text_delta","text":"x"}`)
			publish := func(d engine.Delta) {
				d.Turn = cmp.Or(d.Turn, "m1")
				if err := stream.Publish(t.Context(), "talk", d); err != nil {
					t.Error(err)
				}
			}
			publish(engine.Delta{Attempt: 5, Index: 0, Position: 1, Event: event})
			publish(engine.Delta{Attempt: 4, Index: 9, Position: 1, Missed: 2, Event: event}) // of an earlier attempt
			publish(engine.Delta{Attempt: 5, Index: 1, Position: 1, Event: event})
			publish(engine.Delta{Position: 1}) // the log may have grown
			if err := store.Append(t.Context(), "talk", 1, answer("a1"), said("m2", "more")); err != nil {
				t.Error(err)
			}
			publish(engine.Delta{Turn: "m2", Attempt: 3, Index: 0, Position: 3, Event: event}) // of another turn
			publish(engine.Delta{Attempt: 6, Index: 0, Position: 1, Event: event})             // too late
			publish(engine.Delta{Position: 3, Ended: &engine.Ended{Error: " away"}})
		}()
		got := told(t, engine.Watcher{Log: store, Stream: stream, Poll: time.Hour}, 0, 2)
		want := "[1user delta 5.0 missed 0 delta 5.1 missed 2 2assistant ended m1answered 3user delta 3.0 missed 0 ended m2 away]"
		if fmt.Sprint(got) != want {
			t.Errorf("Watch told %v, want %v", got, want)
		}
	})
}

// An end that is published after the log has grown is not the end any more: the wait has been
// answered.
func TestLateEndsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, stream := history.NewMemory(), engine.NewStream()
		turn := []canister.Canister{
			said("m1", "pay"),
			canister.Assistant{Head: canister.Head{ID: "a1"}, Finish: canister.FinishInvocations},
			canister.Invocation{Head: canister.Head{ID: "i1"}, Name: "pay", Arguments: "{}"},
			canister.Wait{Head: canister.Head{ID: "w1"}, For: canister.WaitApproval, Invocation: "i1",
				Conversation: "talk", Deadline: time.Now().Add(time.Hour)},
			canister.Answer{Head: canister.Head{ID: "r1"}, Wait: "w1", Verdict: canister.VerdictAllow},
		}
		if err := store.Append(t.Context(), "talk", 0, turn...); err != nil {
			t.Fatal(err)
		}
		var later sync.WaitGroup
		later.Go(func() {
			synctest.Wait() // the Watch waits
			late := engine.Ended{Turn: "m1", Reason: converse.ReasonWaiting, Waits: []string{"w1"}}
			if err := stream.Publish(t.Context(), "talk", engine.Delta{Turn: "m1", Position: 4, Ended: &late}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			result := canister.Result{Head: canister.Head{ID: "o1"}, Invocation: "i1", Content: canister.Texts("paid")}
			if err := store.Append(t.Context(), "talk", 5, result, answer("a2")); err != nil {
				t.Error(err)
			}
		})
		got := told(t, engine.Watcher{Log: store, Stream: stream, Poll: time.Second}, 4, 1)
		later.Wait()
		if want := "[5answer 6result 7assistant ended m1answered]"; fmt.Sprint(got) != want {
			t.Errorf("Watch told %v, want %v", got, want)
		}
	})
}

// Without a stream all events come from the log, a little later, as do known failures.
func TestWatchFromTheLogAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		w := engine.Watcher{Log: store, Poll: time.Second}
		go func() {
			time.Sleep(10 * time.Second)
			if err := store.Append(t.Context(), "talk", 0, said("m1", "hello"), answer("a1")); err != nil {
				t.Error(err)
			}
		}()
		if got := fmt.Sprint(told(t, w, 0, 1)); got != "[1user 2assistant ended m1answered]" {
			t.Errorf("Watch told %v", got)
		}
		if got := fmt.Sprint(told(t, w, 1, 1)); got != "[2assistant ended m1answered]" {
			t.Errorf("Watch behind 1 told %v", got)
		}
		if got := fmt.Sprint(told(t, w, 2, 1)); got != "[ended m1answered]" {
			t.Errorf("Watch behind 2 told %v", got)
		}
		if err := store.Append(t.Context(), "talk", 2, said("m2", "more")); err != nil {
			t.Fatal(err)
		}
		w.Failed = func(string, int) (engine.Ended, bool) { return engine.Ended{Error: " away"}, true }
		if got := fmt.Sprint(told(t, w, 2, 2)); got != "[ended m1answered 3user ended m2 away]" {
			t.Errorf("Watch behind 2 told %v", got)
		}
		if got := fmt.Sprint(told(t, w, 3, 1)); got != "[ended m2 away]" {
			t.Errorf("Watch behind 3 told %v", got)
		}
	})
}

// slowEnd is a stream that takes two seconds to publish that a turn waits.
type slowEnd struct{ engine.Stream }

func (s slowEnd) Publish(ctx context.Context, conversation string, d engine.Delta) error {
	if d.Ended != nil && d.Ended.Reason == converse.ReasonWaiting {
		time.Sleep(2 * time.Second)
	}
	return s.Stream.Publish(ctx, conversation, d)
}

// A deadline that passes while the end of its turn is published is not forgotten.
func TestDeadlineDuringThePublication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		roster := tools(t, func(context.Context) (string, error) { return "did it", nil })
		local := start(t, store, func(_ context.Context, id string) (*converse.Conversation, error) {
			return converse.New(model(echo), roster,
				&converse.Options{ID: id, Log: store, Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
					return converse.Defer(time.Second, ""), nil
				}}), nil
		}, &engine.Options{Stream: slowEnd{engine.NewStream()}})
		send(t, local, "talk", "m1", "call local__tool")
		time.Sleep(time.Minute)
		if info, err := store.Info(t.Context(), "talk"); err != nil || info.Last != canister.KindAssistant {
			t.Errorf("the last canister is %s, %v; want an answer of the model", info.Last, err)
		}
	})
}
