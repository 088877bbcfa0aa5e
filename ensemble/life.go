// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// life is the lifetime of one connection, from the attempt to open it until it is gone.
// One goroutine, [Ensemble.live], runs it.
type life struct {
	opened chan struct{} // closed when the attempt has ended
	gone   chan struct{} // closed when the connection is closed

	// stop cancels alive to end the life; hurry cancels closing to force the end.
	alive   context.Context
	stop    context.CancelFunc
	closing context.Context
	hurry   context.CancelFunc

	listing chan struct{} // holds a value while a listing is in progress

	heard   atomic.Int64 // the last sign of life, in Unix nanoseconds
	suspect atomic.Bool  // a call has timed out since then

	changed atomic.Bool // the connection has said that the tools may have changed

	// The rest is guarded by Ensemble.mu.

	urgency    urgency // of the callers that wait for it to open
	start      *start  // of its process; nil before it was requested, or if no process starts
	err        error   // why the attempt failed; set before opened is closed
	ended      error   // why it takes no more calls; nil while it does
	connection Connection
	signals    signals // of the connection
	invokers   map[string]invoker.Invoker
	offer      *offer
	listed     time.Time // when the tools were listed
	stale      bool      // the tools may have changed since then
	listings   backoff
}

// newLife starts a life whose work is reported to t.
func newLife(t *telemetry.Telemetry) *life {
	l := &life{
		opened:  make(chan struct{}),
		gone:    make(chan struct{}),
		listing: make(chan struct{}, 1),
	}
	base := telemetry.With(context.Background(), t)
	l.alive, l.stop = context.WithCancel(base)
	l.closing, l.hurry = context.WithCancel(base)
	return l
}

// late returns the number of late answers that the connection has counted; Ensemble.mu
// is held.
func (l *life) late() int {
	if l == nil {
		return 0
	}
	late := 0
	if connection, ok := l.connection.(Latecomers); ok {
		_ = contain.Call("the connection", func() { late = connection.Late() }) // after a panic, the count is 0
	}
	return late
}

// isOpened reports whether the attempt has ended.
func (l *life) isOpened() bool {
	select {
	case <-l.opened:
		return true
	default:
		return false
	}
}

// ready returns a connection that takes calls, connecting if needed. Unless byHand is
// set, it does not repeat an attempt that failed a moment ago.
func (e *Ensemble) ready(ctx context.Context, byHand bool) (*life, error) {
	return e.readyFor(ctx, byHand, forList)
}

// readyFor is ready for callers that wait for more than the list of tools.
func (e *Ensemble) readyFor(ctx context.Context, byHand bool, u urgency) (*life, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ensemble %q: %w", e.name, err)
	}
	e.mu.Lock()
	e.noticeLoss()
	l, err := e.currentOrNew(ctx, byHand)
	opened := l != nil && l.connection != nil
	if l != nil && !opened {
		e.want(l, u)
	}
	e.mu.Unlock()
	if err != nil || opened {
		return l, err
	}
	select {
	case <-l.opened:
	case <-ctx.Done():
		return nil, fmt.Errorf("ensemble %q: waiting for the connection: %w", e.name, ctx.Err())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.err != nil && e.attempts.err == l.err {
		return nil, e.attempts.later()
	}
	if l.err != nil {
		return nil, l.err
	}
	return l, nil
}

// currentOrNew returns the current life or begins one; e.mu is held. From ctx, the life
// keeps only the trace and the telemetry for the attempt to connect.
func (e *Ensemble) currentOrNew(ctx context.Context, byHand bool) (*life, error) {
	switch {
	case e.state == Closed:
		return nil, fmt.Errorf("ensemble %q: %w", e.name, ErrClosed)
	case e.current != nil:
		return e.current, nil
	case e.state == Parked && byHand:
		e.forgive()
	case e.state == Parked:
		return nil, e.parked
	case !byHand && !e.attempts.due():
		return nil, e.attempts.later()
	}
	e.stopRetry()
	e.asleep = false
	wanted := telemetry.With(telemetry.Within(context.Background(), ctx), e.options.Telemetry)
	e.current = newLife(telemetry.From(wanted))
	e.enter(Connecting)
	go e.live(wanted, e.current, e.last)
	return e.current, nil
}

// live runs the whole lifetime of one connection. The attempt belongs to the span in
// wanted, which live does not keep.
func (e *Ensemble) live(wanted context.Context, l, previous *life) {
	defer close(l.gone)
	defer l.hurry()
	defer l.stop()
	defer e.failed(l, errExited) // unless Open returns

	connection, err := e.attempt(wanted, l, previous)
	if connection == nil {
		e.failed(l, err)
		return
	}
	if err == nil {
		e.attend(l, connection)
	} else {
		e.failed(l, err)
	}
	ctx, cancel := context.WithTimeout(l.closing, e.options.CloseTimeout)
	defer cancel()
	_, err = guard(e.log, func() (struct{}, error) { return struct{}{}, connection.Close(ctx) })
	if err != nil {
		e.log.Warn("the connection did not close well", event.CloseFailed, zap.Error(err))
	}
}

