// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
)

// Restart says what an ensemble does about a connection that was lost, or
// could not be made.
type Restart struct {
	Policy RestartPolicy // default RestartOnUse
	// Tries is how many losses and failed attempts within Window park the
	// ensemble; negative means that none do. Default: 5 with RestartAlways;
	// none with RestartOnUse, which by itself tries no more often than every
	// 30 s. RestartNever has no use for it.
	Tries int
	// Window is the time in which Tries are counted; default 5 min.
	Window time.Duration
}

// RestartPolicy says when a fresh connection is made.
type RestartPolicy string

// The policies.
const (
	// RestartOnUse connects again when the ensemble is next used. The default.
	RestartOnUse RestartPolicy = "on-use"
	// RestartAlways does not wait to be used: it tries by itself, half a
	// second to a second after the first failure, and after each further one
	// within the Window twice as long, up to 30 s. A use meanwhile does not
	// wait for that.
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

// minSetbacks is how many setbacks are remembered at least: enough for the
// longest wait.
const minSetbacks = 8

// setBack decides what comes after a loss or a failed attempt; e.mu is held.
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

// park gives up until somebody connects by hand; e.mu is held.
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

// retryWait is how long to wait after the newest setback: between half and all
// of a time that doubles, so that many do not come back at the same moment.
func (e *Ensemble) retryWait() time.Duration {
	most := lastBackoff
	if n := len(e.setbacks) - 1; n < minSetbacks {
		most = min(firstBackoff<<n, lastBackoff)
	}
	return most/2 + time.Duration(e.random()*float64(most/2))
}

// retryNow connects again unless somebody did already.
func (e *Ensemble) retryNow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == Lost && e.current == nil {
		_, _ = e.currentOrNew(context.Background(), true)
	}
}

// forgive forgets what went wrong and the plan to try again; e.mu is held.
func (e *Ensemble) forgive() {
	e.stopRetry()
	e.setbacks, e.parked, e.broken = nil, nil, false
	e.attempts = backoff{}
}

// stopRetry drops the plan to try again; e.mu is held.
func (e *Ensemble) stopRetry() {
	if e.retry != nil {
		e.retry.Stop()
		e.retry = nil
	}
}
