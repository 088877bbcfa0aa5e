// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
)

const idle = 10_000

// heap returns the heap in use after unused memory was released.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// settle waits until an engine has so many conversations in its hands, and alarms
// for so many.
func settle(t testing.TB, local *engine.Local, talks, alarms int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		if n, m := local.InHand(); n == talks && m == alarms {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("the engine has %d conversations in its hands and %d alarms, want %d and %d", n, m, talks, alarms)
		}
	}
}

// perConversation returns the memory of the heap that an engine uses per conversation.
func perConversation(t *testing.T, local *engine.Local) float64 {
	t.Helper()
	with := heap()
	runtime.KeepAlive(local)
	if err := local.Close(t.Context()); err != nil {
		t.Error(err)
	}
	local = nil
	return float64(with-heap()) / idle
}

// Conversations that are idle cost nothing beyond the store.
func TestIdleConversationsCostNoMemory(t *testing.T) {
	store := history.NewMemory()
	local, err := engine.NewLocal(store, opens(model(echo), store, converse.Options{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range idle {
		send(t, local, fmt.Sprint("talk", i), "m1", "hello")
	}
	settle(t, local, 0, 0)
	got := perConversation(t, local)
	runtime.KeepAlive(store)
	t.Logf("%.2f bytes for each of %d idle conversations", got, idle)
	if got > 1 {
		t.Errorf("an idle conversation costs %.1f bytes", got)
	}
}

// Those that wait cost an ID and a time, also when they were found at start.
func TestWaitingConversationsCostLittle(t *testing.T) {
	store := history.NewMemory()
	for i := range idle {
		err := store.Append(t.Context(), fmt.Sprint("talk", i), 0, said("m1", "hello"),
			canister.Wait{Head: canister.Head{ID: "w1"}, For: canister.WaitTimer, Deadline: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
	}
	local, err := engine.NewLocal(store, opens(model(echo), store, converse.Options{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	settle(t, local, 0, idle)
	got := perConversation(t, local)
	runtime.KeepAlive(store)
	t.Logf("%.0f bytes for each of %d waiting conversations", got, idle)
	if got > 400 {
		t.Errorf("a conversation that waits costs %.0f bytes", got)
	}
}

// All deadlines are met, each by its own conversation.
func TestManyDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		begin := time.Now()
		for i := range 500 {
			err := store.Append(t.Context(), fmt.Sprint("talk", i), 0, said("m1", "hello"),
				canister.Wait{Head: canister.Head{ID: "w1"}, For: canister.WaitTimer, Deadline: begin.Add(time.Duration(1+(i*7919)%500) * time.Minute)})
			if err != nil {
				t.Fatal(err)
			}
		}
		start(t, store, opens(model(echo), store, converse.Options{}), nil)
		for minute := 1; minute <= 500; minute++ {
			time.Sleep(time.Until(begin.Add(time.Duration(minute)*time.Minute + time.Second)))
			answered := 0
			for info, err := range store.List(context.Background(), history.Filter{}) {
				if err == nil && info.Last == canister.KindAssistant {
					answered++
				}
			}
			if answered != minute {
				t.Fatalf("after %d minutes %d conversations went on", minute, answered)
			}
		}
	})
}

// BenchmarkTurn measures the overhead of the engine per turn: a message, and its answer
// in the log of a store in memory.
func BenchmarkTurn(b *testing.B) {
	store := history.NewMemory()
	local, err := engine.NewLocal(store, opens(model(echo), store, converse.Options{}), nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range b.N {
		if err := local.Send(b.Context(), fmt.Sprint("talk", i), said("m1", "hello")); err != nil {
			b.Fatal(err)
		}
	}
	settle(b, local, 0, 0)
	if err := local.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