// attempt makes the connection within the time limit and reports the result to
// telemetry. With an error it may return a connection that must be closed.
func (e *Ensemble) attempt(wanted context.Context, l, previous *life) (Connection, error) {
	start, err := e.awaitStart(l, previous)
	defer start.end()
	if err != nil {
		return nil, err
	}
	limit := e.options.ConnectTimeout
	ctx, cancel := context.WithTimeout(telemetry.Within(l.alive, wanted), limit)
	defer cancel()
	ctx, shown := telemetry.StartConnect(ctx, e.name)
	var once sync.Once
	end := func(err error) { once.Do(func() { e.show(shown, l, err) }) }
	// A source that ignores its context does not keep callers waiting.
	watchdog := time.AfterFunc(limit+grace, func() {
		err := &limitError{"no connection", limit}
		e.failed(l, err)
		end(err)
		start.end()
	})
	defer watchdog.Stop()

	connection, err := e.open(ctx, cancel, l)
	end(err)
	return connection, err
}

// show ends the span of an attempt.
func (e *Ensemble) show(shown *telemetry.Connect, l *life, err error) {
	e.mu.Lock()
	offer, ended := l.offer, l.err
	e.mu.Unlock()
	if err = cmp.Or(err, ended); err != nil { // it may have been given up in the meantime
		shown.End(0, 0, &telemetry.Fault{Type: string(connectCode(err)), Message: e.options.Redact(err.Error())})
		return
	}
	shown.End(len(offer.tools), len(offer.aside), nil)
}

// connectCode returns the code of a failure to connect.
func connectCode(err error) invoker.Code {
	switch failure := invoker.AsFailure(err); {
	case errors.Is(err, ErrDisconnected), errors.Is(err, ErrClosed):
		return invoker.Canceled
	case failure.Code != invoker.ExecutionFailed:
		return failure.Code
	}
	return invoker.Unavailable
}

// open makes the connection and lists its tools before ctx ends; cancel ends ctx. With
// an error it may return a connection that must be closed.
func (e *Ensemble) open(ctx context.Context, cancel context.CancelFunc, l *life) (Connection, error) {
	start := time.Now()
	limit := e.options.ConnectTimeout
	if err := e.takeOver(l); err != nil {
		return nil, err
	}
	if e.source == nil {
		return nil, errors.New("it has no source: New was given nil")
	}
	connection, err := guard(e.log, func() (Connection, error) { return e.source.Open(telemetry.WithEnsemble(ctx, e.name)) })
	switch {
	case err != nil && ctx.Err() == context.DeadlineExceeded:
		return nil, fmt.Errorf("%w: %w", &limitError{"no connection", limit}, err)
	case err != nil:
		return nil, err
	case contain.IsNil(connection):
		return nil, errors.New("the source returned neither a connection nor an error")
	}
	signals, err := e.signalsOf(connection)
	if err != nil {
		return connection, err
	}
	if library, ok := connection.(Library); ok {
		if _, err := guard(e.log, func() (struct{}, error) { library.Listen(func(n News) { e.heard(l, n) }); return struct{}{}, nil }); err != nil {
			return connection, err
		}
	}
	defer cancelWhenLost(signals.lost, cancel)()
	offer, invokers, err := e.list(ctx, l, connection)
	if err != nil {
		if invoker.AsFailure(err).Code == invoker.Unavailable {
			awaitLoss(l.alive, signals.lost)
		}
		if cause := e.causeOfLoss(connection); cause != nil {
			err = fmt.Errorf("the connection was lost: %w", cause)
		}
		return connection, fmt.Errorf("listing the tools: %w", err)
	}
	e.opened(l, connection, signals, offer, invokers, time.Since(start))
	return connection, nil
}

// lossNotice bounds the time from a request that could not be made to the report that
// the connection is lost: a process closes its output before it exits.
const lossNotice = time.Second

// awaitLoss waits a short time until the connection reports its loss.
func awaitLoss(ctx context.Context, lost <-chan struct{}) {
	bound := time.NewTimer(lossNotice)
	defer bound.Stop()
	select {
	case <-lost:
	case <-bound.C:
	case <-ctx.Done():
	}
}

