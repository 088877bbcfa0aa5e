// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/toolname"
	"github.com/consort-go/consort/invoker"
)

// attempts is how many connections a call tries when the one it found ends before the
// call has reached the other end.
const attempts = 3

// Tool is an invoker that an ensemble offers. It is bound to the ensemble and the
// tool's own name, not to one connection: after a loss, the next call uses a fresh one.
// It is itself an [invoker.Invoker]. All methods may be called concurrently. Ensembles
// and catalogs return tools; the zero value is not usable.
type Tool struct {
	name       string
	ensemble   *Ensemble
	definition *invoker.Definition
	bound      bool // does not follow a replacement of the ensemble
}

var _ invoker.Invoker = (*Tool)(nil)

// NameFor returns a tool's name for models. It consists of 1 to 64 letters, digits, '_'
// and '-', and depends only on its arguments. Different pairs of arguments have different
// names, unless 60 bits of their SHA-256 are the same.
//
// For ("files", "read_file") the name is files__read_file: <ensemble>__<tool>, if that
// has only these characters, is short enough, and cannot be read as the name of another pair.
// Otherwise, each run of other characters becomes one '_', both parts are cut as needed,
// and the 60 bits follow: ("files", "read.file") becomes files__read_file-x and 12 more
// characters. [Catalog.Find] returns the tool that has a name.
func NameFor(ensemble, tool string) string { return toolname.For(ensemble, tool) }

// Name returns the tool's name for the model; see [NameFor].
func (t *Tool) Name() string { return t.name }

// Ensemble returns the ensemble that offers the tool.
func (t *Tool) Ensemble() *Ensemble { return t.ensemble }

// Definition returns the tool's definition as it was listed, under the tool's own name,
// without invisible characters (see [Snapshot].Notes) and arguments of Options.Fill. It must
// not be modified.
func (t *Tool) Definition() *invoker.Definition { return t.definition }

// Bound returns the tool for calls that are about this very ensemble, such as one that a
// person has approved: they do not go to an ensemble that replaces it ([Roster.Replace]).
func (t *Tool) Bound() *Tool {
	return &Tool{name: t.name, ensemble: t.ensemble, definition: t.definition, bound: true}
}

// Invoke calls the tool, connecting first if needed. Its error is always an
// [*invoker.Failure]. In addition to the failures of the tool itself, these are:
//
//   - UNAVAILABLE: there is no connection, the tool is bound to an ensemble that was
//     replaced, or 64 calls of the tool that no caller waits for still run; the call was not
//     sent.
//   - UNAUTHORIZED: the server needs a login ([ErrNeedsLogin]), or a trusted value of
//     Options.Needs is missing; the call was not sent.
//   - TOOL_NOT_FOUND: the ensemble no longer offers the tool, or was removed from its
//     roster ([Roster.Replace]).
//   - TIMEOUT: no sign of life within Options.CallTimeout, no answer within
//     Options.CallLimit, or none before ctx's deadline.
//   - CANCELED: ctx was cancelled, or the ensemble disconnected or closed.
//   - OUTCOME_UNKNOWN: the connection was lost during the call.
//   - INTERNAL: a tool of [invoker.New] or [invoker.Raw] panicked.
//   - EXECUTION_FAILED: another invoker panicked.
//
// A call that certainly had no effect, because its connection was lost before the call
// was sent, is made again over a fresh one. A call that may have had an effect is
// repeated once if Options.Trust allows it, with the same ID and within the same
// limits.
//
// The function that implements the tool runs with a context that carries the call, for
// [invoker.CallFrom], and the ensemble's [Settings]. Invoke returns soon after ctx
// ends. A function that ignores its context is then left running, and its answer and
// its progress are dropped; [Ensemble.Disconnect] and [Ensemble.Close] wait for it.
func (t *Tool) Invoke(ctx context.Context, call *invoker.Call) (output invoker.Output, err error) {
	if call == nil {
		call = &invoker.Call{}
	}
	t = t.current()
	ctx = t.ensemble.traced(ctx)
	began := time.Now()
	t.logBegin(ctx, call)
	defer func() { t.logEnd(ctx, call, time.Since(began), err) }()
	s, target, err := t.target(ctx)
	if err != nil {
		return t.whenReplaced(ctx, call, err)
	}
	e := t.ensemble
	clock := startClock(ctx, &e.options)
	e.stats.beginCall()
	defer func() {
		e.stats.endCall(clock.elapsed(), err == nil)
		clock.stop()
	}()
	var unknown error // the failure of an attempt that may have had an effect
	for attempt := 1; ; attempt++ {
		output, made, err := t.invokeOver(ctx, clock, s, target, call)
		switch {
		case err == nil:
			return output, nil
		case made && unknown != nil && isUnavailable(err):
			return invoker.Output{}, unknown // only the second call is known to have done nothing
		case made && (unknown != nil || attempt == attempts || !t.mayRepeat(s, err)):
			return invoker.Output{}, err
		case made:
			unknown = err
		case attempt == attempts:
			return invoker.Output{}, cmp.Or(unknown, err)
		}
		switch s, target, err = t.target(clock.ctx); {
		case err != nil && unknown != nil:
			return invoker.Output{}, unknown
		case err != nil:
			return t.whenReplaced(ctx, call, err)
		}
		e.stats.repeatCall()
	}
}

