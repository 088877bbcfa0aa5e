// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/invoker"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
)

// The defaults of [WorkerOptions] and [Options].
const (
	DefaultQueue     = "consort"
	defaultHeartbeat = 10 * time.Second
	defaultTurn      = 24 * time.Hour
	defaultAttempts  = 10
	defaultBackoff   = time.Second
	defaultIdle      = time.Minute
	defaultTurns     = 200
	defaultParallel  = 100
	defaultGrace     = 30 * time.Second
	defaultSweep     = time.Minute
)

// stopTimeout is how long suspended work has to end.
const stopTimeout = 10 * time.Second

// stickyTimeout is how long a workflow task waits for the worker that did the previous
// one.
const stickyTimeout = 2 * time.Second

// maxBackoff bounds the pause between two attempts.
const maxBackoff = time.Minute

// WorkerOptions configure a [Worker]. Nil, and the zero value of each field, mean the
// default that the field documents.
type WorkerOptions struct {
	// Queue is the task queue, which must be the same in the [Engine]; default
	// "consort".
	Queue string
	// Heartbeat is how long a worker may be silent before it is given up for dead and
	// another takes over; default 10 s. Workers send heartbeats five times as often. A
	// cancel takes up to a fifth of it to arrive.
	Heartbeat time.Duration
	// Turn is how long a conversation may run without interruption, between two waits;
	// default 24 h. A longer turn is suspended and retried.
	Turn time.Duration
	// Attempts is how often a turn is tried before it fails, and Backoff the pause
	// after the first attempt, which doubles each time up to a minute; default 10 and 1
	// s, which is four minutes. The death of a worker counts as an attempt.
	Attempts int
	Backoff  time.Duration
	// Idle is how long a workflow stays open when its conversation has nothing left to
	// do, so that it can take the next message; default 1 minute.
	Idle time.Duration
	// Turns is the number of activities after which a workflow continues as new;
	// default 200. The server can ask for it earlier.
	Turns int
	// Parallel is how many conversations the worker runs concurrently; default 100.
	Parallel int
	// Grace is how long Close waits for running tool calls; default 30 s. Calls that
	// have not ended then are left to another worker, and may have taken effect.
	Grace time.Duration
	// Sweep is how often the worker searches the store for unfinished conversations
	// whose wake-up was lost; default 1 minute, negative means never.
	Sweep time.Duration
	// Prefix begins the IDs of the workflows, as in [Options]; default "consort/".
	Prefix string
	// Values returns the trusted values of a conversation, for open and for its tools.
	// A turn runs in a process that has no caller, so the values are based on the
	// metadata in the store, for example [history.Info.Owner]. Look up credentials
	// here; they are never stored. An error fails the turn. Nil means no values. It is
	// called concurrently.
	Values func(ctx context.Context, info history.Info) ([]invoker.Value, error)
	// Stream carries deltas to watchers; nil discards them.
	Stream engine.Stream
	// Deployment and Build, if set, make the worker a version of a deployment: the
	// server assigns work to it once it is the current version, and conversations move
	// to it with their next step. Set both or none.
	Deployment, Build string
	// Logger receives log entries; nil discards them.
	Logger *zap.Logger
}

// withDefaults returns the options with defaults filled in.
func (o *WorkerOptions) withDefaults() (WorkerOptions, error) {
	var all WorkerOptions
	if o != nil {
		all = *o
	}
	if all.Heartbeat < 0 || all.Turn < 0 || all.Attempts < 0 || all.Backoff < 0 || all.Idle < 0 || all.Turns < 0 || all.Parallel < 0 || all.Grace < 0 {
		return all, errors.New("temporal: a worker does not accept negative numbers, except Sweep")
	}
	if (all.Deployment == "") != (all.Build == "") {
		return all, fmt.Errorf("temporal: a worker has Deployment %q and Build %q: set both or neither", all.Deployment, all.Build)
	}
	all.Queue = cmp.Or(all.Queue, DefaultQueue)
	all.Prefix = cmp.Or(all.Prefix, defaultPrefix)
	all.Heartbeat = cmp.Or(all.Heartbeat, defaultHeartbeat)
	all.Turn = cmp.Or(all.Turn, defaultTurn)
	all.Attempts = cmp.Or(all.Attempts, defaultAttempts)
	all.Backoff = cmp.Or(all.Backoff, defaultBackoff)
	all.Idle = cmp.Or(all.Idle, defaultIdle)
	all.Turns = cmp.Or(all.Turns, defaultTurns)
	all.Parallel = cmp.Or(all.Parallel, defaultParallel)
	all.Grace = cmp.Or(all.Grace, defaultGrace)
	all.Sweep = cmp.Or(all.Sweep, defaultSweep)
	if all.Logger == nil {
		all.Logger = zap.NewNop()
	}
	return all, nil
}

