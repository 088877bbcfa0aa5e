// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
)

// monitor attends to a connection until it is lost or its session ends: it receives
// changes, sends pings, renews subscriptions and disconnects when idle.
type monitor struct {
	session    *session
	connection Connection
	pinger     Pinger // the connection; nil if it is not a Pinger
}

func newMonitor(s *session, connection Connection) *monitor {
	pinger, _ := connection.(Pinger)
	return &monitor{s, connection, pinger}
}

// run returns when the connection must be closed.
func (m *monitor) run() {
	s, e := m.session, m.session.ensemble
	changed := s.signals.changed
	ping := newAlarm(e.options.KeepAlive, m.pinger != nil)
	defer ping.stop()
	idle := newAlarm(e.options.IdleDisconnect, true)
	defer idle.stop()
	var renewing sync.WaitGroup
	defer renewing.Wait() // soon, since the session has ended
	if library, ok := m.connection.(Library); ok {
		renewing.Go(func() { s.keepSubscribed(library) })
	}
	var pinged chan error // while a ping is in progress
	defer func() {
		if pinged != nil {
			<-pinged // soon, since the session has ended
		}
	}()
	for {
		select {
		case <-s.alive.Done():
			return
		case <-s.signals.lost:
			e.mu.Lock()
			e.supervisor.noticeLoss()
			e.mu.Unlock()
			return
		case _, open := <-changed:
			if !open {
				changed = nil // violates the contract, and reports no change
			}
			s.outdate()
			e.news.tell(ToolsChanged)
		case <-ping.rings:
			wait, ok := m.pingWait()
			if !ok {
				return
			}
			if wait > 0 {
				ping.timer.Reset(wait)
				continue
			}
			pinged = make(chan error, 1)
			go func() { pinged <- m.ping() }()
		case err := <-pinged:
			pinged = nil
			if !m.pinged(err) {
				return
			}
			ping.timer.Reset(e.options.KeepAlive)
		case <-idle.rings:
			idle.timer.Reset(m.sleepOrWait())
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
var errUnused = errors.New("disconnected because it was idle")

// sleepOrWait disconnects the ensemble if it has not been used for
// Options.IdleDisconnect, and returns when to check again. While the tools are being listed it
// waits, so that the new list stays on offer.
func (m *monitor) sleepOrWait() time.Duration {
	e := m.session.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	most := e.options.IdleDisconnect
	used, idle := e.stats.idle()
	if e.supervisor.current != m.session || !idle || len(e.subscriptions) > 0 || len(m.session.listing) > 0 {
		return most
	}
	if wait := most - time.Since(used); wait > 0 {
		return wait
	}
	e.supervisor.sleep(fmt.Errorf("ensemble %q: %w", e.name, errUnused))
	e.log.Info("disconnected until its next use", logevent.Disconnected, zap.Duration("unused", most))
	return most
}
