// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// said is the answer of a workflow to an update.
type said struct{ refused, failed, done error }

func (s *said) Accept()                   {}
func (s *said) Reject(err error)          { s.refused = err }
func (s *said) Complete(_ any, err error) { s.failed, s.done = err, errors.New("done") }

// updated sends an update at a simulated time after the start.
func (s *stage) updated(d time.Duration, name string) *said {
	answer := &said{}
	s.RegisterDelayedCallback(func() { s.UpdateWorkflow(name, "", answer) }, d)
	return answer
}

func TestUpdatesWakeWhatRests(t *testing.T) {
	for name, tt := range map[string]struct {
		first  outcome
		update string
		again  bool
	}{
		"a look at what waits":   {waiting(time.Time{}), lookUpdate, true},
		"a look at what is idle": {done(), lookUpdate, true},
		"a stop of what waits":   {waiting(time.Time{}), stopUpdate, true},
		"a stop of what is idle": {done(), stopUpdate, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
				if n == 1 {
					return tt.first, nil
				}
				return done(), nil
			})
			answer := s.updated(30*time.Second, tt.update)
			if err := s.run(order{Conversation: "talk"}); err != nil {
				t.Fatal(err)
			}
			if again := len(s.asked) == 2; again != tt.again || (answer.done != nil) != tt.again || answer.failed != nil {
				t.Errorf("the activity ran %d times, and the update came to %+v; want that it wakes: %v", len(s.asked), answer, tt.again)
			}
			if refusal, ok := errors.AsType[*temporal.ApplicationError](answer.refused); ok == tt.again || ok && refusal.Type() != refusedIdle {
				t.Errorf("the update was refused with %v", answer.refused)
			}
		})
	}
}

func TestAStopOfWhatRuns(t *testing.T) {
	second := make(chan struct{})
	var s *stage
	answer := &said{}
	s = newStage(t, func(_ context.Context, n int, _ order) (outcome, error) {
		if n == 1 {
			s.UpdateWorkflow(stopUpdate, "", answer)
			<-second
			return outcome{}, errors.New("nobody hears this")
		}
		close(second)
		return done(), nil
	})
	if err := s.run(order{Conversation: "talk"}); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 2 || answer.done == nil || answer.refused != nil {
		t.Errorf("the activity ran %d times, and the update came to %+v; want a second one that looks at the log", len(s.asked), answer)
	}
}

// A workflow that ends no longer reads the log, and refuses updates: an accepted update
// is processed.
func TestWhoEndsRefuses(t *testing.T) {
	e := ears{stands: closing}
	for _, last := range []stand{open, idle} {
		if refusal, ok := errors.AsType[*temporal.ApplicationError](e.refuse(last)); !ok || refusal.Type() != refusedClosing {
			t.Errorf("a workflow that ends answers %v, want that it does", refusal)
		}
	}
}

// noting is an engine like the world's that waits until a worker has taken note.
func (w *world) noting(within time.Duration) {
	w.t.Helper()
	_ = w.engine.Close(context.Background())
	var err error
	if w.engine, err = NewEngine(w.client, w.store, &Options{Open: w.form.open(w.store, nil), Noted: within}); err != nil {
		w.t.Fatal(err)
	}
}

// send is say, and returns the error.
func (w *world) send(conversation, id string) error {
	return w.engine.Send(w.t.Context(), conversation, canister.User{Head: canister.Head{ID: id}, Content: canister.Texts("0 calls, please.")})
}

// A message is answered whether the server or a worker has recorded it, whenever the
// workflow ends: here it ends as soon as it can, so that both happen at one step, without
// a sweep.
func TestWhatIsNotedIsAnswered(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: 2 * time.Second, Idle: time.Millisecond, Unswept: true})
	startWorker(t, w.form)
	for _, within := range []time.Duration{0, 30 * time.Second} {
		w.noting(within)
		for n := range 60 {
			if err := w.send("talk", fmt.Sprint(within, n)); err != nil {
				t.Fatal(err)
			}
			w.answered("talk")
		}
	}
}

// begun waits until the server knows the workflow of a conversation.
func (w *world) begun(conversation string) {
	w.t.Helper()
	ctx, done := context.WithTimeout(w.t.Context(), time.Minute)
	defer done()
	for {
		_, err := w.client.DescribeWorkflowExecution(ctx, defaultPrefix+conversation, "")
		if err == nil {
			return
		}
		if !none(err) {
			w.t.Fatal(err)
		}
	}
}

// events returns the number of events of one type in the last run of a workflow.
func (w *world) events(kind enums.EventType, conversation string) (n int) {
	w.t.Helper()
	for events := w.client.GetWorkflowHistory(w.t.Context(), defaultPrefix+conversation, "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if event.GetEventType() == kind {
			n++
		}
	}
	return n
}

// idle waits until the workflow of a conversation waits for a message.
func (w *world) idle(conversation string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for {
		now, err := w.client.DescribeWorkflowExecution(ctx, defaultPrefix+conversation, "")
		if err != nil {
			w.t.Fatal(err)
		}
		if len(now.GetPendingActivities()) == 0 && now.GetPendingWorkflowTask() == nil {
			return
		}
	}
}

