// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
)

var errDied = errors.New("the server died: exit status 3")

// inBubble runs a test in a bubble with fake time, which fails when anything
// that was started is left.
func inBubble(t *testing.T, options *ensemble.Options, test func(*testing.T, *ensembletest.Source, *ensemble.Ensemble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource(ensembletest.Returns("a", "answer"), ensembletest.Echo())
		e := ensemble.New("e", source, options)
		test(t, source, e)
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := source.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestLazySharedConnect(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		wantState(t, e, ensemble.Idle)
		release := source.Hang(ensembletest.Open, false)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := e.Tools(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		wantState(t, e, ensemble.Connecting)
		time.Sleep(time.Second)
		release()
		all.Wait()
		s := e.Snapshot()
		if s.State != ensemble.Ready || s.Tools != 2 || s.ConnectDuration != time.Second || s.Since != time.Now() {
			t.Errorf("the snapshot is %+v", s)
		}
		if got := source.Count(ensembletest.Open); got != 1 {
			t.Errorf("ten callers opened %d connections", got)
		}
	})
}

// TestConnectOutlivesCaller: the caller that started the attempt leaves, and the others
// get its result.
func TestConnectOutlivesCaller(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		release := source.Hang(ensembletest.Open, false)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		second := make(chan error, 1)
		go func() {
			time.Sleep(500 * time.Millisecond)
			second <- e.Connect(t.Context())
		}()
		start := time.Now()
		if err := e.Connect(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("the caller with a short time got %v after %v", err, time.Since(start))
		}
		release()
		if err := <-second; err != nil {
			t.Error(err)
		}
		if got := source.Count(ensembletest.Open); got != 1 {
			t.Errorf("%d attempts", got)
		}
	})
}

func TestEndedContextConnectsNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.Tools(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Tools: %v", err)
		}
		if err := e.Connect(ctx); !errors.Is(err, context.Canceled) || source.Count(ensembletest.Open) != 0 {
			t.Errorf("Connect: %v, %d opened", err, source.Count(ensembletest.Open))
		}
	})
}

func TestConnectTimeout(t *testing.T) {
	steps := []struct {
		step     ensembletest.Step
		stubborn bool
	}{{ensembletest.Open, false}, {ensembletest.Open, true}, {ensembletest.List, false}, {ensembletest.List, true}}
	for _, step := range steps {
		inBubble(t, &ensemble.Options{ConnectTimeout: 3 * time.Second}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
			release := source.Hang(step.step, step.stubborn)
			start := time.Now()
			err := e.Connect(t.Context())
			if err == nil || !strings.Contains(err.Error(), `ensemble "e"`) || !strings.Contains(err.Error(), "within 3s") {
				t.Errorf("%v: the error is %v", step, err)
			}
			if took := time.Since(start); took > 3500*time.Millisecond {
				t.Errorf("%v: it took %v", step, took)
			}
			wantState(t, e, ensemble.Lost)
			release()
			if err := e.Connect(t.Context()); err != nil {
				t.Errorf("%v: afterwards: %v", step, err)
			}
			if got := source.Connections(); got != 1 {
				t.Errorf("%v: %d connections are open, want 1", step, got)
			}
		})
	}
}

func TestLossIsNoticedAndRecovered(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		source.Lose(errDied)
		synctest.Wait()
		s := e.Snapshot()
		if s.State != ensemble.Lost || !errors.Is(s.LastError, errDied) || s.Tools != 2 {
			t.Errorf("the snapshot is %+v", s)
		}
		if source.Connections() != 0 {
			t.Error("the lost connection was not closed")
		}
		if text, failure := invoke(t.Context(), tool); text != "answer" {
			t.Errorf("after the loss: %q, %v", text, failure)
		}
		wantState(t, e, ensemble.Ready)
		if got := source.Count(ensembletest.Open); got != 2 {
			t.Errorf("%d connections were opened, want 2", got)
		}
		if again := toolOf(t, e, "a"); again != tool {
			t.Error("the same tool is another value on the fresh connection")
		}
	})
}

func TestLossWhileConnecting(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		release := source.Hang(ensembletest.List, false)
		defer release()
		failed := make(chan error, 1)
		go func() { failed <- e.Connect(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		source.Lose(errDied)
		if err := <-failed; !errors.Is(err, errDied) {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("it took %v", took)
		}
		wantState(t, e, ensemble.Lost)
	})
}

