// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/internal/backoff"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// Restart determines how an ensemble handles a connection that was lost or could not be
// made.
type Restart struct {
	Policy RestartPolicy // default RestartOnUse
	// Tries is how many losses and failed attempts within Window park the ensemble;
	// negative means that it is never parked. Default: 5 with RestartAlways; never with
	// RestartOnUse, which tries at most every 30 s after repeated failures.
	// RestartNever ignores it.
	Tries int
	// Window is the time in which Tries are counted; default 5 min.
	Window time.Duration
}

// RestartPolicy determines when a fresh connection is made. A configuration file writes
// RestartOnUse as "on_use".
type RestartPolicy string

// The policies.
const (
	// RestartOnUse connects again when the ensemble is used after a loss, or some seconds
	// after a failed attempt; see [Ensemble.Connect]. If it is Required, it also connects
	// again without a use, with the waits of RestartAlways; these attempts count towards
	// Tries if that is set. The default.
	RestartOnUse RestartPolicy = "on-use"
	// RestartAlways connects again without being used: it tries half a second to a
	// second after the first failure, and after twice as long for each further failure
	// within Window, up to 30 s. A use in the meantime does not wait for that: after
	// a loss it connects immediately, and after a failed attempt it fails with the remembered
	// error ([Ensemble.Connect]).
	RestartAlways RestartPolicy = "always"
	// RestartNever parks the ensemble at the first loss or failed attempt.
	RestartNever RestartPolicy = "never"
)

// The defaults of [Restart].
const (
	defaultRestartTries  = 5
	defaultRestartWindow = 5 * time.Minute
)

// withDefaults returns a copy with the defaults filled in.
func (r Restart) withDefaults() Restart {
	r.Policy = cmp.Or(r.Policy, RestartOnUse)
	orDefault(&r.Window, defaultRestartWindow)
	switch {
	case r.Policy == RestartNever:
		r.Tries = 1
	case r.Tries == 0 && r.Policy == RestartAlways:
		r.Tries = defaultRestartTries
	case r.Tries == 0:
		r.Tries = -1
	}
	return r
}

// minSetbacks is the least number of setbacks that are remembered: enough for the
// longest wait.
const minSetbacks = 8

// supervisor decides when an ensemble connects, and knows its sessions. Ensemble.mu
// guards it.
type supervisor struct {
	ensemble *Ensemble
	state    State
	since    time.Time // when state was entered
	// current is the session in use or being opened; nil while idle, lost or closed.
	current *session
	// newest is the session that was opened last, gone or not; nil before the first.
	// The next one is not opened until it is gone.
	newest *session
	asleep bool // disconnected because it was idle: the tools stay on offer
	broken bool // the connection was lost, and none has opened since
	gone   bool // the tools are not on offer: an attempt failed, or it was parked, and none has opened since

	failed   backoff.Backoff // the failed attempts since the last successful one
	setbacks []time.Time     // losses and failed attempts within Restart.Window
	retry    *time.Timer     // connects again; nil when no attempt is planned
	random   func() float64  // from 0 to 1, for the wait before a retry
	parked   error           // the reason, while the state is Parked
	lastErr  error           // see Snapshot.LastError

	peer Peer          // of the newest session that was ready
	took time.Duration // the last successful attempt
}

// enter sets the state.
func (v *supervisor) enter(state State) {
	if v.state == state {
		return
	}
	v.state, v.since = state, time.Now()
	if state == Parked {
		v.vanish()
	}
	v.ensemble.log.Debug("the state changed", logevent.StateChanged, zap.String("state", string(state)))
}

// vanish records that the tools are not on offer, and tells so if they were.
func (v *supervisor) vanish() {
	if !v.gone && v.ensemble.tools.known {
		v.ensemble.news.tell(allChanged...)
	}
	v.gone = true
}

// connect returns the current session or begins one, unless an attempt failed a moment
// ago and force is not set. From ctx, the session keeps only the trace and the telemetry
// for the attempt to connect.
func (v *supervisor) connect(ctx context.Context, force bool) (*session, error) {
	e := v.ensemble
	switch {
	case v.state == Closed || e.retirement.begun:
		return nil, fmt.Errorf("ensemble %q: %w", e.name, ErrClosed)
	case v.current != nil:
		return v.current, nil
	case v.state == Parked && force:
		v.resetBackoff()
	case v.state == Parked:
		return nil, v.parked
	case !force && !v.failed.Due():
		return nil, &laterError{v.failed.Err, v.failed.Until}
	}
	v.stopRetry()
	v.asleep = false
	wanted := telemetry.With(telemetry.Within(context.Background(), ctx), e.options.Telemetry)
	v.current = newSession(e, telemetry.From(wanted))
	v.enter(Connecting)
	go v.current.run(wanted, v.newest)
	return v.current, nil
}

// noticeLoss ends the current session if its connection has ended by itself. Every use
// calls noticeLoss, so that no use begins on a connection known to be lost.
func (v *supervisor) noticeLoss() {
	s := v.current
	if s == nil || s.connection == nil || !s.isLost() {
		return
	}
	v.lost(s, cmp.Or(v.ensemble.foreign.lossOf(s.connection), errors.New("it ended without giving a reason")))
}

// lost handles the loss of the connection of the current session.
func (v *supervisor) lost(s *session, cause error) {
	err := fmt.Errorf("ensemble %q: the connection was lost: %w", v.ensemble.name, cause)
	s.end(err)
	v.broken = true
	v.ensemble.log.Warn("lost", logevent.Lost, zap.Error(cause))
	v.setBack(err)
}