// Without a worker no update is accepted: the caller learns that, and that the message is
// stored.
func TestNobodyTakesNote(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: time.Second, Unswept: true})
	w.noting(300 * time.Millisecond)
	if err := w.send("talk", "m1"); !errors.Is(err, engine.ErrKept) {
		t.Fatalf("Send without a worker returns %v, want ErrKept", err)
	}
	if canisters := w.history("talk"); len(canisters) != 2 {
		t.Errorf("the log has %v, want the message", kinds(canisters))
	}
	w.begun("talk") // the server may take longer than the time that Send waited
	if err := w.engine.stop(t.Context(), "talk", 300*time.Millisecond); err == nil {
		t.Error("a cancel that nobody has taken note of is no error")
	}
	startWorker(t, w.form)
	w.answered("talk")
	w.noting(time.Minute)
	if err := w.send("talk", "m2"); err != nil {
		t.Errorf("Send with a worker returns %v", err)
	}
	w.answered("talk")
}

// notifying is a store that calls appended after each append.
type notifying struct {
	*history.Memory
	appended func()
}

func (n *notifying) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	err := n.Memory.Append(ctx, conversation, length, canisters...)
	n.appended()
	return err
}

// While the server is unreachable, the message is in the log, and the caller learns that.
func TestTheServerIsAway(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	store := &notifying{Memory: history.NewMemory()}
	for _, within := range []time.Duration{0, time.Second} {
		e, err := NewEngine(c, store, &Options{Noted: within})
		if err != nil {
			t.Fatal(err)
		}
		talk := fmt.Sprint("talk ", within)
		ctx, done := context.WithCancel(t.Context())
		store.appended = func() { time.AfterFunc(200*time.Millisecond, done) }
		message := canister.User{Head: canister.Head{ID: "m1"}, Content: canister.Texts("Hello.")}
		if err := e.Send(ctx, talk, message); !errors.Is(err, engine.ErrKept) {
			t.Errorf("Send returns %v, want ErrKept", err)
		}
		done()
		if info, err := store.Info(t.Context(), talk); err != nil || info.Length != 1 {
			t.Errorf("the log has %+v, %v; want the message", info, err)
		}
		// What does not enter the log is not kept.
		ctx, done = context.WithTimeout(t.Context(), 200*time.Millisecond)
		message.ID = "m2"
		if err := e.Send(ctx, talk, message); err == nil || errors.Is(err, engine.ErrKept) {
			t.Errorf("Send of what is not in the log returns %v", err)
		}
		done()
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A worker that is older than updates answers that it knows none: it is signalled.
func TestAnOlderWorker(t *testing.T) {
	w := newWorld(t, workerForm{})
	w.noting(30 * time.Second)
	old := worker.New(w.client, DefaultQueue, worker.Options{})
	heard := make(chan string, 10)
	old.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ order) error {
		for _, name := range []string{wakeSignal, cancelSignal} {
			workflow.GetSignalChannel(ctx, name).Receive(ctx, nil)
			heard <- name
		}
		return nil
	}, workflow.RegisterOptions{Name: workflowName})
	if err := old.Start(); err != nil {
		t.Fatal(err)
	}
	defer old.Stop()
	if err := w.send("talk", "m1"); err != nil || <-heard != wakeSignal {
		t.Errorf("Send to an older worker: %v", err)
	}
	if err := w.engine.Cancel(t.Context(), "talk"); err != nil || <-heard != cancelSignal {
		t.Errorf("Cancel with an older worker: %v", err)
	}
}

// A cancel is answered by the worker at once, and ends what runs.
func TestACancelIsNoted(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: 2 * time.Second, Unswept: true})
	held := make(chan any)
	w.leave = hold("m1/0", held, make(chan any))
	startWorker(t, w.form)
	w.say("talk", "m1", 0)
	<-held
	if err := w.engine.Cancel(t.Context(), "talk"); err != nil {
		t.Fatal(err)
	}
	if n := w.events(enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED, "talk"); n != 1 {
		t.Errorf("%d updates have been answered, want the cancel", n)
	}
	w.say("talk", "m2", 0)
	w.answered("talk")
	w.idle("talk") // the answer is in the log before the workflow knows that the turn is over
	before := w.events(enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED, "talk")
	if err := w.engine.Cancel(t.Context(), "talk"); err != nil {
		t.Errorf("a cancel of nothing: %v", err)
	}
	if err := w.engine.Cancel(t.Context(), "nowhere"); err != nil {
		t.Errorf("a cancel of a conversation that is not there: %v", err)
	}
	if after := w.events(enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED, "talk"); after != before {
		t.Error("what was refused is in the history of the workflow")
	}
}

// Repeating a message retries the turn, also if a worker has accepted it before: an
// update of the same ID would be answered by the server.
func TestAFailedTurnIsNotedAgain(t *testing.T) {
	w := newWorld(t, workerForm{Heartbeat: time.Second, Unswept: true})
	w.noting(30 * time.Second)
	w.status = http.StatusUnauthorized
	startWorker(t, w.form)
	if err := w.send("talk", "m1"); err != nil {
		t.Fatal(err)
	}
	for event, err := range w.engine.Watch(t.Context(), "talk", 0) {
		if _, ended := event.(engine.Ended); err != nil || ended {
			break
		}
	}
	w.mu.Lock()
	w.status = 0
	w.mu.Unlock()
	if err := w.send("talk", "m1"); err != nil {
		t.Fatal(err)
	}
	w.answered("talk")
}