// Worker runs the conversations that a server assigns to it. Many workers, on many
// machines, share the work. Its methods may be called concurrently.
type Worker struct {
	opts  WorkerOptions
	store history.Store
	open  converse.OpenFunc
	beat  func(ctx context.Context, token []byte) error
	inner worker.Worker

	stopping context.Context    // ends when leases must be put down
	stop     context.CancelFunc // ends stopping

	end    context.CancelFunc // of the sweep
	ended  sync.WaitGroup
	closed sync.Once
	done   chan struct{} // closed when it must stop
	err    error         // the reason
}

// Done returns a channel that is closed when the worker must stop because the server
// rejects it; Close then returns the reason.
func (w *Worker) Done() <-chan struct{} { return w.done }

// NewWorker starts a worker. It runs the conversations of store that the server
// connected to c assigns to it, and opens each with open, whose ctx carries the trusted
// values of WorkerOptions.Values and no others: values that came with a message stay in
// the process that received it. The conversation that open returns must have store as
// its Options.Log and id as its ID. It is closed when it has nothing to do or waits.
//
// Opts may be nil. The caller still owns c and store and must close them after the
// worker.
func NewWorker(c client.Client, store history.Store, open converse.OpenFunc, opts *WorkerOptions) (*Worker, error) {
	if c == nil || store == nil || open == nil {
		return nil, errors.New("temporal: a worker needs a client, a store and a function that opens conversations")
	}
	all, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Worker{
		opts: all, store: store, open: open, done: make(chan struct{}),
		beat: func(ctx context.Context, token []byte) error { return c.RecordActivityHeartbeat(ctx, token) },
	}
	w.stopping, w.stop = context.WithCancel(context.Background())
	w.inner = worker.New(c, all.Queue, w.workerOptions())
	w.register(w.inner)
	if err := w.inner.Start(); err != nil {
		w.stop()
		return nil, fmt.Errorf("temporal: the worker cannot start: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	if all.Sweep > 0 {
		s := sweep{store: store, starter: starter{client: c, queue: all.Queue, prefix: all.Prefix}, young: min(sending, all.Sweep/2), idle: all.Idle, logger: all.Logger}
		w.ended.Go(func() { s.run(ctx, all.Sweep) })
	}
	return w, nil
}

// workerOptions returns the options for the SDK.
func (w *Worker) workerOptions() worker.Options {
	o := worker.Options{
		MaxConcurrentActivityExecutionSize: w.opts.Parallel,
		WorkerStopTimeout:                  w.opts.Grace + stopTimeout,
		// After this time the task of a dead worker is assigned to another.
		StickyScheduleToStartTimeout: stickyTimeout,
		OnFatalError: func(err error) {
			w.opts.Logger.Error("the worker has to stop", eventWorkerFailed, zap.Error(err))
			w.err = fmt.Errorf("temporal: the worker had to stop: %w", err)
			w.stop()
			close(w.done)
		},
	}
	if w.opts.Build != "" {
		o.DeploymentOptions = worker.DeploymentOptions{
			UseVersioning: true,
			Version:       worker.WorkerDeploymentVersion{DeploymentName: w.opts.Deployment, BuildID: w.opts.Build},
			// A conversation may wait for days: it continues with the version that is
			// current then.
			DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		}
	}
	return o
}

// register registers the workflow and the activity with the SDK.
func (w *Worker) register(r worker.Registry) {
	r.RegisterWorkflowWithOptions(workflowOf(&w.opts), workflow.RegisterOptions{Name: workflowName})
	r.RegisterActivityWithOptions(w.turn, activity.RegisterOptions{Name: turnName})
}

// Close stops the worker: it accepts no more work, gives running tool calls up to
// WorkerOptions.Grace to end, suspends all other work so that another worker takes over
// immediately, and waits. It may be called twice. The error is the reason if the worker
// had to stop before.
func (w *Worker) Close() error {
	w.closed.Do(func() {
		w.end()
		w.stop() // the SDK tells activities only after it has waited for its other workers
		w.inner.Stop()
		w.ended.Wait()
	})
	select {
	case <-w.done:
		return w.err
	default:
		return nil
	}
}