func TestDisconnectWhileConnecting(t *testing.T) {
	for _, step := range []ensembletest.Step{ensembletest.Open, ensembletest.List} {
		inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
			release := source.Hang(step, false)
			failed := make(chan error, 1)
			go func() { failed <- e.Connect(t.Context()) }()
			synctest.Wait()
			if err := e.Disconnect(t.Context()); err != nil {
				t.Errorf("Disconnect: %v", err)
			}
			if err := <-failed; err == nil || !strings.Contains(err.Error(), "disconnected on request") {
				t.Errorf("%s: Connect returned %v", step, err)
			}
			wantState(t, e, ensemble.Idle)
			release()
			if err := e.Connect(t.Context()); err != nil {
				t.Errorf("connecting again: %v", err)
			}
		})
	}
}

func TestDisconnect(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		if err := e.Disconnect(t.Context()); err != nil {
			t.Errorf("before the first use: %v", err)
		}
		tool := toolOf(t, e, "a")
		if err := e.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		wantState(t, e, ensemble.Idle)
		if source.Connections() != 0 {
			t.Error("the connection is still open")
		}
		if text, _ := invoke(t.Context(), tool); text != "answer" {
			t.Error("the tool does not come back on use")
		}
	})
}

func TestCloseIsFinal(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if err := e.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		all.Wait()
		wantState(t, e, ensemble.Closed)
		if err := e.Connect(t.Context()); !errors.Is(err, ensemble.ErrClosed) {
			t.Errorf("Connect: %v", err)
		}
		if _, err := e.Tools(t.Context()); !errors.Is(err, ensemble.ErrClosed) {
			t.Errorf("Tools: %v", err)
		}
		_, failure := invoke(t.Context(), tool)
		wantFailure(t, failure, "UNAVAILABLE", false)
		if err := e.Disconnect(t.Context()); err != nil {
			t.Errorf("Disconnect: %v", err)
		}
		wantState(t, e, ensemble.Closed)
		if got := source.Count(ensembletest.Close); got != 1 {
			t.Errorf("the connection was closed %d times", got)
		}
	})
}

// TestCloseHurries: the end of any caller's context ends the politeness.
func TestCloseHurries(t *testing.T) {
	inBubble(t, &ensemble.Options{CloseTimeout: time.Minute}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		if err := e.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer source.Hang(ensembletest.Close, false)()
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			if err := e.Close(t.Context()); err != nil {
				t.Errorf("the patient Close: %v", err)
			}
		})
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if err := e.Close(ctx); err != nil {
				t.Errorf("the hurried Close: %v", err)
			}
		})
		all.Wait()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("it took %v, want 2s", took)
		}
	})
}

func TestCloseTimeout(t *testing.T) {
	inBubble(t, &ensemble.Options{CloseTimeout: 4 * time.Second}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		if err := e.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		release := source.Hang(ensembletest.Close, true)
		start := time.Now()
		if err := e.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "its connection did not close") {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("it took %v", took)
		}
		release() // and the Close of inBubble finds all gone
	})
}

