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
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// session is the lifetime of one connection, from the attempt to open it until it is
// gone. One goroutine, [session.run], runs it.
type session struct {
	ensemble *Ensemble

	opened chan struct{} // closed when the attempt has ended
	gone   chan struct{} // closed when the connection is closed

	// stop cancels alive to end the session; forceClose cancels closing to force the
	// end.
	alive      context.Context
	stop       context.CancelFunc
	closing    context.Context
	forceClose context.CancelFunc

	listing chan struct{} // holds a value while a listing is in progress

	heard   atomic.Int64 // the last sign of life, in Unix nanoseconds
	suspect atomic.Bool  // a call has timed out since then
	changed atomic.Bool  // the connection has said that the tools may have changed

	// The rest is guarded by Ensemble.mu.

	planned    bool       // it was begun without a use
	urgency    urgency    // of the callers that wait for it to open
	start      *start     // of its process; nil before it was requested, or if no process starts
	err        error      // why the attempt failed; set before opened is closed
	ended      error      // why it takes no more calls; nil while it does
	connection Connection // nil until it is ready
	signals    signals    // of the connection
	tools      toolList
}

// newSession makes a session whose work is reported to t.
func newSession(e *Ensemble, t *telemetry.Telemetry) *session {
	s := &session{
		ensemble: e,
		opened:   make(chan struct{}),
		gone:     make(chan struct{}),
		listing:  make(chan struct{}, 1),
	}
	base := telemetry.With(context.Background(), t)
	s.alive, s.stop = context.WithCancel(base)
	s.closing, s.forceClose = context.WithCancel(base)
	return s
}

// ready returns a session that takes calls, connecting if needed. Unless force is set,
// it does not repeat an attempt that failed a moment ago.
func (e *Ensemble) ready(ctx context.Context, force bool, u urgency) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ensemble %q: %w", e.name, err)
	}
	e.mu.Lock()
	e.supervisor.noticeLoss()
	s, err := e.supervisor.connect(ctx, force)
	opened := s != nil && s.connection != nil
	if s != nil && !opened {
		s.raise(u)
	}
	e.mu.Unlock()
	if err != nil || opened {
		return s, err
	}
	select {
	case <-s.opened:
	case <-ctx.Done():
		return nil, fmt.Errorf("ensemble %q: waiting for the connection: %w", e.name, ctx.Err())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.err != nil && e.supervisor.failed.Err == s.err {
		return nil, &laterError{e.supervisor.failed.Err, e.supervisor.failed.Until}
	}
	if s.err != nil {
		return nil, s.err
	}
	return s, nil
}

// run runs the whole session. The attempt belongs to the span in wanted, which run does
// not keep.
func (s *session) run(wanted context.Context, previous *session) {
	defer close(s.gone)
	defer s.forceClose()
	defer s.stop()
	defer s.fail(errExited) // unless Open returns

	connection, err := s.attempt(wanted, previous)
	if connection == nil {
		s.fail(err)
		return
	}
	if err == nil {
		newMonitor(s, connection).run()
	} else {
		s.fail(err)
	}
	e := s.ensemble
	ctx, cancel := context.WithTimeout(s.closing, e.options.CloseTimeout)
	defer cancel()
	if err := e.foreign.do(func() error { return connection.Close(ctx) }); err != nil {
		e.log.Warn("closing the connection failed", logevent.CloseFailed, zap.Error(err))
	}
}

// attempt makes the connection within the time limit and reports the result to
// telemetry. With an error it may return a connection that must be closed.
func (s *session) attempt(wanted context.Context, previous *session) (Connection, error) {
	start, err := s.awaitStart(previous)
	defer start.end()
	if err != nil {
		return nil, err
	}
	limit := s.ensemble.options.ConnectTimeout
	ctx, cancel := context.WithTimeout(telemetry.Within(s.alive, wanted), limit)
	defer cancel()
	ctx, span := telemetry.StartConnect(ctx, s.ensemble.name)
	var once sync.Once
	end := func(err error) { once.Do(func() { s.endSpan(span, err) }) }
	// A source that ignores its context does not keep callers waiting.
	watchdog := time.AfterFunc(limit+grace, func() {
		err := &limitError{"no connection", limit}
		s.fail(err)
		end(err)
		start.end()
	})
	defer watchdog.Stop()

	connection, err := s.open(ctx, cancel)
	end(err)
	return connection, err
}

