// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"time"

	"github.com/consort-go/consort/internal/backoff"
)

// Refresh lists the tools again now, even if no change was reported; resources and
// prompts are listed again at their next use. It connects as [Ensemble.Connect] does, but
// does not revive an ensemble that is [Parked]. If it fails, the old list stays valid.
func (e *Ensemble) Refresh(ctx context.Context) error {
	e.mu.Lock()
	before := e.supervisor.current
	e.supervisor.failed.Until = time.Now() // a failed attempt does not make it wait
	e.mu.Unlock()
	s, err := e.ready(ctx, false, forList)
	if err != nil || s != before {
		return err // a fresh connection has a fresh list
	}
	e.mu.Lock()
	s.tools.stale, s.tools.failed = true, backoff.Backoff{}
	e.lists.outdate()
	e.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return cmp.Or(s.ended, s.tools.failed.Err)
}

// relistPatience bounds the wait for the tools of one ensemble in the middle of a turn.
const relistPatience = 5 * time.Second

// relist returns the offer of a connected ensemble, listing again if it may have
// changed. If that takes too long, the old offer stays valid for a while. It returns
// false if the ensemble is not connected.
func (e *Ensemble) relist(ctx context.Context) (*offer, bool) {
	e.mu.Lock()
	e.supervisor.noticeLoss()
	s, ready := e.supervisor.current, e.supervisor.state == Ready
	e.mu.Unlock()
	if !ready {
		return nil, false
	}
	bounded, cancel := context.WithTimeout(ctx, relistPatience)
	defer cancel()
	err := s.refresh(bounded)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		s.tools.failed.Add(err)
	}
	return s.tools.offer, s.ended == nil
}

// isOld reports whether a list is older than Options.Refresh.
func (o *Options) isOld(listed time.Time) bool {
	return o.Refresh > 0 && time.Since(listed) >= o.Refresh
}

// Refresh lists the tools of all ensembles again, concurrently, as [Ensemble.Refresh]
// does, and returns the joined errors. The next [Roster.Catalog] has the result.
func (r *Roster) Refresh(ctx context.Context) error {
	return sideBySide(r.now().ensembles, func(e *Ensemble) error { return e.Refresh(ctx) })
}
