// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// pingBubble is inBubble for an ensemble with keep-alive every minute.
func pingBubble(t *testing.T, test func(*testing.T, *ensembletest.Source, *ensemble.Ensemble)) {
	t.Helper()
	inBubble(t, &ensemble.Options{KeepAlive: time.Minute}, test)
}

func TestKeepAlive(t *testing.T) {
	pingBubble(t, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		time.Sleep(10*time.Minute + time.Second)
		if got := source.Count(ensembletest.Ping); got != 10 {
			t.Errorf("%d pings in ten minutes, want 10", got)
		}
		wantState(t, e, ensemble.Ready)
		source.Fail(ensembletest.Ping, 1, errDied)
		time.Sleep(time.Minute)
		wantState(t, e, ensemble.Lost)
		if s := e.Snapshot(); !strings.Contains(s.LastError.Error(), "keep-alive: the server died") || source.Connections() != 0 {
			t.Errorf("the error is %v, %d connections", s.LastError, source.Connections())
		}
		namesOf(t, e)
		if s := e.Snapshot(); s.Restarts != 1 || s.State != ensemble.Ready {
			t.Errorf("afterwards: %+v", s)
		}
	})
}

// TestPingWithoutAnswer: also one that ignores its context.
func TestPingWithoutAnswer(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		pingBubble(t, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
			namesOf(t, e)
			release := source.Hang(ensembletest.Ping, stubborn)
			time.Sleep(time.Minute + 4*time.Second)
			wantState(t, e, ensemble.Ready)
			time.Sleep(2 * time.Second)
			wantState(t, e, ensemble.Lost)
			if s := e.Snapshot(); !strings.Contains(s.LastError.Error(), "no answer within 5s") {
				t.Errorf("the error is %v", s.LastError)
			}
			release()
		})
	}
}

// TestPingDoesNotHold: a loss and the end are noticed while a ping hangs.
func TestPingDoesNotHold(t *testing.T) {
	pingBubble(t, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		release := source.Hang(ensembletest.Ping, false)
		defer release()
		time.Sleep(time.Minute + time.Second)
		source.Lose(errDied)
		synctest.Wait()
		wantState(t, e, ensemble.Lost)
		namesOf(t, e)
		time.Sleep(time.Minute + time.Second)
		start := time.Now()
		if err := e.Disconnect(t.Context()); err != nil || time.Since(start) > time.Second {
			t.Errorf("Disconnect: %v after %v", err, time.Since(start))
		}
		wantState(t, e, ensemble.Idle)
	})
}