// endSpan ends the span of an attempt.
func (s *session) endSpan(span *telemetry.Connect, err error) {
	e := s.ensemble
	e.mu.Lock()
	offer, ended := s.tools.offer, s.err
	e.mu.Unlock()
	if err = cmp.Or(err, ended); err != nil { // it may have been given up in the meantime
		span.End(0, 0, &telemetry.Fault{Type: string(connectCode(err)), Message: e.options.Redact(err.Error())})
		return
	}
	span.End(len(offer.tools), len(offer.aside), nil)
}

// connectCode returns the code of a failure to connect.
func connectCode(err error) invoker.Code {
	switch failure := invoker.AsFailure(err); {
	case onRequest(err):
		return invoker.Canceled
	case failure.Code != invoker.ExecutionFailed:
		return failure.Code
	}
	return invoker.Unavailable
}

// open makes the connection and lists its tools before ctx ends; cancel ends ctx. With
// an error it may return a connection that must be closed.
func (s *session) open(ctx context.Context, cancel context.CancelFunc) (Connection, error) {
	e, start := s.ensemble, time.Now()
	if err := s.becomeNewest(); err != nil {
		return nil, err
	}
	if e.source == nil {
		return nil, errors.New("it has no source: New was called with nil")
	}
	connection, err := guard(e.log, func() (Connection, error) { return e.source.Open(telemetry.WithEnsemble(ctx, e.name)) })
	switch {
	case err != nil && ctx.Err() == context.DeadlineExceeded:
		return nil, fmt.Errorf("%w: %w", &limitError{"no connection", e.options.ConnectTimeout}, err)
	case err != nil:
		return nil, err
	case contain.IsNil(connection):
		return nil, errors.New("the source returned neither a connection nor an error")
	}
	signals, err := e.foreign.signalsOf(connection)
	if err != nil {
		return connection, err
	}
	if library, ok := connection.(Library); ok {
		if err := e.foreign.do(func() error { library.Listen(s.receive); return nil }); err != nil {
			return connection, err
		}
	}
	defer cancelWhenLost(signals.lost, cancel)()
	found, err := s.list(ctx, connection)
	if err != nil {
		if invoker.AsFailure(err).Code == invoker.Unavailable {
			awaitLoss(s.alive, signals.lost)
		}
		if cause := e.foreign.lossOf(connection); cause != nil {
			err = fmt.Errorf("the connection was lost: %w", cause)
		}
		return connection, fmt.Errorf("listing the tools: %w", err)
	}
	s.succeed(connection, signals, found, time.Since(start))
	return connection, nil
}

// lossNotice bounds the time from a request that could not be made to the report that
// the connection is lost: a process closes its output before it exits.
const lossNotice = time.Second

// awaitLoss waits a short time until the connection reports its loss.
func awaitLoss(ctx context.Context, lost <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, lossNotice)
	defer cancel()
	select {
	case <-lost:
	case <-ctx.Done():
	}
}

// awaitGone waits until the previous session is gone, for at most
// Options.ConnectTimeout, or until s ends.
func (s *session) awaitGone(previous *session) error {
	if previous == nil {
		return nil
	}
	limit := s.ensemble.options.ConnectTimeout
	bound := time.NewTimer(limit)
	defer bound.Stop()
	select {
	case <-previous.gone:
		return nil
	case <-bound.C:
		return fmt.Errorf("%w: the previous one did not end", &limitError{"no connection", limit})
	case <-s.alive.Done():
		return s.alive.Err()
	}
}

