// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// stage runs the workflow in simulated time, with an activity of the test's.
type stage struct {
	*testsuite.TestWorkflowEnvironment
	asked []order     // the requests to the activity
	times []time.Time // and when
}

func newStage(t *testing.T, turn func(ctx context.Context, n int, o order) (outcome, error)) *stage {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &stage{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment()}
	s.SetTestTimeout(time.Minute)
	opts, err := (*WorkerOptions)(nil).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s.RegisterWorkflowWithOptions(workflowOf(&opts), workflow.RegisterOptions{Name: workflowName})
	s.RegisterActivityWithOptions(func(ctx context.Context, o order) (outcome, error) {
		s.asked = append(s.asked, o)
		s.times = append(s.times, s.Now())
		return turn(ctx, len(s.asked), o)
	}, activity.RegisterOptions{Name: turnName})
	return s
}

// run runs the workflow to its end, and returns its error.
func (s *stage) run(o order) error {
	s.ExecuteWorkflow(workflowName, o)
	return s.GetWorkflowError()
}

// after signals at a simulated time after the start.
func (s *stage) after(d time.Duration, signal string) {
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(signal, nil) }, d)
}

func done() outcome { return outcome{State: stateDone, Idle: time.Minute, Turns: 200} }

func waiting(deadline time.Time) outcome {
	return outcome{State: stateWaiting, Deadline: deadline, Turns: 200}
}

func TestATurnAndTheEndAfterAWhile(t *testing.T) {
	s := newStage(t, func(context.Context, int, order) (outcome, error) { return done(), nil })
	begin := s.Now()
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 1 || s.asked[0].Conversation != "talk" {
		t.Errorf("the activity was asked %v, want the conversation once", s.asked)
	}
	if lived := s.Now().Sub(begin); lived < time.Minute || lived > 2*time.Minute {
		t.Errorf("the workflow lived for %v, want the idle minute", lived)
	}
}

func TestASendToAnIdleWorkflowIsAnotherTurn(t *testing.T) {
	s := newStage(t, func(_ context.Context, n int, _ order) (outcome, error) { return done(), nil })
	s.after(30*time.Second, wakeSignal)
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 2 {
		t.Errorf("the activity ran %d times, want twice", len(s.asked))
	}
}

// Two messages during one turn are one more look at the log: a wake-up that
// comes before an activity begins is answered by it.
func TestManyWakeUpsAreOne(t *testing.T) {
	var s *stage
	s = newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n == 1 {
			s.SignalWorkflow(wakeSignal, nil)
			s.SignalWorkflow(wakeSignal, nil)
		}
		return done(), nil
	})
	s.after(0, wakeSignal)
	s.after(0, wakeSignal)
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.asked); n < 2 || n > 3 {
		t.Errorf("the activity ran %d times, want one for the start and one for what came meanwhile", n)
	}
}

func TestAnAnswerAfterSixHours(t *testing.T) {
	var s *stage
	s = newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n == 1 {
			return waiting(s.Now().Add(24 * time.Hour)), nil
		}
		return done(), nil
	})
	s.after(6*time.Hour, wakeSignal)
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 2 || s.times[1].Sub(s.times[0]) < 6*time.Hour-time.Second || s.times[1].Sub(s.times[0]) > 6*time.Hour+time.Minute {
		t.Errorf("activities at %v, want the second 6 h after the first", s.times)
	}
}

func TestADeadlinePasses(t *testing.T) {
	var s *stage
	s = newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		switch n {
		case 1:
			return waiting(s.Now().Add(6 * time.Hour)), nil
		case 2: // a clock that is slow
			return waiting(s.Now()), nil
		}
		return done(), nil
	})
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.times) != 3 {
		t.Fatalf("the activity ran %d times, want 3", len(s.times))
	}
	if d := s.times[1].Sub(s.times[0]); d != 6*time.Hour {
		t.Errorf("the second activity came %v after the first, want at the deadline", d)
	}
	if d := s.times[2].Sub(s.times[1]); d < time.Second {
		t.Errorf("a worker whose clock is behind is asked again after %v, want no less than a second", d)
	}
}

func TestWaitingWithoutADeadlineIsForEver(t *testing.T) {
	s := newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n == 1 {
			return waiting(time.Time{}), nil
		}
		return done(), nil
	})
	s.after(300*24*time.Hour, wakeSignal)
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 2 {
		t.Errorf("the activity ran %d times, want 2", len(s.asked))
	}
}

