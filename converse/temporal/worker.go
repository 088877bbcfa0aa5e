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

// stopTimeout is how long work that was told to stop gets for it.
const stopTimeout = 10 * time.Second

// stickyTimeout is how long a step of a workflow waits for the worker that did
// the one before.
const stickyTimeout = 2 * time.Second

// maxBackoff is the longest pause between two attempts.
const maxBackoff = time.Minute

// WorkerOptions are the choices of a [Worker]. Nil, and the zero value of each
// field, mean the default that the field names.
type WorkerOptions struct {
	// Queue is the task queue, which the [Engine] has to name too; default
	// "consort".
	Queue string
	// Heartbeat is after how long without a sign of life a worker is given up
	// for dead, and another carries on; default 10 s. It tells the server five
	// times as often. A cancel takes up to a fifth of it to arrive.
	Heartbeat time.Duration
	// Turn is how long a conversation may be carried on without a stop, between
	// two waits; default 24 h. What takes longer is put down and tried again.
	Turn time.Duration
	// Attempts is how often a turn is tried before it fails, and Backoff the
	// pause after the first, which doubles each time up to a minute; default 10
	// and 1 s, which is four minutes. A worker that died counts.
	Attempts int
	Backoff  time.Duration
	// Idle is how long a workflow stays when its conversation has nothing left to
	// do, so that the next message finds it there; default 1 minute.
	Idle time.Duration
	// Turns is after how many activities a workflow begins its history anew;
	// default 200. The server can ask for it earlier.
	Turns int
	// Parallel is how many conversations the worker carries on at the same time;
	// default 100.
	Parallel int
	// Grace is how long Close lets calls of tools go on that are under way;
	// default 30 s. What is left then is for another worker to take up, and may
	// have taken effect.
	Grace time.Duration
	// Sweep is how often the worker looks for conversations in the store that have
	// something left to do and were not told of; default 1 minute, negative never.
	Sweep time.Duration
	// Prefix begins the IDs of the workflows, as in [Options]; default "consort/".
	Prefix string
	// Values are the trusted values of a conversation, for the function that opens
	// it and for its tools. Since a turn is carried on by a process that nobody
	// has called, they come from what the store knows of the conversation, such as
	// [history.Info.Owner]; credentials are looked up here and never kept. An
	// error is that of the turn. Nil gives none. It is called concurrently.
	Values func(ctx context.Context, info history.Info) ([]invoker.Value, error)
	// Stream takes deltas to those who watch; nil tells nobody.
	Stream engine.Stream
	// Deployment and Build, if given, make the worker a version of a deployment:
	// the server gives it work when it has become the current one, and
	// conversations move on to it with their next step. Both or none.
	Deployment, Build string
	// Logger takes what is worth knowing; nil is silent.
	Logger *zap.Logger
}

// withDefaults returns the options with every default in place.
func (o *WorkerOptions) withDefaults() (WorkerOptions, error) {
	var all WorkerOptions
	if o != nil {
		all = *o
	}
	if all.Heartbeat < 0 || all.Turn < 0 || all.Attempts < 0 || all.Backoff < 0 || all.Idle < 0 || all.Turns < 0 || all.Parallel < 0 || all.Grace < 0 {
		return all, errors.New("temporal: a worker was given a negative number: only Sweep may be negative")
	}
	if (all.Deployment == "") != (all.Build == "") {
		return all, fmt.Errorf("temporal: a worker has Deployment %q and Build %q: give both or none", all.Deployment, all.Build)
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

// Worker carries on conversations as a server gives them to it. Many, on many
// machines, share the work. Its methods may be called concurrently.
type Worker struct {
	opts  WorkerOptions
	store history.Store
	open  converse.OpenFunc
	beat  func(ctx context.Context, token []byte) error
	inner worker.Worker

	end    context.CancelFunc // of the sweep
	ended  sync.WaitGroup
	closed sync.Once
	done   chan struct{} // closed when it has to stop
	err    error         // why
}

// Done is closed when the worker has to stop, since the server wants nothing of
// it any more; Close then tells why.
func (w *Worker) Done() <-chan struct{} { return w.done }

// NewWorker starts a worker: it takes up conversations of store as the server
// behind c gives them to it, and opens each with open, whose ctx carries the
// trusted values of WorkerOptions.Values and no others: those that came with a
// message stay in the process that was given them. The conversation that open returns must have store as its Options.Log and id
// as its ID. It is closed when it has nothing to do or waits.
//
// Opts may be nil. C and store stay the caller's to close, after the worker.
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
	w.inner = worker.New(c, all.Queue, w.workerOptions())
	w.register(w.inner)
	if err := w.inner.Start(); err != nil {
		return nil, fmt.Errorf("temporal: the worker cannot start: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	if all.Sweep > 0 {
		s := sweep{store: store, starter: starter{client: c, queue: all.Queue, prefix: all.Prefix}, young: min(sending, all.Sweep/2), logger: all.Logger}
		w.ended.Go(func() { s.run(ctx, all.Sweep) })
	}
	return w, nil
}

// workerOptions are those of the SDK.
func (w *Worker) workerOptions() worker.Options {
	o := worker.Options{
		MaxConcurrentActivityExecutionSize: w.opts.Parallel,
		WorkerStopTimeout:                  w.opts.Grace + stopTimeout,
		// What a dead worker was to be given is given to another after this.
		StickyScheduleToStartTimeout: stickyTimeout,
		OnFatalError: func(err error) {
			w.opts.Logger.Error("the worker has to stop", eventWorkerFailed, zap.Error(err))
			w.err = fmt.Errorf("temporal: the worker had to stop: %w", err)
			close(w.done)
		},
	}
	if w.opts.Build != "" {
		o.DeploymentOptions = worker.DeploymentOptions{
			UseVersioning: true,
			Version:       worker.WorkerDeploymentVersion{DeploymentName: w.opts.Deployment, BuildID: w.opts.Build},
			// A conversation may wait for days: it goes on with the version that
			// is current then.
			DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		}
	}
	return o
}

// register tells the SDK what the worker can do.
func (w *Worker) register(r worker.Registry) {
	r.RegisterWorkflowWithOptions(workflowOf(&w.opts), workflow.RegisterOptions{Name: workflowName})
	r.RegisterActivityWithOptions(w.turn, activity.RegisterOptions{Name: turnName})
}

// Close ends the worker: it takes up nothing more, lets calls of tools that are
// under way end for as long as WorkerOptions.Grace says, puts everything else down for
// another worker to carry on at once, and waits. It may be called twice. The error
// says why the worker had to stop before.
func (w *Worker) Close() error {
	w.closed.Do(func() {
		w.end()
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
