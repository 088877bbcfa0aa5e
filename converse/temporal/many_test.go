// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/temporal/internal/temporalserver"
	"github.com/consort-go/consort/internal/testing/pgtest"
	"github.com/consort-go/consort/invoker"
)

// The run of .ci/temporal: 200 conversations on two workers over PostgreSQL; one is
// killed, and its replacement runs when the other one is partitioned.
const (
	talks     = 200
	turns     = 3 // of each
	turnCalls = 2 // of each turn
)

func TestManyConversations(t *testing.T) {
	store := os.Getenv("CONSORT_TEMPORAL_MANY")
	if store == "" {
		t.Skip(".ci/temporal runs it")
	}
	w := newWorld(t, workerForm{Address: temporalserver.Start(t, store), Store: pgtest.DSN(t), Heartbeat: 5 * time.Second, Idle: 5 * time.Second})
	w.leave = func(string) <-chan any { return later(200 * time.Millisecond) }
	first, second := startWorker(t, w.form), startWorker(t, w.form)
	begun := time.Now()
	var all sync.WaitGroup
	for i := range talks {
		all.Go(func() { w.talk(fmt.Sprintf("talk-%03d", i)) })
	}
	w.wait(talks * turns * (turnCalls + 1) / 4)
	killed := w.interrupted(first)
	first.kill()
	third := startWorker(t, w.form)
	w.wait(talks * turns * (turnCalls + 1) / 2)
	stopped := w.interrupted(second)
	second.signal(t, syscall.SIGSTOP)
	time.Sleep(12 * time.Second) // the partition, longer than two heartbeats
	second.signal(t, syscall.SIGCONT)
	all.Wait()
	took := time.Since(begun)
	second.stop(t)
	third.stop(t)
	w.report(took, killed, stopped)
}

// later is closed after a while.
func later(d time.Duration) <-chan any {
	c := make(chan any)
	time.AfterFunc(d, func() { close(c) })
	return c
}

// talk says everything, each message when the one before is answered.
func (w *world) talk(id string) {
	for n := range turns {
		message := canister.User{Head: canister.Head{ID: id + "." + strconv.Itoa(n)}, Content: canister.Texts(strconv.Itoa(turnCalls) + " calls, please.")}
		// On a busy machine the server may not hear of a message in time. It must be
		// answered then, too, and is not sent again.
		if err := w.engine.Send(w.t.Context(), id, message); errors.Is(err, engine.ErrKept) {
			w.unheard.Add(1)
		} else if err != nil {
			w.t.Errorf("%s: %v", id, err)
			return
		}
		w.finished(id, message.ID)
	}
}

// finished waits until a message has its answer.
func (w *world) finished(id, message string) {
	for event, err := range w.engine.Watch(w.t.Context(), id, 0) {
		if err != nil {
			w.t.Errorf("%s: %v", id, err)
			return
		}
		if ended, ok := event.(engine.Ended); ok && ended.Turn == message && ended.Again.IsZero() {
			if ended.Reason != converse.ReasonAnswered {
				w.t.Errorf("%s ended with %+v", message, ended)
			}
			return
		}
	}
}

// wait waits until the model was asked so often.
func (w *world) wait(n int) {
	for deadline := time.Now().Add(3 * time.Minute); len(w.questions()) < n; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("after 3 minutes the model was asked %d times, want %d", len(w.questions()), n)
		}
	}
}

// failover is a lost worker, and its requests at that time.
type failover struct {
	worker string
	at     time.Time
	open   []string
}

func (w *world) interrupted(p *process) failover {
	f := failover{worker: strconv.Itoa(p.Process.Pid), at: time.Now()}
	for _, q := range w.questions() {
		if q.worker == f.worker && !q.done {
			f.open = append(f.open, q.what)
		}
	}
	return f
}

// times are how long it took until another worker asked the same.
func (w *world) times(f failover) (times []time.Duration) {
	for _, what := range f.open {
		for _, q := range w.questions() {
			if q.what == what && q.worker != f.worker && q.at.After(f.at) {
				times = append(times, q.at.Sub(f.at))
				break
			}
		}
	}
	slices.Sort(times)
	return times
}

// report checks the promises of every turn, and prints the figures.
func (w *world) report(took time.Duration, killed, stopped failover) {
	w.t.Helper()
	effects := w.effects()
	missing, doubted := 0, 0
	for i := range talks {
		id := fmt.Sprintf("talk-%03d", i)
		canisters := w.history(id)
		if problems := sequence.Check(canisters); len(problems) > 0 {
			w.t.Errorf("%s: %v", id, problems)
		}
		for _, c := range canisters {
			if r, ok := c.(canister.Result); ok && r.Code == string(invoker.OutcomeUnknown) {
				doubted++
			}
		}
		for n := range turns {
			for call := range turnCalls {
				if effects[fmt.Sprintf("%s.%d/%d", id, n, call)] == 0 {
					missing++
				}
			}
		}
	}
	if missing > doubted {
		w.t.Errorf("%d effects did not happen, and only %d calls say that nobody knows", missing, doubted)
	}
	repeated, again := 0, 0
	for _, n := range effects {
		again += n - 1
	}
	asked := map[string]int{}
	for _, q := range w.questions() {
		if asked[q.what]++; asked[q.what] > 1 {
			repeated++
		}
	}
	say := func(format string, args ...any) { fmt.Printf("temporal: "+format+"\n", args...) }
	say("%d conversations, %d turns, %d calls in %.1f s: %.1f turns/s", talks, talks*turns, talks*turns*turnCalls, took.Seconds(), talks*turns/took.Seconds())
	say("%d effects: %d that are not idempotent, each once; %d idempotent ones were repeated with the same key; of %d calls nobody knows, and %d of them had no effect",
		len(effects), count(effects, "/0"), again, doubted, missing)
	say("%d of %d exchanges with the model were repeated", repeated, len(w.questions()))
	say("%d messages of which the server was not told in time were answered, too", w.unheard.Load())
	for name, f := range map[string]failover{"kill -9": killed, "SIGSTOP for 12 s": stopped} {
		if times := w.times(f); len(times) > 0 {
			say("%s: %d exchanges were under way; others took them up after %.1f s (median), %.1f s (longest)", name,
				len(f.open), times[len(times)/2].Seconds(), times[len(times)-1].Seconds())
		}
	}
}

func count(effects map[string]int, suffix string) (n int) {
	for key := range effects {
		if strings.HasSuffix(key, suffix) {
			n++
		}
	}
	return n
}
