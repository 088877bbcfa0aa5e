// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/backoff"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// toolList is the tools of a session. Ensemble.mu guards it.
type toolList struct {
	listed
	at     time.Time       // when they were listed
	stale  bool            // the tools may have changed since then
	failed backoff.Backoff // the failed listings since then
}

// listed is an offer with its invokers, by the tool's own name.
type listed struct {
	offer    *offer
	invokers map[string]invoker.Invoker
}

// offered returns the offer of the current session, listing again if it may have
// changed.
func (e *Ensemble) offered(ctx context.Context) (*offer, error) {
	for attempt := 1; ; attempt++ {
		if offer, ok := e.offeredAsleep(); ok {
			return offer, ctx.Err()
		}
		s, err := e.ready(ctx, false, forList)
		if err != nil {
			return nil, err
		}
		if err := s.refresh(ctx); err != nil {
			return nil, err
		}
		e.mu.Lock()
		offer, ended := s.tools.offer, s.ended
		e.mu.Unlock()
		if ended == nil {
			return offer, nil
		}
		if attempt == attempts {
			return nil, ended
		}
	}
}

// offeredAsleep returns the offer that stays valid while the ensemble is asleep.
func (e *Ensemble) offeredAsleep() (*offer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tools.offer, e.supervisor.asleep
}

// offeredSoon is like offered, but does not wait long for an ensemble whose last
// attempt failed, unless the ensemble is required.
func (e *Ensemble) offeredSoon(ctx context.Context) (*offer, error) {
	if e.options.Required {
		return e.offered(ctx)
	}
	return soon(ctx, e, e.offered)
}

// retryPatience bounds the wait for an ensemble whose last attempt failed.
const retryPatience = 500 * time.Millisecond

// soon calls f, with little time if the last attempt to connect failed; if that time
// is not enough, it returns the failure of the attempt.
func soon[T any](ctx context.Context, e *Ensemble, f func(context.Context) (T, error)) (T, error) {
	e.mu.Lock()
	failure := e.supervisor.failed.Err
	e.mu.Unlock()
	if failure == nil {
		return f(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, retryPatience)
	defer cancel()
	value, err := f(ctx)
	if err != nil && ctx.Err() != nil {
		var none T
		return none, failure
	}
	return value, err
}

// upToDate returns the offer if it is known to be up to date, without waiting.
func (e *Ensemble) upToDate() (*offer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.supervisor.noticeLoss()
	if e.supervisor.state != Ready || e.supervisor.current.isDue() {
		return nil, false
	}
	return e.supervisor.current.tools.offer, true
}

// isDue reports whether the tools must be listed again; Ensemble.mu is held.
func (s *session) isDue() bool {
	return (s.isStale() || s.ensemble.options.isOld(s.tools.at)) && s.tools.failed.Due()
}

// isStale reports whether the tools may have changed since they were listed;
// Ensemble.mu is held.
func (s *session) isStale() bool { return s.tools.stale || s.changed.Load() }

// outdate marks the tools as changed.
func (s *session) outdate() {
	s.ensemble.mu.Lock()
	defer s.ensemble.mu.Unlock()
	s.tools.stale = true
}

// refresh lists the tools again if they may have changed. It returns an error
// only when ctx has ended.
func (s *session) refresh(ctx context.Context) error {
	e := s.ensemble
	e.mu.Lock()
	due := s.isDue()
	e.mu.Unlock()
	if !due {
		return nil
	}
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return fmt.Errorf("ensemble %q: waiting for the list of tools: %w", e.name, ctx.Err())
	}
	e.mu.Lock()
	due = s.isDue()
	if due {
		s.tools.stale = false // a change from now on makes it stale again
		s.changed.Store(false)
	}
	e.mu.Unlock()
	if !due {
		return nil
	}
	bounded, cancel := context.WithTimeout(e.traced(ctx), e.options.ConnectTimeout)
	defer cancel()
	found, err := s.list(bounded, s.connection)
	if err != nil && ctx.Err() != nil {
		s.outdate()
		return fmt.Errorf("ensemble %q: listing the tools: %w", e.name, ctx.Err())
	}
	s.relisted(found, err)
	return nil
}

// relisted stores the result of a listing other than the first.
func (s *session) relisted(found listed, err error) {
	e := s.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case s.ended != nil:
	case err != nil:
		s.tools.stale = true
		e.supervisor.lastErr = fmt.Errorf("ensemble %q: listing the tools anew: %w", e.name, err)
		s.tools.failed.Add(e.supervisor.lastErr)
	default:
		s.tools.failed = backoff.Backoff{}
		s.setTools(found)
	}
}

// setTools stores the tools of the connection, and makes them the tools of the ensemble;
// Ensemble.mu is held.
func (s *session) setTools(found listed) {
	s.tools.listed, s.tools.at = found, time.Now()
	s.touch()
	e := s.ensemble
	if c, changed := e.tools.replace(found.offer); changed {
		e.news.tell(ToolsChanged)
		e.log.Info("the tools have changed", logevent.ToolsChanged, zap.Strings("added", c.Added), zap.Strings("removed", c.Removed), zap.Strings("changed", c.Changed))
	}
}

// invoker returns the connection's invoker for the tool.
func (s *session) invoker(tool string) (invoker.Invoker, bool) {
	s.ensemble.mu.Lock()
	defer s.ensemble.mu.Unlock()
	target, ok := s.tools.invokers[tool]
	return target, ok
}

// list lists the tools of the session's connection.
func (s *session) list(ctx context.Context, connection Connection) (listed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j, err := s.begin("listing its tools", cancel)
	if err != nil {
		return listed{}, err
	}
	e := s.ensemble
	e.mu.Lock()
	before := e.tools.offer
	e.mu.Unlock()
	log := logListing(ctx, e.log)
	found, err := run(ctx, j, func(ctx context.Context) (listed, error) {
		listing, err := connection.List(ctx)
		if err != nil {
			return listed{}, err
		}
		return selectTools(e, listing, e.instructionsOf(connection), before)
	})
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("%w: %w", &limitError{"no list", e.options.ConnectTimeout}, err)
	}
	log(found.offer, err)
	return found, err
}

// logListing logs that the tools of a connection are listed; the function that it
// returns logs the result. If a listing other than the first fails, the old list stays
// valid.
func logListing(ctx context.Context, log *zap.Logger) (ended func(*offer, error)) {
	began := time.Now()
	logevent.Log(ctx, log, zapcore.DebugLevel, "requesting the list of tools", logevent.ListStarted)
	return func(o *offer, err error) {
		took := zap.Duration("took", time.Since(began))
		if err != nil {
			logevent.Log(ctx, log, zapcore.WarnLevel, "the tools could not be listed", logevent.ListFailed, zap.Error(err), took)
			return
		}
		logevent.Log(ctx, log, zapcore.DebugLevel, "the tools were listed", logevent.ListSucceeded, zap.Int("tools", len(o.tools)), zap.Int("aside", len(o.aside)), took)
	}
}
