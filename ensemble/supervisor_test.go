// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// TestRestartAlways: the ensemble comes back by itself, after a loss and after
// attempts that failed, each within its wait.
func TestRestartAlways(t *testing.T) {
	options := &ensemble.Options{Restart: ensemble.Restart{Policy: ensemble.RestartAlways, Tries: -1}}
	inBubble(t, options, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		wantState(t, e, ensemble.Idle)
		time.Sleep(time.Hour)
		if source.Count(ensembletest.Open) != 0 {
			t.Error("it connected before the first use")
		}
		namesOf(t, e)
		source.Fail(ensembletest.Open, 8, errDied)
		source.Lose(errDied)
		synctest.Wait()
		wantState(t, e, ensemble.Lost)
		for i, most := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30, 30} {
			most *= time.Second
			start := time.Now()
			for source.Count(ensembletest.Open) < i+2 {
				time.Sleep(10 * time.Millisecond)
				if time.Since(start) > time.Minute {
					t.Fatalf("attempt %d was not made", i+1)
				}
			}
			if took := time.Since(start); took < most/2 || took > most+20*time.Millisecond {
				t.Errorf("attempt %d came after %v, want %v to %v", i+1, took, most/2, most)
			}
			synctest.Wait()
		}
		wantState(t, e, ensemble.Ready)
		if s := e.Snapshot(); s.Restarts != 1 {
			t.Errorf("%d restarts, want 1", s.Restarts)
		}
	})
}

// TestRestartAlwaysEnds: neither Disconnect nor Close leaves a planned restart behind.
func TestRestartAlwaysEnds(t *testing.T) {
	options := &ensemble.Options{Restart: ensemble.Restart{Policy: ensemble.RestartAlways}}
	inBubble(t, options, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		source.Lose(errDied)
		synctest.Wait()
		if err := e.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		wantState(t, e, ensemble.Idle)
		if got := source.Count(ensembletest.Open); got != 1 {
			t.Errorf("%d connections were opened", got)
		}
	})
}

// TestUseDoesNotWaitForRetry: the next use connects at once, and the plan to
// is dropped.
func TestUseDoesNotWaitForRetry(t *testing.T) {
	options := &ensemble.Options{Restart: ensemble.Restart{Policy: ensemble.RestartAlways}}
	inBubble(t, options, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		source.Lose(errDied)
		synctest.Wait()
		start := time.Now()
		if text, failure := invoke(t.Context(), tool); text != "answer" || time.Since(start) > 0 {
			t.Errorf("%q, %v after %v", text, failure, time.Since(start))
		}
		time.Sleep(time.Minute)
		if got := source.Count(ensembletest.Open); got != 2 {
			t.Errorf("%d connections were opened, want 2", got)
		}
	})
}

func TestParked(t *testing.T) {
	tests := []struct {
		name     string
		restart  ensemble.Restart
		failures int
		says     string
	}{
		{"always", ensemble.Restart{Policy: ensemble.RestartAlways}, 5, "parked after 5 failures within 5m0s"},
		{"on use", ensemble.Restart{Tries: 3, Window: time.Hour}, 3, "parked after 3 failures within 1h0m0s"},
		{"never", ensemble.Restart{Policy: ensemble.RestartNever, Tries: 7}, 1, "parked: its restart policy is never"},
	}
	for _, test := range tests {
		inBubble(t, &ensemble.Options{Restart: test.restart}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
			tool := toolOf(t, e, "a")
			source.Fail(ensembletest.Open, 1000, errDied)
			source.Lose(errDied)
			for range 100 {
				time.Sleep(time.Second)
				invoke(t.Context(), tool)
			}
			wantState(t, e, ensemble.Parked)
			if got := source.Count(ensembletest.Open); got != test.failures {
				t.Errorf("%s: %d attempts, want %d: one that succeeded, and then the loss counts too", test.name, got, test.failures)
			}
			_, failure := invoke(t.Context(), tool)
			wantFailure(t, failure, invoker.Unavailable, false)
			for _, want := range []string{test.says, "Connect revives it", "exit status 3", "was not made"} {
				if !strings.Contains(failure.Message, want) {
					t.Errorf("%s: the failure does not say %q: %s", test.name, want, failure.Message)
				}
			}
			if s := e.Snapshot(); !errors.Is(s.LastError, errDied) || !strings.Contains(s.LastError.Error(), "parked") {
				t.Errorf("%s: the last error is %v", test.name, s.LastError)
			}
			source.Fail(ensembletest.Open, 0, nil)
			if err := e.Connect(t.Context()); err != nil {
				t.Errorf("%s: Connect: %v", test.name, err)
			}
			if text, failure := invoke(t.Context(), tool); text != "answer" {
				t.Errorf("%s: revived: %v", test.name, failure)
			}
			if test.failures > 1 { // the count begins anew
				source.Lose(errDied)
				synctest.Wait()
				wantState(t, e, ensemble.Lost)
			}
		})
	}
}