// awaitGone waits until the previous connection is gone, for at most
// Options.ConnectTimeout, or until l ends.
func (e *Ensemble) awaitGone(l, previous *life) error {
	if previous == nil {
		return nil
	}
	bound := time.NewTimer(e.options.ConnectTimeout)
	defer bound.Stop()
	select {
	case <-previous.gone:
		return nil
	case <-bound.C:
		return fmt.Errorf("%w: the one before did not end", &limitError{"no connection", e.options.ConnectTimeout})
	case <-l.alive.Done():
		return l.alive.Err()
	}
}

// takeOver makes l the connection that the next one waits for, unless l has been ended
// before it began.
func (e *Ensemble) takeOver(l *life) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.ended == nil {
		e.tally.late += e.last.late()
		e.last = l
	}
	return l.ended
}

// cancelWhenLost calls cancel if the connection is lost before stop is called.
func cancelWhenLost(lost <-chan struct{}, cancel func()) (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-lost:
			cancel()
		case <-stopped:
		}
	}()
	return func() { close(stopped); <-done }
}

// opened makes the connection the current one.
func (e *Ensemble) opened(l *life, connection Connection, signals signals, offer *offer, invokers map[string]invoker.Invoker, took time.Duration) {
	peer := e.peerOf(connection)
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.isOpened() {
		return // given up in the meantime
	}
	l.connection, l.signals = connection, signals
	l.invokers, l.offer, l.listed = invokers, offer, time.Now()
	l.hear()
	close(l.opened)
	e.take(offer)
	e.peer, e.connectDuration = peer, took
	if e.attempts.err != nil || e.broken {
		e.news.tell(ToolsChanged, ResourcesChanged, PromptsChanged)
	}
	e.attempts = backoff{}
	if e.broken {
		e.broken = false
		e.tally.restarts++
	}
	e.tally.success, e.tally.used = time.Now(), time.Now()
	e.enter(Ready)
	e.log.Info("connected", event.Connected, zap.Int("tools", len(offer.tools)), zap.Int("aside", len(offer.aside)), zap.Duration("took", took))
}

// failed ends the attempt, unless it has already ended.
func (e *Ensemble) failed(l *life, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.isOpened() {
		return
	}
	err = fmt.Errorf("ensemble %q: cannot connect: %w", e.name, err)
	if e.attempts.err == nil && e.listed { // the tools on offer disappear
		e.news.tell(ToolsChanged, ResourcesChanged, PromptsChanged)
	}
	e.attempts.failed(err)
	e.end(l, err)
	e.log.Warn("cannot connect", event.ConnectFailed, zap.Error(err))
	e.setBack(err)
}

// isLost reports whether the connection has reported its loss.
func (l *life) isLost() bool {
	select {
	case <-l.signals.lost:
		return true
	default:
		return false
	}
}

// noticeLoss ends the current connection if it has ended by itself. Every use calls
// noticeLoss, so that no use begins on a connection known to be lost; e.mu is held.
func (e *Ensemble) noticeLoss() {
	l := e.current
	if l == nil || l.connection == nil || !l.isLost() {
		return
	}
	cause := e.causeOfLoss(l.connection)
	if cause == nil {
		cause = errors.New("it ended without saying why")
	}
	e.lost(l, cause)
}

// lose ends a connection that has become useless, unless it has ended.
func (e *Ensemble) lose(l *life, cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == l {
		e.lost(l, cause)
	}
}

// lost handles the loss of the current connection; e.mu is held.
func (e *Ensemble) lost(l *life, cause error) {
	err := fmt.Errorf("ensemble %q: the connection was lost: %w", e.name, cause)
	e.end(l, err)
	e.broken = true
	e.log.Warn("lost", event.Lost, zap.Error(cause))
	e.setBack(err)
}

// end stops a life from taking calls, ends the running ones and makes its goroutine
// close the connection; e.mu is held.
func (e *Ensemble) end(l *life, cause error) {
	if l.ended != nil {
		return
	}
	l.ended = cause
	if !l.isOpened() {
		l.err = cause
		close(l.opened)
	}
	if e.current == l {
		e.current = nil
	}
	for j := range e.jobs {
		if j.life == l {
			j.ended = cause
			j.cancel()
		}
	}
	l.stop()
}

// The bounds of how long a failure is reported instead of trying again.
const (
	firstBackoff = time.Second
	lastBackoff  = 30 * time.Second
)

// backoff remembers consecutive failures.
type backoff struct {
	err   error // of the last one; nil after a success
	wait  time.Duration
	until time.Time
}

// due reports whether the next attempt is due.
func (b *backoff) due() bool { return b.err == nil || !time.Now().Before(b.until) }

// later returns the last failure with the time of the next attempt.
func (b *backoff) later() error { return &laterError{b.err, b.until} }

// failed records a failure.
func (b *backoff) failed(err error) {
	b.err = err
	b.wait = min(max(firstBackoff, 2*b.wait), lastBackoff)
	b.until = time.Now().Add(b.wait)
}
