// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/contain"
)

// grace is how long a function may take to return after its context has ended, before
// it is abandoned.
const grace = 100 * time.Millisecond

// job is a function of a source that runs in its own goroutine, so that a caller can
// stop waiting when the function ignores its context.
type job struct {
	name    string // for error messages
	session *session
	cancel  context.CancelFunc
	done    chan struct{} // closed when the function has returned

	answered bool // the function returned no error; set before finish

	// Guarded by Ensemble.mu.

	ended     error // why the end of the session ended the job
	abandoned bool  // no caller waits for it
}

// jobs are the calls, listings and other requests of an ensemble that have not
// returned. Ensemble.mu guards it.
type jobs struct {
	running   map[*job]struct{}
	abandoned map[string]int // the jobs that no caller waits for, by name
}

// end cancels the jobs of a session.
func (all *jobs) end(s *session, cause error) {
	for j := range all.running {
		if j.session == s {
			j.ended = cause
			j.cancel()
		}
	}
}

// ofEnded returns the jobs whose session has ended.
func (all *jobs) ofEnded() []*job {
	var ended []*job
	for j := range all.running {
		if j.session.ended != nil {
			ended = append(ended, j)
		}
	}
	return ended
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

// begin registers a job that cancel ends, unless the session has ended or too many jobs
// of its name are abandoned.
func (s *session) begin(name string, cancel context.CancelFunc) (*job, error) {
	e := s.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.ended != nil {
		return nil, s.ended
	}
	if e.jobs.abandoned[name] >= maxAbandoned {
		return nil, fmt.Errorf("ensemble %q: %d calls of %s were cancelled and are still running", e.name, maxAbandoned, name)
	}
	j := &job{name: name, session: s, cancel: cancel, done: make(chan struct{})}
	e.jobs.running[j] = struct{}{}
	return j, nil
}

// finish unregisters the job.
func (j *job) finish() {
	e := j.session.ensemble
	e.mu.Lock()
	delete(e.jobs.running, j)
	if j.abandoned {
		e.jobs.abandoned[j.name]--
		if j.answered {
			e.stats.addLate(1)
		}
	}
	e.mu.Unlock()
	close(j.done)
}

// abandon records that no caller waits for the job, unless it is done.
func (j *job) abandon() {
	e := j.session.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, running := e.jobs.running[j]; running {
		j.abandoned = true
		e.jobs.abandoned[j.name]++
	}
}

// endedBy returns why the end of its session ended the job, or nil.
func (j *job) endedBy() error {
	j.session.ensemble.mu.Lock()
	defer j.session.ensemble.mu.Unlock()
	return j.ended
}

// run does a job: it calls f with ctx, which j.cancel ends, and returns the results of
// f. If f has not returned soon after the end of ctx, run returns an [abandonedError].
func run[T any](ctx context.Context, j *job, f func(context.Context) (T, error)) (T, error) {
	var outcome struct {
		value T
		err   error
	}
	outcome.err = errExited // unless f returns or panics
	go func() {
		defer j.finish()
		outcome.value, outcome.err = guard(j.session.ensemble.log, func() (T, error) { return f(ctx) })
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
		j.abandon()
		var none T
		return none, &abandonedError{ctx.Err()}
	}
}

// do runs f as a job with ctx, which cancel ends.
func (s *session) do(ctx context.Context, cancel context.CancelFunc, name string, f func(context.Context) error) error {
	j, err := s.begin(name, cancel)
	if err != nil {
		return err
	}
	_, err = run(ctx, j, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// errExited is the error of a function that ended its goroutine.
var errExited = &panicError{"the function ended its goroutine"}