// whenReplaced makes a call that failed with err before it was sent, if the reason is that
// the ensemble was replaced a moment ago.
func (t *Tool) whenReplaced(ctx context.Context, call *invoker.Call, err error) (invoker.Output, error) {
	if next := t.current(); next != t && ctx.Err() == nil {
		return next.Invoke(ctx, call)
	}
	return invoker.Output{}, err
}

// target finds the tool's invoker on the current connection.
func (t *Tool) target(ctx context.Context) (*session, invoker.Invoker, error) {
	e := t.ensemble
	s, err := e.ready(ctx, false, forCall)
	if err != nil && e.retired().isRemoval() && ctx.Err() == nil {
		return nil, nil, invoker.Failf(invoker.ToolNotFound, "%q, which offered the tool %q, was removed.", e.name, t.definition.Name)
	}
	if err != nil {
		return nil, nil, neverSent(ctx, err)
	}
	target, ok := s.invoker(t.definition.Name)
	if ok {
		return s, target, nil
	}
	if err := s.refresh(ctx); err != nil {
		return nil, nil, neverSent(ctx, err)
	}
	if target, ok = s.invoker(t.definition.Name); ok {
		return s, target, nil
	}
	return nil, nil, invoker.Failf(invoker.ToolNotFound, "%q no longer offers the tool %q.", e.name, t.definition.Name)
}

// isUnavailable reports whether a call failed and nothing was done. Only the source can
// know that: a failure with content is the tool's own answer, and a server's statement
// about itself never causes a second call.
func isUnavailable(err error) bool {
	var failure *invoker.Failure
	return errors.As(err, &failure) && failure.Code == invoker.Unavailable && len(failure.Content) == 0
}

// call is a call in progress.
type call struct {
	invoker.Call
	asked invoker.Call    // the original call, with callbacks that do not panic
	ctx   context.Context // carries the call
	job   *job
	clock *clock
	over  atomic.Bool
}

// report passes progress on until the call is over.
func (c *call) report(p invoker.Progress) {
	if c.over.Load() {
		return
	}
	c.job.session.touch()
	c.clock.report(p)
	c.asked.Report(p)
}

// hold suspends the limits of the call and of its caller.
func (c *call) hold() (resume func()) {
	outer, own := c.asked.Hold(), c.clock.hold()
	return func() { own(); outer() }
}

// invokeOver makes the call over one connection. It does not make the call if the
// connection has already ended.
func (t *Tool) invokeOver(ctx context.Context, clock *clock, s *session, target invoker.Invoker, asked *invoker.Call) (output invoker.Output, made bool, err error) {
	bounded, cancel := context.WithCancel(clock.ctx)
	defer cancel()
	c, err := t.begin(bounded, cancel, clock, s, asked)
	if err != nil {
		return output, false, neverSent(clock.ctx, err)
	}
	defer c.over.Store(true)
	output, err = run(c.ctx, c.job, func(ctx context.Context) (invoker.Output, error) {
		if ctx.Err() != nil {
			return invoker.Output{}, errNotBegun
		}
		return target.Invoke(ctx, &c.Call)
	})
	switch {
	case err == nil:
		s.touch()
		return output, true, nil
	case err == errNotBegun, notBegun(err) && c.job.endedBy() != nil:
		return output, false, neverSent(clock.ctx, cmp.Or(c.job.endedBy(), err))
	}
	failure := t.failure(ctx, c, err)
	return invoker.Output{}, !s.neverReached(failure), failure
}

// begin registers a call with the session, unless that has ended.
func (t *Tool) begin(ctx context.Context, cancel context.CancelFunc, clock *clock, s *session, asked *invoker.Call) (*call, error) {
	j, err := s.begin(t.definition.Name, cancel)
	if err != nil {
		return nil, err
	}
	clock.touch()
	c := &call{Call: t.ensemble.foreign.callbacks(asked), job: j, clock: clock}
	c.asked = c.Call
	c.Progress, c.Pause = c.report, c.hold
	c.ctx = t.ensemble.options.withSettings(invoker.WithCall(ctx, &c.Call))
	return c, nil
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
