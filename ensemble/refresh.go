// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"time"
)

// Refresh lists the tools again now, even if no change was reported; resources and
// prompts are listed again at their next use. It connects as [Ensemble.Connect] does.
// If it fails, the old list stays valid.
func (e *Ensemble) Refresh(ctx context.Context) error {
	e.mu.Lock()
	before := e.current
	e.mu.Unlock()
	l, err := e.ready(ctx, true)
	if err != nil || l != before {
		return err // a fresh connection has a fresh list
	}
	e.outdate(l)
	if err := e.refresh(ctx, l); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.ended != nil {
		return l.ended
	}
	return l.listings.err
}

// relistPatience bounds the wait for the tools of one ensemble in the middle of a turn.
const relistPatience = 5 * time.Second

// relist returns the offer of a connected ensemble, listing again if it may have
// changed. If that takes too long, the old offer stays valid for a while. It returns
// false if the ensemble is not connected.
func (e *Ensemble) relist(ctx context.Context) (*offer, bool) {
	e.mu.Lock()
	e.noticeLoss()
	l := e.current
	ready := e.state == Ready
	e.mu.Unlock()
	if !ready {
		return nil, false
	}
	bounded, cancel := context.WithTimeout(ctx, relistPatience)
	defer cancel()
	err := e.refresh(bounded, l)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		l.listings.failed(err)
	}
	return l.offer, l.ended == nil
}

// outdate makes all lists outdated and forgets failed listings.
func (e *Ensemble) outdate(l *life) {
	for _, changed := range e.shelves.changed() {
		changed.Store(true)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l.stale, l.listings = true, backoff{}
	e.shelves.forgive()
}

// isDue reports whether the tools must be listed again; e.mu is held.
func (e *Ensemble) isDue(l *life) bool {
	return (l.isStale() || e.isOld(l.listed)) && l.listings.due()
}

// isStale reports whether the tools may have changed since they were listed; e.mu is
// held.
func (l *life) isStale() bool { return l.stale || l.changed.Load() }

// isOld reports whether a list is older than Options.Refresh.
func (e *Ensemble) isOld(listed time.Time) bool {
	return e.options.Refresh > 0 && time.Since(listed) >= e.options.Refresh
}

// Refresh lists the tools of all ensembles again, concurrently, as [Ensemble.Refresh]
// does, and returns the joined errors. The next [Roster.Catalog] has the result.
func (r *Roster) Refresh(ctx context.Context) error {
	return sideBySide(r.ensembles, func(e *Ensemble) error { return e.Refresh(ctx) })
}
