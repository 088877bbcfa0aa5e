// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

var record = flag.Bool("record", false, "write the histories of testdata/histories that are not there, with a server")

// Waiting workflows may have been started by older versions of this package, and the
// histories of all released versions stay replayable. After a change of the workflow,
// record more histories (go test -run Record -record) under new names, and never remove
// one.
func TestReleasedHistoriesReplay(t *testing.T) {
	opts, err := (*WorkerOptions)(nil).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(workflowOf(&opts), workflow.RegisterOptions{Name: workflowName})
	found, err := filepath.Glob("testdata/histories/*.json")
	if err != nil || len(found) < len(stories) {
		t.Fatalf("%d histories (%v), want %d or more", len(found), err, len(stories))
	}
	for _, path := range found {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if err := replayer.ReplayWorkflowHistoryFromJSONFile(log.NewStructuredLogger(quiet), path); err != nil {
				t.Error(err)
			}
		})
	}
}

// story is a workflow whose history is recorded.
type story struct {
	// turn is the activity, at its nth time.
	turn func(ctx context.Context, n int) (outcome, error)
	// signals are sent one after the other, each when so many activities have begun.
	signals []signalAfter
	// updates, after those.
	updates []signalAfter
}

type signalAfter struct {
	begun int
	name  string
}

func outcomes(all ...outcome) func(context.Context, int) (outcome, error) {
	return func(_ context.Context, n int) (outcome, error) { return all[n-1], nil }
}

var (
	ended   = outcome{State: stateDone, Idle: time.Second, Turns: 200}
	putDown = outcome{State: statePutDown, Idle: time.Second, Turns: 200}
	asked   = outcome{State: stateWaiting, Turns: 200, Deadline: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	late    = outcome{State: stateWaiting, Turns: 200, Deadline: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	full    = outcome{State: stateDone, Idle: time.Second, Turns: 1}
)

var stories = map[string]story{
	"v1-turns":             {outcomes(ended, ended), []signalAfter{{1, wakeSignal}}, nil},
	"v1-answered":          {outcomes(asked, ended), []signalAfter{{1, wakeSignal}}, nil},
	"v1-deadline":          {outcomes(late, ended), nil, nil},
	"v1-put-down":          {outcomes(putDown, ended), nil, nil},
	"v1-anew":              {outcomes(full, ended), []signalAfter{{1, wakeSignal}}, nil},
	"v1-stopped":           {untilStopped, []signalAfter{{1, cancelSignal}}, nil},
	"v1-cancelled-waiting": {outcomes(asked, ended), []signalAfter{{1, cancelSignal}}, nil},
	"v1-failed": {func(context.Context, int) (outcome, error) {
		return outcome{}, temporal.NewNonRetryableApplicationError("no such model", "model", nil)
	}, nil, nil},
	"v2-looked":          {outcomes(ended, asked, ended), nil, []signalAfter{{1, lookUpdate}, {2, lookUpdate}}},
	"v2-stopped-waiting": {outcomes(asked, ended), nil, []signalAfter{{1, stopUpdate}}},
	"v2-stopped":         {untilStopped, nil, []signalAfter{{1, stopUpdate}}},
	"v2-both":            {outcomes(ended, ended, ended), []signalAfter{{1, wakeSignal}}, []signalAfter{{2, lookUpdate}}},
}

// untilStopped works until it is told to stop, and then once more.
func untilStopped(ctx context.Context, n int) (outcome, error) {
	if n > 1 {
		return ended, nil
	}
	for ctx.Err() == nil {
		activity.RecordHeartbeat(ctx)
		time.Sleep(10 * time.Millisecond)
	}
	return outcome{}, temporal.NewCanceledError()
}

// TestRecord makes the histories that are not there yet.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("only with -record")
	}
	c, err := dial(startServer(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for name, s := range stories {
		path := filepath.Join("testdata", "histories", name+".json")
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.WriteFile(path, s.record(t, c, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// record plays a story on a server and returns the history of its first run.
func (s story) record(t *testing.T, c client.Client, name string) []byte {
	opts, _ := (&WorkerOptions{Heartbeat: time.Second}).withDefaults()
	w := worker.New(c, name, worker.Options{})
	w.RegisterWorkflowWithOptions(workflowOf(&opts), workflow.RegisterOptions{Name: workflowName})
	begun := make(chan int, 100)
	n := 0
	w.RegisterActivityWithOptions(func(ctx context.Context, _ order) (outcome, error) {
		n++
		begun <- n
		return s.turn(ctx, n)
	}, activity.RegisterOptions{Name: turnName})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: name, TaskQueue: name}, workflowName, order{Conversation: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range s.signals {
		for <-begun < signal.begun {
		}
		time.Sleep(300 * time.Millisecond) // until the activity has ended, or runs
		if err := c.SignalWorkflow(t.Context(), name, "", signal.name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, update := range s.updates {
		for <-begun < update.begun {
		}
		time.Sleep(300 * time.Millisecond)
		handle, err := c.UpdateWorkflow(t.Context(),
			client.UpdateWorkflowOptions{WorkflowID: name, UpdateName: update.name, WaitForStage: client.WorkflowUpdateStageCompleted})
		if err == nil {
			err = handle.Get(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = run.Get(t.Context(), nil) // a failure is one of the stories
	return historyOf(t, c, name, run.GetRunID())
}

func historyOf(t *testing.T, c client.Client, id, run string) []byte {
	var all history.History
	for events := c.GetWorkflowHistory(t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		all.Events = append(all.Events, event)
	}
	form, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&all)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, form, "", " "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	return pretty.Bytes()
}