// connected records that the current session is ready.
func (v *supervisor) connected(peer Peer, took time.Duration) {
	v.peer, v.took = peer, took
	if v.gone || v.broken {
		v.ensemble.news.tell(allChanged...)
	}
	v.ensemble.stats.connected(v.broken)
	v.failed, v.broken, v.gone = backoff.Backoff{}, false, false
	v.enter(Ready)
}

// setBack decides what to do after a loss or a failed attempt.
func (v *supervisor) setBack(cause error) {
	r := v.ensemble.options.Restart
	if errors.Is(cause, ErrNeedsLogin) {
		v.awaitLogin(cause)
		return
	}
	now := time.Now()
	for len(v.setbacks) > 0 && now.Sub(v.setbacks[0]) >= r.Window {
		v.setbacks = v.setbacks[1:]
	}
	if len(v.setbacks) >= max(r.Tries, minSetbacks) {
		v.setbacks = v.setbacks[1:]
	}
	v.setbacks = append(v.setbacks, now)
	v.lastErr = cause
	if r.Tries > 0 && len(v.setbacks) >= r.Tries {
		v.park(cause)
		return
	}
	v.enter(Lost)
	v.planRetry(v.retryWait())
}

// planRetry connects again later, if the ensemble does that without being used.
func (v *supervisor) planRetry(wait time.Duration) {
	o := &v.ensemble.options
	required := o.Required && o.Restart.Policy != RestartNever
	if o.Restart.Policy == RestartAlways || required || len(v.ensemble.subscriptions) > 0 {
		v.retry = time.AfterFunc(wait, v.ensemble.reconnect)
		v.ensemble.log.Info("connecting again soon", logevent.RetryPlanned, zap.Duration("in", wait))
	}
}

// wake connects an ensemble that has got subscriptions without being used, if there are any:
// immediately, or later if connecting has failed.
func (v *supervisor) wake() {
	switch {
	case len(v.ensemble.subscriptions) == 0:
	case v.state == Idle:
		_, _ = v.connect(context.Background(), false)
	case (v.state == Lost || v.state == NeedsLogin) && v.retry == nil:
		v.planRetry(backoff.First)
	}
}

// awaitLogin is setBack for an error that lasts until a person has logged in. The next use
// tries again without a pause, so that it succeeds right after the login. A login that lacks
// rights is found out only by asking the server, so each use asks again.
func (v *supervisor) awaitLogin(cause error) {
	v.lastErr = cause
	v.failed.Until = time.Now()
	v.enter(NeedsLogin)
	v.planRetry(backoff.Last)
}

// park stops reconnecting until [Ensemble.Connect] is called.
func (v *supervisor) park(cause error) {
	r := v.ensemble.options.Restart
	if r.Policy == RestartNever {
		v.parked = fmt.Errorf("%w (%w: its restart policy is never; Ensemble.Connect revives it)", cause, errParked)
	} else {
		v.parked = fmt.Errorf("%w (%w after %d failures within %s; Ensemble.Connect revives it)", cause, errParked, len(v.setbacks), r.Window)
	}
	v.lastErr = v.parked
	v.enter(Parked)
	v.ensemble.log.Error("parked; it is not retried until the program connects it again", logevent.Parked, zap.Int("failures", len(v.setbacks)), zap.Error(cause))
}

// retryWait returns how long to wait after the newest setback: between half and all of
// a time that doubles, so that several ensembles do not reconnect at the same moment.
func (v *supervisor) retryWait() time.Duration {
	most := min(backoff.First<<min(len(v.setbacks)-1, minSetbacks), backoff.Last)
	return most/2 + time.Duration(v.random()*float64(most/2))
}

// resetBackoff forgets past failures and cancels the planned retry.
func (v *supervisor) resetBackoff() {
	v.stopRetry()
	v.setbacks, v.parked, v.broken, v.asleep = nil, nil, false, false
	v.failed = backoff.Backoff{}
}

// stopRetry cancels the planned retry.
func (v *supervisor) stopRetry() {
	if v.retry != nil {
		v.retry.Stop()
		v.retry = nil
	}
}

// sleep ends the current session because it was not used.
func (v *supervisor) sleep(cause error) {
	v.asleep = !v.current.isStale() // if the tools may have changed, the next listing reconnects
	v.current.end(cause)
	v.enter(Idle)
}

// leave ends the current session, enters state and returns the sessions to wait for.
func (v *supervisor) leave(state State, cause error) []*session {
	var sessions []*session
	if v.current != nil {
		sessions = append(sessions, v.current)
		v.current.end(cause)
	}
	if v.newest != nil {
		sessions = append(sessions, v.newest) // may be the same
	}
	if v.state != Closed && (v.state != Parked || state != Idle) {
		v.enter(state)
		v.resetBackoff()
		if state == Parked {
			v.parked, v.lastErr = cause, cause
		}
	}
	return slices.Compact(sessions)
}

// connectsOnUse reports whether the next use would connect, and nothing else will.
func connectsOnUse(e *Ensemble) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := &e.supervisor
	return (v.state == Lost || v.state == NeedsLogin) && v.retry == nil && v.failed.Due()
}

// reconnect connects again, unless the ensemble is already connecting or connected.
func (e *Ensemble) reconnect() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.supervisor.state; (s == Lost || s == NeedsLogin) && e.supervisor.current == nil {
		if began, err := e.supervisor.connect(context.Background(), true); err == nil {
			began.planned = true
		}
	}
}
