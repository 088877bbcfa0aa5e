// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/consort-go/consort/invoker"
)

// attempts is how often a call looks for a connection, when the one it found
// ends before the call has reached the other end.
const attempts = 3

// Tool is an invoker that an ensemble offers. It is bound to the ensemble and
// the tool's own name, not to one connection: after a loss, the next call goes
// over a fresh one. It is itself an [invoker.Invoker]. All methods may be
// called concurrently.
type Tool struct {
	name       string
	ensemble   *Ensemble
	definition *invoker.Definition
}

var _ invoker.Invoker = (*Tool)(nil)

// Name returns the name that the model knows the tool by; see [NameFor].
func (t *Tool) Name() string { return t.name }

// Ensemble returns the ensemble that offers the tool.
func (t *Tool) Ensemble() *Ensemble { return t.ensemble }

// Definition returns the tool's definition as it was listed, under the tool's
// own name.
func (t *Tool) Definition() *invoker.Definition { return t.definition }

// Invoke calls the tool once, connecting first if need be. Its error is always
// an [*invoker.Failure]; beyond those of the tool itself:
//
//   - UNAVAILABLE: there is no connection; the call never left.
//   - TOOL_NOT_FOUND: the ensemble offers no such tool any more.
//   - TIMEOUT: no answer within Options.CallTimeout, or before ctx's deadline.
//   - CANCELED: ctx was cancelled, or the ensemble disconnected or closed.
//   - OUTCOME_UNKNOWN: the connection was lost during the call.
//   - EXECUTION_FAILED: the tool panicked.
//
// The function behind the tool runs with a context that carries the call, for
// [invoker.CallFrom], and the ensemble's [Settings]. Invoke returns soon after
// ctx ends. A function that ignores its context is then left behind, its
// answer and its progress dropped; [Ensemble.Disconnect] and [Ensemble.Close]
// wait for it.
func (t *Tool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	if call == nil {
		call = &invoker.Call{}
	}
	for attempt := 1; ; attempt++ {
		l, target, err := t.target(ctx)
		if err != nil {
			return invoker.Output{}, err
		}
		output, begun, err := t.invokeOver(ctx, l, target, call)
		switch {
		case begun && (attempt == attempts || !l.neverReached(err)):
			return output, err
		case attempt == attempts:
			return invoker.Output{}, neverSent(ctx, err)
		}
	}
}

// target finds the invoker on the current connection.
func (t *Tool) target(ctx context.Context) (*life, invoker.Invoker, error) {
	e := t.ensemble
	l, err := e.ready(ctx, false)
	if err != nil {
		return nil, nil, neverSent(ctx, err)
	}
	target, ok := e.invokerOf(l, t.definition.Name)
	if ok {
		return l, target, nil
	}
	if err := e.refresh(ctx, l); err != nil {
		return nil, nil, neverSent(ctx, err)
	}
	if target, ok = e.invokerOf(l, t.definition.Name); ok {
		return l, target, nil
	}
	return nil, nil, invoker.Failf(invoker.ToolNotFound, "%q no longer offers the tool %q.", e.name, t.definition.Name)
}

// neverReached reports whether a call failed because its connection was lost
// before: the source says that nothing was done.
func (l *life) neverReached(err error) bool {
	var failure *invoker.Failure
	return errors.As(err, &failure) && failure.Code == invoker.Unavailable && l.isLost()
}

// invokerOf returns the invoker that the connection has for the tool.
func (e *Ensemble) invokerOf(l *life, tool string) (invoker.Invoker, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	target, ok := l.invokers[tool]
	return target, ok
}

// call is a call under way.
type call struct {
	job
	invoker.Call
	listener func(invoker.Progress)
	over     atomic.Bool
}

// report passes progress on until the call is over.
func (c *call) report(p invoker.Progress) {
	if !c.over.Load() {
		c.listener(p)
	}
}

// invokeOver makes the call over one connection. It has not begun when the
// connection ended before.
func (t *Tool) invokeOver(ctx context.Context, l *life, target invoker.Invoker, asked *invoker.Call) (output invoker.Output, begun bool, err error) {
	e := t.ensemble
	bounded, cancel := context.WithTimeout(ctx, e.options.CallTimeout)
	defer cancel()
	c := &call{
		job:  job{name: t.definition.Name, life: l, cancel: cancel, done: make(chan struct{})},
		Call: *asked,
	}
	if asked.Progress != nil {
		c.listener, c.Progress = asked.Progress, c.report
	}
	defer c.over.Store(true)
	if err := e.begin(&c.job); err != nil {
		return output, false, err
	}
	inner := invoker.WithCall(bounded, &c.Call)
	if e.options.Settings != nil {
		inner = context.WithValue(inner, settingsKey{}, e.options.Settings)
	}
	output, err = run(inner, e, &c.job, func(ctx context.Context) (invoker.Output, error) {
		return target.Invoke(ctx, &c.Call)
	})
	if err != nil {
		return invoker.Output{}, true, t.failure(ctx, bounded, c, err)
	}
	return output, true, nil
}

// neverSent says that the call could not be made.
func neverSent(ctx context.Context, err error) *invoker.Failure {
	if ended := ctx.Err(); ended != nil {
		return &invoker.Failure{Code: invoker.AsFailure(ended).Code, Message: "The call ended before it could be made; nothing was done.", Retryable: true, Cause: err}
	}
	failure := invoker.Failf(invoker.Unavailable, "The tool cannot be reached, and the call was not made: %w", err)
	failure.Retryable = !errors.Is(err, ErrClosed)
	return failure
}

// failure says what came of a call that returned err. An end that came from
// outside the tool is told from the tool's own failures.
func (t *Tool) failure(ctx, bounded context.Context, c *call, err error) *invoker.Failure {
	var panicked *panicError
	if errors.As(err, &panicked) {
		return &invoker.Failure{Code: invoker.ExecutionFailed, Message: "The tool crashed while it ran. It may or may not have taken effect.", Cause: err}
	}
	own := invoker.AsFailure(err)
	if !isContextError(err) || own.Code != invoker.Timeout && own.Code != invoker.Canceled {
		return own // the tool knows best
	}
	e, repeatable := t.ensemble, t.definition.Hints.Repeatable()
	const unknown = "It may or may not have taken effect."
	switch ended := e.endedBy(&c.job); {
	case errors.Is(ended, ErrClosed), errors.Is(ended, ErrDisconnected):
		return &invoker.Failure{Code: invoker.Canceled, Message: "The call was interrupted, because its tools were shut down. " + unknown, Cause: ended}
	case ended != nil:
		return &invoker.Failure{Code: invoker.OutcomeUnknown, Message: fmt.Sprintf("The connection was lost before the answer came. %s (%v)", unknown, ended), Retryable: repeatable, Cause: ended}
	case ctx.Err() != nil:
		own = invoker.AsFailure(ctx.Err())
	case bounded.Err() != nil:
		return &invoker.Failure{Code: invoker.Timeout, Message: fmt.Sprintf("No answer within %s. %s", e.options.CallTimeout, unknown), Retryable: repeatable, Cause: err}
	}
	return &invoker.Failure{Code: own.Code, Message: own.Message, Retryable: own.Retryable && repeatable, Content: own.Content, Metadata: own.Metadata, Cause: err}
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