// Whatever the activity came to that was cancelled, the log is looked at again.
// The test environment does not wait for the activity; a real server's cancel is
// in server_test.go.
func TestACancelOfWhatRuns(t *testing.T) {
	second := make(chan struct{})
	var s *stage
	s = newStage(t, func(ctx context.Context, n int, o order) (outcome, error) {
		if n == 1 {
			s.SignalWorkflow(cancelSignal, nil)
			<-second
			return outcome{}, errors.New("nobody hears this")
		}
		close(second)
		return done(), nil
	})
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 2 {
		t.Errorf("the activity ran %d times, want a second one that looks at the log", len(s.asked))
	}
}

func TestACancelOfWhatWaits(t *testing.T) {
	s := newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n == 1 {
			return waiting(time.Time{}), nil
		}
		return done(), nil
	})
	s.after(time.Hour, cancelSignal)
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 2 {
		t.Errorf("the activity ran %d times, want a second one that looks at the log", len(s.asked))
	}
}

func TestTheHistoryIsBegunAnew(t *testing.T) {
	var s *stage
	s = newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n < 3 {
			s.SignalWorkflow(wakeSignal, nil)
		}
		out := done()
		out.Turns = 3
		if n == 3 {
			out.State = statePutDown
		}
		return out, nil
	})
	err := s.run(order{Conversation: "talk"})
	anew, ok := errors.AsType[*workflow.ContinueAsNewError](err)
	if !ok {
		t.Fatalf("the workflow ended with %v, want that it continues as new", err)
	}
	if anew.WorkflowType.Name != workflowName || len(s.asked) != 3 {
		t.Errorf("after %d activities it continues as %q, want 3 and %q", len(s.asked), anew.WorkflowType.Name, workflowName)
	}
}

func TestTheServerWantsANewHistory(t *testing.T) {
	var s *stage
	s = newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n == 2 {
			s.SetContinueAsNewSuggested(true)
		}
		s.SignalWorkflow(wakeSignal, nil)
		return done(), nil
	})
	err := s.run(order{Conversation: "talk"})
	if _, ok := errors.AsType[*workflow.ContinueAsNewError](err); !ok || len(s.asked) != 2 {
		t.Errorf("after %d activities the workflow ended with %v, want that it continues as new after 2", len(s.asked), err)
	}
}

// A worker that stops and abandons a turn does not use up an attempt, and does not delay
// the next one.
func TestAWorkerStops(t *testing.T) {
	s := newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		out := done()
		if n == 1 {
			out.State = statePutDown
		}
		return out, nil
	})
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 2 || s.times[1] != s.times[0] {
		t.Errorf("activities at %v, want the second at once", s.times)
	}
}

func TestFailuresAreTriedAgainWithPauses(t *testing.T) {
	s := newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n < 4 {
			return outcome{}, failed(errors.New("the model cannot be reached"))
		}
		return done(), nil
	})
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.times) != 4 {
		t.Fatalf("the activity ran %d times, want 4", len(s.times))
	}
	if d := s.times[3].Sub(s.times[0]); d < 7*time.Second {
		t.Errorf("four attempts within %v, want pauses of 1, 2 and 4 s", d)
	}
}

func TestAttemptsEnd(t *testing.T) {
	s := newStage(t, func(context.Context, int, order) (outcome, error) {
		return outcome{}, failed(errors.New("the model cannot be reached"))
	})
	err := s.run(order{Conversation: "talk"})
	failure, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || !strings.Contains(failure.Error(), "the model cannot be reached") {
		t.Errorf("the workflow ended with %v, want the error of the activity", err)
	}
	if len(s.asked) != defaultAttempts {
		t.Errorf("%d attempts, want %d", len(s.asked), defaultAttempts)
	}
}

// A message that came while a turn failed is a reason to try again.
func TestAFailureAndANewMessage(t *testing.T) {
	var s *stage
	s = newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n == 1 {
			s.SignalWorkflow(wakeSignal, nil)
			return outcome{}, temporal.NewNonRetryableApplicationError("no such model", "model", nil)
		}
		return done(), nil
	})
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 2 {
		t.Errorf("the activity ran %d times, want 2", len(s.asked))
	}
}

// An operator cancels the workflow: running work is notified and ends.
func TestTheWorkflowIsCancelled(t *testing.T) {
	for name, out := range map[string]outcome{"waiting": waiting(time.Time{}), "idle": done()} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, func(context.Context, int, order) (outcome, error) { return out, nil })
			s.RegisterDelayedCallback(s.CancelWorkflow, 30*time.Second)
			begin := s.Now()
			if err := s.run(order{Conversation: "talk"}); !temporal.IsCanceledError(err) {
				t.Errorf("the workflow ended with %v, want that it was cancelled", err)
			}
			if lived := s.Now().Sub(begin); lived > 31*time.Second {
				t.Errorf("it ended after %v, want at once", lived)
			}
		})
	}
}
