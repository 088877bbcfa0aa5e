// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/event"
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

// RestartPolicy determines when a fresh connection is made.
type RestartPolicy string

// The policies.
const (
	// RestartOnUse connects again when the ensemble is next used. The default.
	RestartOnUse RestartPolicy = "on-use"
	// RestartAlways connects again without being used: it tries half a second to a
	// second after the first failure, and after twice as long for each further failure
	// within Window, up to 30 s. A use in the meantime does not wait for that.
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
	if r.Policy == "" {
		r.Policy = RestartOnUse
	}
	if r.Window <= 0 {
		r.Window = defaultRestartWindow
	}
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

// setBack decides what to do after a loss or a failed attempt; e.mu is held.
func (e *Ensemble) setBack(cause error) {
	r := e.options.Restart
	now := time.Now()
	for len(e.setbacks) > 0 && now.Sub(e.setbacks[0]) >= r.Window {
		e.setbacks = e.setbacks[1:]
	}
	if len(e.setbacks) >= max(r.Tries, minSetbacks) {
		e.setbacks = e.setbacks[1:]
	}
	e.setbacks = append(e.setbacks, now)
	e.lastErr = cause
	if r.Tries > 0 && len(e.setbacks) >= r.Tries {
		e.park(cause)
		return
	}
	e.enter(Lost)
	if r.Policy == RestartAlways || len(e.subscriptions) > 0 {
		wait := e.retryWait()
		e.retry = time.AfterFunc(wait, e.retryNow)
		e.log.Info("connecting again soon", event.RetryPlanned, zap.Duration("in", wait))
	}
}

// park stops reconnecting until [Ensemble.Connect] is called; e.mu is held.
func (e *Ensemble) park(cause error) {
	r := e.options.Restart
	if r.Policy == RestartNever {
		e.parked = fmt.Errorf("%w (%w: it is not to be restarted; Ensemble.Connect revives it)", cause, ErrParked)
	} else {
		e.parked = fmt.Errorf("%w (%w after %d failures within %s; Ensemble.Connect revives it)", cause, ErrParked, len(e.setbacks), r.Window)
	}
	e.lastErr = e.parked
	e.enter(Parked)
	e.log.Error("parked; it is not tried again until somebody connects by hand", event.Parked, zap.Int("failures", len(e.setbacks)), zap.Error(cause))
}

// retryWait returns how long to wait after the newest setback: between half and all of
// a time that doubles, so that several ensembles do not reconnect at the same moment.
func (e *Ensemble) retryWait() time.Duration {
	most := lastBackoff
	if n := len(e.setbacks) - 1; n < minSetbacks {
		most = min(firstBackoff<<n, lastBackoff)
	}
	return most/2 + time.Duration(e.random()*float64(most/2))
}

// retryNow connects again, unless the ensemble is already connecting or connected.
func (e *Ensemble) retryNow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == Lost && e.current == nil {
		_, _ = e.currentOrNew(context.Background(), true)
	}
}

// forgive forgets past failures and cancels the planned retry; e.mu is held.
func (e *Ensemble) forgive() {
	e.stopRetry()
	e.setbacks, e.parked, e.broken = nil, nil, false
	e.attempts = backoff{}
}

// stopRetry cancels the planned retry; e.mu is held.
func (e *Ensemble) stopRetry() {
	if e.retry != nil {
		e.retry.Stop()
		e.retry = nil
	}
}
