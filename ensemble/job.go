// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
)

// grace is how long a function may take to return after its context has ended, before
// it is abandoned.
const grace = 100 * time.Millisecond

// job is a function of a source that runs in its own goroutine, so that a caller can
// stop waiting when the function ignores its context.
type job struct {
	name   string // for error messages
	life   *life
	cancel context.CancelFunc
	done   chan struct{} // closed when the function has returned

	answered bool // the function returned no error; set before finish

	// Guarded by Ensemble.mu.

	ended     error // why the end of the life ended the job
	abandoned bool  // no caller waits for it
}

// maxAbandoned bounds how many jobs of one name may be abandoned at a time.
const maxAbandoned = 64

// abandonedError is the error of a job that did not return in time.
type abandonedError struct{ cause error }

func (e *abandonedError) Error() string { return e.cause.Error() }
func (e *abandonedError) Unwrap() error { return e.cause }

// panicError is the error of a function that panicked.
type panicError struct{ value any }

func (e *panicError) Error() string { return "panic: " + contain.Text(e.value) }

// begin registers a job, unless its life has ended or too many jobs of its name are
// abandoned.
func (e *Ensemble) begin(j *job) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j.life.ended != nil {
		return j.life.ended
	}
	if e.abandoned[j.name] >= maxAbandoned {
		return fmt.Errorf("ensemble %q: %d calls of %s ignore that they were cancelled and still run", e.name, maxAbandoned, j.name)
	}
	e.jobs[j] = struct{}{}
	return nil
}

// finish unregisters the job.
func (e *Ensemble) finish(j *job) {
	e.mu.Lock()
	delete(e.jobs, j)
	if j.abandoned {
		e.abandoned[j.name]--
		if j.answered {
			e.tally.late++
		}
	}
	e.mu.Unlock()
	close(j.done)
}

// abandon records that no caller waits for the job, unless it is done.
func (e *Ensemble) abandon(j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, running := e.jobs[j]; running {
		j.abandoned = true
		e.abandoned[j.name]++
	}
}

// endedBy returns why the end of its life ended the job, or nil.
func (e *Ensemble) endedBy(j *job) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return j.ended
}

// endedJobs returns the jobs whose life has ended; e.mu is held.
func (e *Ensemble) endedJobs() []*job {
	var ended []*job
	for j := range e.jobs {
		if j.life.ended != nil {
			ended = append(ended, j)
		}
	}
	return ended
}

// run does a job: it calls f with ctx, which j.cancel ends, and returns the results of
// f. Soon after ctx has ended it returns an [abandonedError] in any case.
func run[T any](ctx context.Context, e *Ensemble, j *job, f func(context.Context) (T, error)) (T, error) {
	var outcome struct {
		value T
		err   error
	}
	outcome.err = errExited // unless f returns or panics
	go func() {
		defer e.finish(j)
		outcome.value, outcome.err = guard(e.log, func() (T, error) { return f(ctx) })
		j.answered = outcome.err == nil
	}()
	select {
	case <-j.done:
		return outcome.value, outcome.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-j.done:
		return outcome.value, outcome.err
	case <-patience.C:
		e.abandon(j)
		var none T
		return none, &abandonedError{ctx.Err()}
	}
}

// errExited is the error of a function that ended its goroutine.
var errExited = &panicError{"the function ended its goroutine"}

// guard calls f and turns a panic into an error, and logs its stack. The methods of the
// returned error do not panic; see [contain.Error].
func guard[T any](log *zap.Logger, f func() (T, error)) (value T, err error) {
	panicked := contain.Call("a function of the source", func() { value, err = f() })
	if panicked == nil {
		return value, usable(err)
	}
	logPanic(log, panicked)
	var none T
	return none, &panicError{panicked.(*contain.Panic).Value}
}

// usable returns err, or a replacement with its text if one of its methods panics.
func usable(err error) error {
	if contain.Usable(err) {
		return err
	}
	if _, ok := contain.As[*invoker.Failure](err); ok {
		return invoker.AsFailure(err)
	}
	return contain.Error(err)
}
