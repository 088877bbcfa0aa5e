// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"errors"
	"fmt"

	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// neverSent returns the failure of a call that could not be made.
func neverSent(ctx context.Context, err error) *invoker.Failure {
	if ended := ctx.Err(); ended != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) { // as from a clock
			ended = context.DeadlineExceeded
		}
		return &invoker.Failure{Code: invoker.AsFailure(ended).Code, Message: "The call ended before it was sent; nothing was done.", Retryable: true, Cause: err}
	}
	if errors.Is(err, ErrNeedsLogin) {
		return invoker.Failf(invoker.Unauthorized, "The tool's server needs a login of the user, so the call was not made: %w", err)
	}
	failure := invoker.Failf(invoker.Unavailable, "The tool cannot be reached, so the call was not made: %w", err)
	failure.Retryable = !errors.Is(err, ErrClosed) && !errors.Is(err, errParked)
	addRetry(failure, err)
	return failure
}

// failure returns the failure of a call that returned err. It distinguishes an end that
// came from outside the tool from the tool's own failures.
func (t *Tool) failure(ctx context.Context, c *call, err error) *invoker.Failure {
	var panicked *panicError
	if errors.As(err, &panicked) {
		return &invoker.Failure{Code: invoker.ExecutionFailed, Message: "The tool crashed while it ran. " + unknownEffect, Cause: err}
	}
	own, repeatable := invoker.AsFailure(err), t.repeatableAfterLoss()
	switch {
	case own.Code == invoker.OutcomeUnknown:
		told := *own
		told.Retryable = repeatable
		return &told
	case !isContextError(err), own.Code != invoker.Timeout && own.Code != invoker.Canceled:
		c.job.session.touch()
		return own // the tool knows best
	}
	effect := unknownEffect
	if repeatable {
		effect = "The tool declares that a second call is harmless."
	}
	var ran *limitError
	switch ended := c.job.endedBy(); {
	case onRequest(ended):
		return &invoker.Failure{Code: invoker.Canceled, Message: "The call was interrupted, because the tool's server was shut down. " + effect, Cause: ended}
	case ended != nil:
		return &invoker.Failure{Code: invoker.OutcomeUnknown, Message: fmt.Sprintf("The connection was lost before the answer arrived. %s (%v)", effect, ended), Retryable: repeatable, Cause: ended}
	case ctx.Err() != nil:
		own = invoker.AsFailure(ctx.Err())
	case errors.As(context.Cause(c.clock.ctx), &ran):
		c.job.session.suspect.Store(true)
		return &invoker.Failure{Code: invoker.Timeout, Message: c.clock.outOfTime(ran) + " " + effect, Retryable: repeatable, Cause: err}
	}
	return &invoker.Failure{Code: own.Code, Message: own.Message, Retryable: own.Retryable && repeatable, Content: own.Content, Metadata: own.Metadata, Cause: err}
}

// unknownEffect leads a model to check before it tries again.
const unknownEffect = "It may or may not have taken effect: find out before you call it again."

// notBegun reports whether a source says that a call was interrupted before it began
// and can be made again. No source says this of a call that may have had an effect; see
// [invoker.AsFailure].
func notBegun(err error) bool {
	own := invoker.AsFailure(err)
	return own.Code == invoker.Canceled && own.Retryable && len(own.Content) == 0 && isContextError(err)
}

// errNotBegun is the error of a call that ended before it began, for example by the
// loss of a connection on which an earlier call had already failed.
var errNotBegun = errors.New("the call ended before it began")

// outOfTime describes the limit that ended the call, and the last reported progress.
func (c *clock) outOfTime(which *limitError) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := "idle time-out"
	if which.what == noAnswer {
		name = "time limit"
	}
	text := fmt.Sprintf("The call reached its %s: %v.", name, which)
	if c.reports == 0 {
		return text
	}
	text += fmt.Sprintf(" Its last report of progress was %g", c.last.Done)
	if c.last.Total > 0 {
		text += fmt.Sprintf(" of %g", c.last.Total)
	}
	if message, _ := display.Without(c.last.Message, display.IsInvisible); message != "" {
		text += fmt.Sprintf(", %q", textcut.Bytes(message, maxReport))
	}
	return text + "."
}
