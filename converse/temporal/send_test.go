// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
)

// A message does not enter a running turn that has had more exchanges than the default limit.
func TestALongTurnIsNotOver(t *testing.T) {
	store := history.NewMemory()
	if err := store.Append(t.Context(), "talk", 0, longTurn(canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")})...); err != nil {
		t.Fatal(err)
	}
	server := &lastWorkflow{status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, working: []*workflowpb.PendingActivityInfo{{}}}
	e, err := NewEngine(server, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	wait := turnEnd{Engine: e, conversation: "talk"}
	over := func(want bool) {
		t.Helper()
		if got, err := wait.over(t.Context(), "m2"); got != want || err != nil {
			t.Errorf("the turn is over: %v, %v; want %v", got, err, want)
		}
	}
	over(false)
	server.working, server.status = nil, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	over(true)
}

// A message behind calls that no turn can complete is refused with what failed, and starts one workflow.
func TestSendToATurnThatHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := history.NewMemory()
		if err := store.Append(t.Context(), "talk", 0, canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")},
			canister.Assistant{Head: canister.Head{ID: "a"}, Finish: canister.FinishInvocations},
			canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "pay", Arguments: "{}"}); err != nil {
			t.Fatal(err)
		}
		server := &failing{lastWorkflow{status: enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, ended: time.Now().Add(-time.Hour)}}
		e, err := NewEngine(server, store, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = e.Send(ctx, "talk", canister.User{Head: canister.Head{ID: "m2"}, Content: canister.Texts("Well?")})
		if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) || server.woken != 1 {
			t.Errorf("%v, after %d workflows", err, server.woken)
		}
	})
}

// A Send that ends while it waits for a turn has appended nothing, and does not look for its message.
func TestASendThatWaitsDoesNotLookForItsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Memory: history.NewMemory()}
		if err := store.Append(t.Context(), "talk", 0, longTurn(canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")})...); err != nil {
			t.Fatal(err)
		}
		e, err := NewEngine(&lastWorkflow{status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, working: []*workflowpb.PendingActivityInfo{{}}}, store, nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		go func() {
			sent <- e.Send(t.Context(), "talk", canister.User{Head: canister.Head{ID: "m2"}, Content: canister.Texts("Well?")})
		}()
		synctest.Wait()
		before := store.read
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; !errors.Is(err, engine.ErrClosed) || store.read != before {
			t.Errorf("%v, %d canisters read after that", err, store.read-before)
		}
	})
}

// failing is a client of a server whose workflows fail when they are started.
type failing struct{ lastWorkflow }

func (f *failing) SignalWithStartWorkflow(context.Context, string, string, any, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	f.woken++
	f.ended = time.Now()
	return nil, nil
}

// slow is a store whose appends take as long as it takes a caller to leave.
type slow struct {
	*history.Memory
	leave context.CancelFunc
	lost  error // the error that an append returns although it has taken effect; may be nil
}

func (s slow) Append(ctx context.Context, id string, length int, canisters ...canister.Canister) error {
	s.leave()
	return errors.Join(s.Memory.Append(ctx, id, length, canisters...), s.lost)
}

// signalled is a client that counts the signals whose context has not ended.
type signalled struct{ lastWorkflow }

func (s *signalled) SignalWithStartWorkflow(ctx context.Context, _ string, _ string, _ any, _ client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.woken++
	return nil, nil
}

// A worker is notified of a message, and of an answer, that enters the log after its sender has left.
func TestTheSenderLeavesDuringTheAppend(t *testing.T) {
	for _, try := range []struct {
		name   string
		noted  time.Duration
		answer bool
		lost   error
	}{
		{"a message", 0, false, nil},
		{"a message that a worker notes", time.Second, false, nil},
		{"a message whose append has failed", 0, false, errors.New("the connection was lost")},
		{"an answer", 0, true, nil},
		{"an answer whose append has failed", 0, true, errors.New("the connection was lost")},
	} {
		t.Run(try.name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			store := slow{history.NewMemory(), leave, try.lost}
			wait := canister.Wait{Head: canister.Head{ID: "w", Time: time.Now()}, For: canister.WaitTimer, Conversation: "talk", Deadline: time.Now().Add(time.Hour)}
			begun := []canister.Canister{canister.User{Head: canister.Head{ID: "m0"}, Content: canister.Texts("Hello?")}, wait}
			if try.answer {
				if err := store.Memory.Append(t.Context(), "talk", 0, begun...); err != nil {
					t.Fatal(err)
				}
			}
			server := new(signalled)
			e, err := NewEngine(server, store, &Options{Noted: try.noted})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close(t.Context())
			if try.answer {
				err = e.Answer(ctx, "talk", canister.Answer{Wait: "w", Verdict: canister.VerdictCancel, By: "ada"})
			} else {
				err = e.Send(ctx, "talk", canister.User{Head: canister.Head{ID: "m"}, Content: canister.Texts("Hello?")})
			}
			if !try.answer {
				try.lost = nil // the message is there
			}
			if server.woken != 1 || !errors.Is(err, try.lost) {
				t.Errorf("%d signals, %v", server.woken, err)
			}
		})
	}
}

// counted counts the canisters that are read.
type counted struct {
	*history.Memory
	read int
}

func (c *counted) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		for found, err := range c.Memory.Read(ctx, conversation, after) {
			if c.read++; !yield(found, err) {
				return
			}
		}
	}
}

// A message without a time is looked for in the whole conversation once, and then in what is new.
func TestAWaitingSendReadsTheWholeLogOnce(t *testing.T) {
	const turns = 500
	store := &counted{Memory: history.NewMemory()}
	var all []canister.Canister
	for n := range turns {
		at := time.Now().Add(-48 * time.Hour)
		all = append(all, canister.User{Head: canister.Head{ID: fmt.Sprint("u", n), Time: at}, Content: canister.Texts("Hello?")},
			canister.Assistant{Head: canister.Head{ID: fmt.Sprint("a", n), Time: at}, Content: canister.Texts("Hello."), Finish: canister.FinishStop})
	}
	all = append(all, canister.User{Head: canister.Head{ID: "m", Time: time.Now()}, Content: canister.Texts("Hello?")})
	if err := store.Append(t.Context(), "talk", 0, all...); err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(&lastWorkflow{status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, working: []*workflowpb.PendingActivityInfo{{}}}, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	wait := turnEnd{Engine: e, conversation: "talk"}
	for n := range 3 {
		before := store.read
		if free, err := wait.over(t.Context(), "m2"); free || err != nil {
			t.Fatalf("it is over: %v, %v", free, err)
		}
		if read := store.read - before; n == 0 && read < len(all) || n > 0 && read > 200 {
			t.Errorf("look %d has read %d canisters of %d", n, read, len(all))
		}
	}
}