// TestOneConnectionAtATime: a fresh connection waits for the lost one to be
// gone, within the limit of connecting.
func TestOneConnectionAtATime(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		if err := e.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		release := source.Hang(ensembletest.Close, true)
		source.Lose(errDied)
		synctest.Wait()
		for range 3 {
			if err := e.Connect(t.Context()); err == nil || source.Count(ensembletest.Open) != 1 {
				t.Errorf("Connect: %v; %d opened", err, source.Count(ensembletest.Open))
			}
		}
		if err := e.Disconnect(t.Context()); err == nil {
			t.Error("Disconnect does not tell of the connection that is left")
		}
		release()
		if err := e.Connect(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestFailuresAreRemembered: for 1 s, 2 s, 4 s ... 30 s nothing is tried except on
// request.
func TestFailuresAreRemembered(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		source.Fail(ensembletest.Open, 1000, errDied)
		opened := func() int { return source.Count(ensembletest.Open) }
		try := func() {
			if _, err := e.Tools(t.Context()); !errors.Is(err, errDied) {
				t.Errorf("the error is %v", err)
			}
		}
		try()
		for _, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			before := opened()
			time.Sleep(wait*time.Second - time.Nanosecond)
			try()
			if opened() != before {
				t.Errorf("tried again within %d s", wait)
			}
			time.Sleep(time.Nanosecond)
			try()
			if opened() != before+1 {
				t.Errorf("not tried again after %d s", wait)
			}
		}
		before := opened()
		if err := e.Connect(t.Context()); !errors.Is(err, errDied) || opened() != before+1 {
			t.Errorf("Connect: %v", err)
		}
		source.Fail(ensembletest.Open, 0, nil)
		if err := e.Connect(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestFailuresAreForgotten by a success and by Disconnect: the memory begins
// anew at 1 s.
func TestFailuresAreForgotten(t *testing.T) {
	forget := map[string]func(*testing.T, *ensembletest.Source, *ensemble.Ensemble){
		"success": func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
			if err := e.Connect(t.Context()); err != nil {
				t.Error(err)
			}
			source.Lose(errDied)
		},
		"Disconnect": func(t *testing.T, _ *ensembletest.Source, e *ensemble.Ensemble) {
			if err := e.Disconnect(t.Context()); err != nil {
				t.Error(err)
			}
		},
	}
	for name, forget := range forget {
		inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
			source.Fail(ensembletest.Open, 5, errDied)
			for range 5 {
				e.Connect(t.Context())
			}
			forget(t, source, e)
			source.Fail(ensembletest.Open, 1, errDied)
			if _, err := e.Tools(t.Context()); !errors.Is(err, errDied) {
				t.Errorf("%s: the error is %v", name, err)
			}
			time.Sleep(time.Second)
			if _, err := e.Tools(t.Context()); err != nil {
				t.Errorf("%s: not tried again after 1s: %v", name, err)
			}
		})
	}
}

func TestOpenPanicsOrReturnsNothing(t *testing.T) {
	var none sourceFunc = func(context.Context) (ensemble.Connection, error) { return nil, nil }
	var crash sourceFunc = func(context.Context) (ensemble.Connection, error) { panic("boom") }
	var exit sourceFunc = func(context.Context) (ensemble.Connection, error) { runtime.Goexit(); return nil, nil }
	for _, source := range []ensemble.Source{none, crash, exit, nil} {
		e := ensemble.New("e", source, nil)
		if err := e.Connect(t.Context()); err == nil {
			t.Error("Connect succeeded")
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

type sourceFunc func(context.Context) (ensemble.Connection, error)

func (f sourceFunc) Open(ctx context.Context) (ensemble.Connection, error) { return f(ctx) }

// TestChaos runs everything concurrently; the race detector and the bubble find errors.
func TestChaos(t *testing.T) {
	for _, options := range []*ensemble.Options{nil, {
		Restart:        ensemble.Restart{Policy: ensemble.RestartAlways, Tries: -1},
		KeepAlive:      13 * time.Millisecond,
		IdleDisconnect: 3 * time.Millisecond,
		Trust:          ensemble.TrustAll,
	}} {
		chaos(t, options)
	}
}

func chaos(t *testing.T, options *ensemble.Options) {
	inBubble(t, options, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		var all sync.WaitGroup
		repeat := func(pause time.Duration, f func()) {
			all.Go(func() {
				for range 200 {
					f()
					time.Sleep(pause)
				}
			})
		}
		for i := range 8 {
			repeat(time.Duration(i+1)*time.Millisecond, func() {
				if text, failure := invoke(t.Context(), tool); text != "answer" && failure == nil {
					t.Errorf("the answer is %q", text)
				}
			})
		}
		repeat(3*time.Millisecond, func() { source.Lose(errDied) })
		repeat(5*time.Millisecond, func() { source.SetTools(ensembletest.Returns("a", "answer")) })
		repeat(7*time.Millisecond, func() {
			if err := e.Disconnect(t.Context()); err != nil {
				t.Errorf("Disconnect: %v", err)
			}
		})
		repeat(2*time.Millisecond, func() { e.Tools(t.Context()); e.Snapshot() })
		repeat(11*time.Millisecond, func() { source.Fail(ensembletest.Open, 1, errDied) })
		repeat(17*time.Millisecond, func() { source.Fail(ensembletest.Ping, 1, errDied) })
		all.Wait()
		if err := e.Connect(t.Context()); err != nil {
			e.Connect(t.Context())
		}
		if text, failure := invoke(t.Context(), tool); text != "answer" {
			t.Errorf("in the end: %q, %v", text, failure)
		}
	})
}
