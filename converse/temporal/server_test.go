// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/waits"
	"go.temporal.io/sdk/client"
)

var quiet = slog.New(slog.DiscardHandler)

// On a real server: a turn with calls, and the next.
func TestTurnsOnARealServer(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: 2 * time.Second})
	startWorker(t, w.form)
	w.say("talk", "m1", 2)
	w.say("talk", "m2", 1)
	canisters := w.answered("talk")
	if n := len(w.effects()); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
	if canisters[0].Kind() != canister.KindSupervisor {
		t.Errorf("the conversation begins with %s", canisters[0].Kind())
	}
	w.say("talk", "m2", 1)
	if again := w.answered("talk"); len(again) != len(canisters) {
		t.Errorf("a message that was there already made %d canisters of %d", len(again), len(canisters))
	}
}

// hold lets one exchange wait for release, and closes held when it does.
func hold(what string, held chan any, release <-chan any) func(string) <-chan any {
	var once sync.Once
	return func(asked string) (wait <-chan any) {
		if asked == what {
			once.Do(func() { wait = release; close(held) })
		}
		return wait
	}
}

// A worker dies in the middle of a call to the model: another one carries on
// when the heartbeats have failed to come.
func TestAWorkerIsKilled(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: time.Second})
	held := make(chan any)
	w.leave = hold("m1/1", held, make(chan any))
	first := startWorker(t, w.form)
	w.say("talk", "m1", 2)
	<-held
	first.kill()
	killed := time.Now()
	startWorker(t, w.form)
	w.answered("talk")
	t.Logf("carried on and done %v after the worker was killed", time.Since(killed).Round(time.Millisecond))
	if n := len(w.effects()); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}

// A worker is partitioned: it stands still for longer than its lease lasts, and
// goes on when another one has taken over.
func TestAZombieStops(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: time.Second})
	held, release := make(chan any), make(chan any)
	w.leave = hold("m1/1", held, release)
	zombie := startWorker(t, w.form)
	w.say("talk", "m1", 3)
	<-held
	zombie.signal(t, syscall.SIGSTOP)
	startWorker(t, w.form)
	canisters := w.answered("talk")
	close(release) // the zombie's model answers now
	zombie.signal(t, syscall.SIGCONT)
	zombie.stop(t)
	if n := len(w.effects()); n != 3 {
		t.Errorf("%d effects, want 3", n)
	}
	if again := w.history("talk"); len(again) != len(canisters) {
		t.Errorf("the zombie wrote %v", kinds(again[len(canisters):]))
	}
}

// A conversation that waits goes on with the build that is current then; that
// which began it is gone.
func TestADeployWhileAConversationWaits(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: time.Second, Approve: true, Build: "a"})
	old := startWorker(t, w.form)
	w.current("a")
	w.say("talk", "m1", 1)
	waits := w.waits("talk")
	w.form.Build = "b"
	startWorker(t, w.form)
	w.current("b")
	old.kill()
	w.allow("talk", waits[0])
	w.answered("talk")
	if n := len(w.effects()); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// current makes a build the current one, as an operator does.
func (w *world) current(build string) {
	w.t.Helper()
	var err error
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if _, err = w.client.WorkerDeploymentClient().GetHandle("consort").SetCurrentVersion(w.t.Context(),
			client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build}); err == nil {
			return
		}
	}
	w.t.Fatalf("build %s does not become the current one: %v", build, err)
}

// waits waits until a conversation waits, and returns what for.
func (w *world) waits(conversation string) []canister.Wait {
	w.t.Helper()
	return waits.Open("", w.until(conversation, "begun to wait", func(canisters []canister.Canister) bool {
		return len(waits.Open("", canisters, time.Now())) > 0
	}), time.Now())
}

func (w *world) allow(conversation string, wait canister.Wait) {
	w.t.Helper()
	if err := w.engine.Answer(w.t.Context(), conversation, canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "ann"}); err != nil {
		w.t.Fatal(err)
	}
}

// Waiting for an approval survives the death of everything, also of Temporal's
// server with all that it knew: an answer that comes from a process that speaks
// with no server is found by the next worker.
func TestEverythingDiesWhileAConversationWaits(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: time.Second, Approve: true})
	worker := startWorker(t, w.form)
	w.say("talk", "m1", 1)
	found := w.waits("talk")
	worker.kill()
	w.form.Address = startServer(t) // one that knows of nothing
	answer := canister.Answer{Wait: found[0].ID, Verdict: canister.VerdictAllow, By: "ann"}
	if err := waits.Answer(t.Context(), w.store, "talk", answer, time.Now()); err != nil {
		t.Fatal(err)
	}
	startWorker(t, w.form)
	w.answered("talk")
	if n := len(w.effects()); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// A message whose sender died before the server heard of it is found while a
// worker is at work.
func TestALostWakeUp(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: time.Second})
	startWorker(t, w.form)
	w.say("first", "m1", 0)
	w.answered("first")
	message := canister.User{Head: canister.Head{ID: "m1"}, Content: canister.Texts("0 calls, please.")}
	if err := engine.Post(t.Context(), w.store, w.form.open(w.store, nil), "lost", message, time.Now()); err != nil {
		t.Fatal(err)
	}
	w.answered("lost")
	// And when the workflow is there and rests.
	message.ID = "m2"
	if err := engine.Post(t.Context(), w.store, nil, "first", message, time.Now()); err != nil {
		t.Fatal(err)
	}
	w.answered("first")
}

// A refusal of the model ends the turn: watchers are notified, also later ones, and
// repeating the message tries again.
func TestATurnThatFails(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: time.Second})
	w.status = http.StatusUnauthorized
	startWorker(t, w.form)
	w.say("talk", "m1", 0)
	for range 2 { // the second comes when all is over
		for event, err := range w.engine.Watch(t.Context(), "talk", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := event.(engine.Ended); ok {
				if !strings.Contains(e.Error, "the model is unwell") || !e.Again.IsZero() {
					t.Errorf("Watch says %+v, want why the turn has failed for good", e)
				}
				break
			}
		}
	}
	// A sweep that found the message before its sender had told of it makes it two.
	if n := len(w.questions()); n > 2 {
		t.Errorf("the model was asked %d times, want once: it has refused", n)
	}
	w.mu.Lock()
	w.status = 0
	w.mu.Unlock()
	w.say("talk", "m1", 0)
	w.answered("talk")
}
