// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/invoker"
)

// request makes a request to the library of the ensemble, connecting first if needed,
// within the limits of a call once it is connected. A request that is lost with its
// connection is repeated over a fresh one, since it has no side effects. If the ensemble was
// replaced, the request goes to the new one, whose options allowed checks first. The error is
// an [invoker.Failure].
func request[T any](ctx context.Context, e *Ensemble, name string, allowed func(*Ensemble) error, ask func(context.Context, *session, Library) (T, error)) (T, error) {
	var none T
	if next := e.successor(); next != nil {
		return request(ctx, next, name, allowed, ask)
	}
	if err := allowed(e); err != nil {
		return none, err
	}
	ctx = e.traced(ctx)
	clock := startClock(ctx, &e.options)
	defer clock.stop()
	e.stats.addRequests(1)
	defer e.stats.addRequests(-1)
	for attempt := 1; ; attempt++ {
		resume := func() {}
		if attempt == 1 { // as for a call, the time begins when there is a connection
			resume = clock.hold()
		}
		s, err := e.ready(clock.ctx, false, forCall)
		resume()
		if err != nil && e.successor() != nil && ctx.Err() == nil {
			return request(ctx, e, name, allowed, ask)
		}
		if err != nil {
			return none, neverAsked(clock.ctx, err)
		}
		value, err, again := requestOver(ctx, e, clock, s, name, ask)
		if err == nil || !again || attempt == attempts {
			return value, err
		}
	}
}

// requestOver makes a request over one connection; again reports that it failed because
// of the connection.
func requestOver[T any](ctx context.Context, e *Ensemble, clock *clock, s *session, name string, ask func(context.Context, *session, Library) (T, error)) (value T, err error, again bool) {
	library, ok := s.connection.(Library)
	if !ok {
		return value, invoker.Failf(invoker.NotFound, "%q offers neither resources nor prompts.", e.name), false
	}
	bounded, cancel := context.WithCancel(clock.ctx)
	defer cancel()
	j, err := s.begin(name, cancel)
	if err != nil {
		return value, neverAsked(clock.ctx, err), s.endedByLoss()
	}
	clock.touch()
	inner := e.withPause(e.options.withSettings(bounded), clock)
	value, err = run(inner, j, func(ctx context.Context) (T, error) { return ask(ctx, s, library) })
	if err == nil {
		s.touch()
		return value, nil, false
	}
	var none T
	failure := requestFailure(ctx, clock, j, err)
	lost := failure.Code == invoker.Unavailable && s.endedByLoss()
	return none, failure, lost && clock.ctx.Err() == nil
}

// withPause also holds the clock while the call that caused a request waits for the
// user: a function that writes a prompt may ask the user.
func (e *Ensemble) withPause(ctx context.Context, clock *clock) context.Context {
	call := invoker.CallFrom(ctx)
	if call == nil {
		return ctx
	}
	held := e.foreign.callbacks(call)
	asked := held
	held.Pause = func() (resume func()) {
		outer, own := asked.Hold(), clock.hold()
		return func() { own(); outer() }
	}
	return invoker.WithCall(ctx, &held)
}

// neverAsked returns the failure of a request without a connection.
func neverAsked(ctx context.Context, err error) *invoker.Failure {
	failure := neverSent(ctx, err)
	if failure.Code == invoker.Unavailable {
		failure.Message = fmt.Sprintf("The server cannot be reached: %v", err)
		addRetry(failure, err)
	}
	return failure
}

// requestFailure returns the failure of a request that returned err.
func requestFailure(ctx context.Context, clock *clock, j *job, err error) *invoker.Failure {
	var panicked *panicError
	if errors.As(err, &panicked) {
		return &invoker.Failure{Code: invoker.ExecutionFailed, Message: "The server's code crashed during the request.", Cause: err}
	}
	own := invoker.AsFailure(err)
	var ran *limitError
	switch ended := j.endedBy(); {
	case isInterruption(own.Code) && onRequest(ended):
		return &invoker.Failure{Code: invoker.Canceled, Message: "The request was interrupted, because the ensemble was shut down.", Cause: ended}
	case own.Code == invoker.OutcomeUnknown: // requests have no side effects
		told := *own
		told.Code, told.Message, told.Retryable = invoker.Unavailable, "The connection was lost before the answer arrived.", true
		return &told
	case !isContextError(err), own.Code != invoker.Timeout && own.Code != invoker.Canceled:
		return own
	case ended != nil:
		return &invoker.Failure{Code: invoker.Unavailable, Message: fmt.Sprintf("The connection was lost before the answer arrived: %v", ended), Retryable: true, Cause: ended}
	case ctx.Err() != nil:
		ended := invoker.AsFailure(ctx.Err())
		return &invoker.Failure{Code: ended.Code, Message: "The request ended before the answer arrived.", Retryable: ended.Retryable, Cause: err}
	case errors.As(context.Cause(clock.ctx), &ran):
		j.session.suspect.Store(true)
		return &invoker.Failure{Code: invoker.Timeout, Message: fmt.Sprintf("The request reached its time limit: %v.", ran), Retryable: true, Cause: err}
	}
	return own
}

// isInterruption reports whether a failure is one that the end of a connection causes.
func isInterruption(code invoker.Code) bool {
	switch code {
	case invoker.Unavailable, invoker.OutcomeUnknown, invoker.Canceled, invoker.Timeout:
		return true
	}
	return false
}
