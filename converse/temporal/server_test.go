// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
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