// TestTrafficIsLife: no ping while calls are answered, or while one runs that
// still may be.
func TestTrafficIsLife(t *testing.T) {
	pingBubble(t, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		for range 20 {
			time.Sleep(50 * time.Second)
			invoke(t.Context(), tool)
		}
		if got := source.Count(ensembletest.Ping); got != 0 {
			t.Errorf("%d pings between answers", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		gate := ensembletest.NewGate("gate", false)
		source := ensembletest.NewSource(gate)
		e := ensemble.New("e", source, &ensemble.Options{KeepAlive: time.Minute, CallTimeout: 5 * time.Minute})
		tool := toolOf(t, e, "gate")
		go invoke(t.Context(), tool)
		time.Sleep(4*time.Minute + time.Second)
		if got := source.Count(ensembletest.Ping); got != 0 {
			t.Errorf("%d pings while a call ran", got)
		}
		// It waits in vain, and now the others do not put the ping off.
		go invoke(t.Context(), tool)
		time.Sleep(3 * time.Minute)
		if got := source.Count(ensembletest.Ping); got == 0 {
			t.Error("no ping after a call had waited in vain")
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestProgressIsLife, also after a call has waited in vain.
func TestProgressIsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := ensembletest.NewTool("long", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			for i := 0; ctx.Err() == nil; i++ {
				call.Report(invoker.Progress{Done: float64(i)})
				pause(ctx, 20*time.Second)
			}
			return invoker.Output{}, ctx.Err()
		})
		source := ensembletest.NewSource(long, ensembletest.NewGate("gate", false))
		e := ensemble.New("e", source, &ensemble.Options{KeepAlive: time.Minute})
		go invoke(t.Context(), toolOf(t, e, "gate"))
		_, failure := invoke(t.Context(), toolOf(t, e, "long"))
		wantFailure(t, failure, invoker.Timeout, false)
		if got := source.Count(ensembletest.Ping); got != 0 {
			t.Errorf("%d pings while progress was reported", got)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestIdleDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := ensembletest.NewGate("gate", false)
		source := ensembletest.NewSource(gate, ensembletest.Returns("a", "answer"))
		e := ensemble.New("e", source, &ensemble.Options{IdleDisconnect: time.Minute, CallTimeout: time.Hour, CallLimit: time.Hour})
		roster := newRoster(t, e)
		catalog := func() *ensemble.Catalog {
			c, err := roster.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		first := catalog()
		go invoke(t.Context(), toolOf(t, e, "gate"))
		time.Sleep(10 * time.Minute)
		wantState(t, e, ensemble.Ready)
		gate.Release("")
		time.Sleep(59 * time.Second)
		wantState(t, e, ensemble.Ready)
		invoke(t.Context(), toolOf(t, e, "a"))
		time.Sleep(59 * time.Second)
		wantState(t, e, ensemble.Ready)
		time.Sleep(2 * time.Second)
		wantState(t, e, ensemble.Idle)
		if source.Connections() != 0 {
			t.Error("the connection is still open")
		}
		// Neither the catalog nor the list wakes it.
		if again := catalog(); again != first {
			t.Error("the catalog of a sleeping ensemble is another")
		}
		tool := toolOf(t, e, "a")
		if source.Count(ensembletest.Open) != 1 {
			t.Error("it was woken")
		}
		if text, failure := invoke(t.Context(), tool); text != "answer" {
			t.Errorf("%q, %v", text, failure)
		}
		if s := e.Snapshot(); s.State != ensemble.Ready || s.Restarts != 0 || catalog() != first {
			t.Errorf("afterwards: %+v", s)
		}
		source.SetTools(gate)
		synctest.Wait()
		wantNames(t, namesOf(t, e), "e__gate")
	})
}

// TestSleepOverChange: a list that is known to be old is not offered.
func TestSleepOverChange(t *testing.T) {
	inBubble(t, &ensemble.Options{IdleDisconnect: time.Minute}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		source.SetTools(ensembletest.Returns("b", ""))
		time.Sleep(2 * time.Minute)
		wantState(t, e, ensemble.Idle)
		wantNames(t, namesOf(t, e), "e__b")
	})
}

// A list that is being requested when the time is up is waited for.
func TestSleepDuringAListing(t *testing.T) {
	inBubble(t, &ensemble.Options{IdleDisconnect: time.Minute}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		source.SetTools(ensembletest.Returns("b", ""))
		synctest.Wait()
		release := source.Hang(ensembletest.List, false)
		time.Sleep(time.Minute - time.Second)
		time.AfterFunc(2*time.Second, release)
		wantNames(t, namesOf(t, e), "e__b")
		time.Sleep(2 * time.Minute)
		wantState(t, e, ensemble.Idle)
		wantNames(t, namesOf(t, e), "e__b")
	})
}

// TestDisconnectIsNoSleep: after Disconnect the list is requested again.
func TestDisconnectIsNoSleep(t *testing.T) {
	inBubble(t, &ensemble.Options{IdleDisconnect: time.Minute}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		time.Sleep(2 * time.Minute)
		if err := e.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		source.SetTools(ensembletest.Returns("b", ""))
		wantNames(t, namesOf(t, e), "e__b")
	})
}

// TestSleepingServerThatIsGone is found out by the call that wakes it.
func TestSleepingServerThatIsGone(t *testing.T) {
	inBubble(t, &ensemble.Options{IdleDisconnect: time.Minute}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		time.Sleep(2 * time.Minute)
		source.Fail(ensembletest.Open, 1, errDied)
		_, failure := invoke(t.Context(), tool)
		wantFailure(t, failure, invoker.Unavailable, true)
		wantState(t, e, ensemble.Lost)
	})
}