// becomeNewest makes s the session that the next one waits for, unless it was ended
// before it began.
func (s *session) becomeNewest() error {
	e := s.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.ended == nil {
		e.stats.addLate(e.supervisor.newest.late())
		e.supervisor.newest = s
	}
	return s.ended
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

// succeed ends the attempt: the session takes calls from now on.
func (s *session) succeed(connection Connection, signals signals, found listed, took time.Duration) {
	e := s.ensemble
	peer := e.foreign.peerOf(connection)
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.isOpened() {
		return // given up in the meantime
	}
	s.connection, s.signals = connection, signals
	s.setTools(found)
	close(s.opened)
	e.supervisor.connected(peer, took)
	e.log.Info("connected", logevent.Connected, zap.Int("tools", len(found.offer.tools)), zap.Int("aside", len(found.offer.aside)), zap.Duration("took", took))
}

// fail ends the attempt, unless it has already ended.
func (s *session) fail(err error) {
	e := s.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.isOpened() {
		return
	}
	err = fmt.Errorf("ensemble %q: cannot connect: %w", e.name, err)
	var refused interface{ NeedsLogin() bool }
	if errors.As(err, &refused) && refused.NeedsLogin() {
		err = loginError{err}
	}
	e.supervisor.vanish()
	if failed := &e.supervisor.failed; s.planned && e.options.Restart.Policy == RestartOnUse {
		failed.Repeat(err)
	} else {
		failed.Add(err)
	}
	s.end(err)
	e.log.Warn("cannot connect", logevent.ConnectFailed, zap.Error(err))
	e.supervisor.setBack(err)
}

// lose ends the session because its connection has become useless, unless it has ended.
func (s *session) lose(cause error) {
	e := s.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.supervisor.current == s {
		e.supervisor.lost(s, cause)
	}
}

// end stops the session from taking calls, ends the running ones and makes its
// goroutine close the connection; Ensemble.mu is held.
func (s *session) end(cause error) {
	if s.ended != nil {
		return
	}
	s.ended = cause
	if !s.isOpened() {
		s.err = cause
		close(s.opened)
	}
	if v := &s.ensemble.supervisor; v.current == s {
		v.current = nil
	}
	s.ensemble.jobs.end(s, cause)
	s.stop()
}

// isOpened reports whether the attempt has ended.
func (s *session) isOpened() bool { return isClosed(s.opened) }

// isLost reports whether the connection has reported its loss.
func (s *session) isLost() bool { return isClosed(s.signals.lost) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// endedBy returns why the session ended; nil if it has not.
func (s *session) endedBy() error {
	s.ensemble.mu.Lock()
	defer s.ensemble.mu.Unlock()
	return s.ended
}

// endedByLoss reports whether the session ended for a reason other than Disconnect or
// Close, or will, since its connection has reported its loss.
func (s *session) endedByLoss() bool {
	cause := s.endedBy()
	return cause == nil && s.isLost() || cause != nil && !onRequest(cause)
}

// onRequest reports whether Disconnect or Close is the cause of an error.
func onRequest(err error) bool { return errors.Is(err, errDisconnected) || errors.Is(err, ErrClosed) }

// neverReached reports whether a call failed because its connection was lost before the
// call was sent: the source says that nothing was done.
func (s *session) neverReached(err error) bool { return isUnavailable(err) && s.isLost() }

// touch records a sign of life from the other end.
func (s *session) touch() {
	s.heard.Store(time.Now().UnixNano())
	s.suspect.Store(false)
}

// late returns the number of late answers that the connection has counted; Ensemble.mu
// is held.
func (s *session) late() int {
	if s == nil {
		return 0
	}
	late := 0
	if connection, ok := s.connection.(LateCounter); ok {
		_ = contain.Call("the connection", func() { late = connection.Late() }) // after a panic, the count is 0
	}
	return late
}

// receive handles the news of the connection. It is called while the source holds
// locks, and so must not lock Ensemble.mu.
func (s *session) receive(news News) {
	e := s.ensemble
	switch news.Kind {
	case ToolsChanged: // subscribers are notified through Connection.Changed
		s.changed.Store(true)
	case ResourcesChanged:
		e.lists.resources.changed.Store(true)
		e.lists.templates.changed.Store(true)
		e.news.tell(ResourcesChanged)
	case PromptsChanged:
		e.lists.prompts.changed.Store(true)
		e.news.tell(PromptsChanged)
	case ResourceUpdated:
		e.news.updated(news.URI)
	}
}