// TestPark: after Park no use connects, neither by itself, and Connect revives.
func TestPark(t *testing.T) {
	inBubble(t, &ensemble.Options{Restart: ensemble.Restart{Policy: ensemble.RestartAlways}}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		tool := toolOf(t, e, "a")
		for range 2 { // also if it is parked already
			if err := e.Park(t.Context(), "parked by ada"); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Hour)
		wantState(t, e, ensemble.Parked)
		_, failure := invoke(t.Context(), tool)
		wantFailure(t, failure, invoker.Unavailable, false)
		if !strings.Contains(failure.Message, "parked by ada") || !strings.Contains(e.Snapshot().LastError.Error(), "parked by ada") {
			t.Errorf("the reason is missing: %s", failure.Message)
		}
		if got := source.Count(ensembletest.Open); got != 1 {
			t.Errorf("%d connections were opened", got)
		}
		if err := e.Connect(t.Context()); err != nil {
			t.Error(err)
		}
		if text, failure := invoke(t.Context(), tool); text != "answer" {
			t.Errorf("revived: %v", failure)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		_ = e.Park(t.Context(), "too late")
		wantState(t, e, ensemble.Closed)
	})
}

// Whoever watches hears that a parked ensemble has gone, and that it is back.
func TestParkIsNews(t *testing.T) {
	restarts := map[string]ensemble.Restart{"by a person": {}, "by its policy": {Policy: ensemble.RestartNever}}
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &ensemble.Options{Restart: restart}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
				roster, err := ensemble.NewRoster(e)
				if err != nil {
					t.Fatal(err)
				}
				defer roster.Close(t.Context())
				toolOf(t, e, "a")
				ctx, cancel := context.WithCancel(t.Context())
				news := roster.Watch(ctx)
				var heard []ensemble.NewsKind
				listened := make(chan struct{})
				go func() {
					defer close(listened)
					for n := range news {
						heard = append(heard, n.Kind)
					}
				}()
				if restart.Policy == ensemble.RestartNever {
					source.Lose(errors.New("gone"))
				} else if err := e.Park(t.Context(), "parked by ada"); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				wantState(t, e, ensemble.Parked)
				all := []ensemble.NewsKind{ensemble.ToolsChanged, ensemble.ResourcesChanged, ensemble.PromptsChanged}
				if !slices.Equal(heard, all) {
					t.Errorf("after it was parked: %v", heard)
				}
				if err := e.Connect(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if !slices.Equal(heard, append(all, all...)) {
					t.Errorf("after it was revived: %v", heard)
				}
				cancel()
				<-listened
			})
		})
	}
}

// TestWindow: failures that are long ago do not park, and by default a use
// never does.
func TestWindow(t *testing.T) {
	tests := []struct {
		restart ensemble.Restart
		pause   time.Duration
	}{
		{ensemble.Restart{Tries: 3, Window: time.Minute}, 30 * time.Second},
		{ensemble.Restart{}, 0},
	}
	for _, test := range tests {
		inBubble(t, &ensemble.Options{Restart: test.restart}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
			for range 20 {
				namesOf(t, e)
				source.Lose(errDied)
				synctest.Wait()
				wantState(t, e, ensemble.Lost)
				time.Sleep(test.pause)
			}
		})
	}
}

// TestParkedStays: neither Disconnect nor Refresh revives. Connect does, and the count begins anew.
func TestParkedStays(t *testing.T) {
	inBubble(t, &ensemble.Options{Restart: ensemble.Restart{Tries: 2}}, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		source.Fail(ensembletest.Open, 3, errDied)
		e.Connect(t.Context())
		e.Connect(t.Context())
		if err := e.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		wantState(t, e, ensemble.Parked)
		if err := e.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "parked after 2 failures") {
			t.Errorf("Refresh: %v", err)
		}
		wantState(t, e, ensemble.Parked)
		if got := source.Count(ensembletest.Open); got != 2 {
			t.Errorf("%d connections were opened", got)
		}
		e.Connect(t.Context())
		wantState(t, e, ensemble.Lost)
		time.Sleep(time.Second)
		namesOf(t, e)
	})
}

func TestLastChange(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, source *ensembletest.Source, e *ensemble.Ensemble) {
		namesOf(t, e)
		if c := e.Snapshot().LastChange; !c.Time.IsZero() {
			t.Errorf("the first listing changed %+v", c)
		}
		time.Sleep(time.Second)
		other := ensembletest.Returns("a", "answer")
		other.Def.Description = "Another."
		source.SetTools(ensembletest.Returns("c", ""), other, ensembletest.Returns("b", ""))
		source.Lose(errDied)
		namesOf(t, e)
		at := time.Now()
		c := e.Snapshot().LastChange
		if !slices.Equal(c.Added, []string{"b", "c"}) || !slices.Equal(c.Removed, []string{"echo"}) || !slices.Equal(c.Changed, []string{"a"}) || c.Time != at {
			t.Errorf("the change is %+v", c)
		}
		time.Sleep(time.Second)
		source.Lose(errDied)
		namesOf(t, e)
		if again := e.Snapshot().LastChange; again.Time != at {
			t.Errorf("a listing that is the same changed %+v", again)
		}
	})
}
