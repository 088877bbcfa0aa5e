// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
)

// attend monitors a connection until it is lost or its life ends: it receives changes,
// sends pings, and disconnects when idle.
func (e *Ensemble) attend(l *life, connection Connection) {
	changed := l.signals.changed
	pinger, ok := connection.(Pinger)
	ping := newAlarm(e.options.KeepAlive, ok)
	defer ping.stop()
	idle := newAlarm(e.options.IdleDisconnect, true)
	defer idle.stop()
	var renewing sync.WaitGroup
	defer renewing.Wait() // soon, since the life has ended
	if library, ok := connection.(Library); ok {
		renewing.Go(func() { e.resubscribe(l, library) })
	}
	var pinged chan error // while a ping is in progress
	defer func() {
		if pinged != nil {
			<-pinged // soon, since the life has ended
		}
	}()
	for {
		select {
		case <-l.alive.Done():
			return
		case <-l.signals.lost:
			e.mu.Lock()
			e.noticeLoss()
			e.mu.Unlock()
			return
		case _, open := <-changed:
			if !open {
				changed = nil // violates the contract, and reports no change
			}
			e.mu.Lock()
			l.stale = true
			e.mu.Unlock()
			e.news.tell(ToolsChanged)
		case <-ping.rings:
			wait, ok := e.pingWait(l, connection)
			if !ok {
				return
			}
			if wait > 0 {
				ping.timer.Reset(wait)
				continue
			}
			pinged = make(chan error, 1)
			go func() { pinged <- e.ping(l, pinger) }()
		case err := <-pinged:
			pinged = nil
			if !e.pinged(l, err) {
				return
			}
			ping.timer.Reset(e.options.KeepAlive)
		case <-idle.rings:
			idle.timer.Reset(e.sleepOrWait(l))
		}
	}
}

// alarm is a timer that may be off: then it never fires.
type alarm struct {
	timer *time.Timer
	rings <-chan time.Time
}

// newAlarm sets an alarm, unless wanted is false or the time is not positive.
func newAlarm(after time.Duration, wanted bool) alarm {
	if after <= 0 || !wanted {
		return alarm{}
	}
	timer := time.NewTimer(after)
	return alarm{timer, timer.C}
}

func (a alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// errUnused ends a connection that was not used for a while.
var errUnused = errors.New("disconnected because it was not used")

// sleepOrWait disconnects the ensemble if it has not been used for
// Options.IdleDisconnect, and returns when to check again.
func (e *Ensemble) sleepOrWait(l *life) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	most := e.options.IdleDisconnect
	if e.current != l || e.tally.inUse() || len(e.subscriptions) > 0 {
		return most
	}
	if wait := most - time.Since(e.tally.used); wait > 0 {
		return wait
	}
	e.asleep = !l.isStale() // if the tools may have changed, the next listing reconnects
	e.end(l, fmt.Errorf("ensemble %q: %w", e.name, errUnused))
	e.enter(Idle)
	e.log.Info("disconnected until it is used", event.Disconnected, zap.Duration("unused", most))
	return most
}
