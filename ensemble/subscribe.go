// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// subscription is a resource of which the ensemble is to hear.
type subscription struct {
	uri  string
	turn chan struct{} // holds a value while the connection is told

	// The rest is guarded by Ensemble.mu.

	users    int
	over     *life // the connection that knows of it; nil if none does
	settling bool  // somebody tells a connection, and sees to what is left
}

// Subscribe makes the updates of a resource news for [Roster.Watch], until stop
// is called. Those who subscribe to the same resource share one subscription,
// and Options.MaxSubscriptions bounds how many there are. It survives the loss
// of the connection: while there is one the ensemble comes back by itself as
// with [RestartAlways], subscribes again, and says once that the resource was
// updated, because that may have been missed. It also counts as a use for
// Options.IdleDisconnect.
//
// The error is an [*invoker.Failure]: NOT_FOUND if there is no such resource,
// and what the server says if it does not tell of updates. Nothing of ctx but
// its end concerns the server, since the subscription is for all.
func (e *Ensemble) Subscribe(ctx context.Context, uri string) (stop func(), err error) {
	s, err := e.enlist(uri)
	if err != nil {
		return nil, err
	}
	_, err = request(ctx, e, "subscribing to a resource", func(ctx context.Context, l *life, library Library) (struct{}, error) {
		return struct{}{}, e.settle(ctx, l, library, s)
	})
	if err != nil {
		e.dismiss(s)
		return nil, err
	}
	return sync.OnceFunc(func() { e.dismiss(s) }), nil
}

// enlist counts one more user of a subscription.
func (e *Ensemble) enlist(uri string) (*subscription, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.subscriptions[uri]
	switch {
	case s == nil && len(e.subscriptions) >= e.options.MaxSubscriptions:
		return nil, invoker.Failf(invoker.Denied, "%q has %d subscriptions, which is the limit. End one of them first.", e.name, e.options.MaxSubscriptions)
	case s == nil:
		s = &subscription{uri: uri, turn: make(chan struct{}, 1)}
		e.subscriptions[uri] = s
	}
	s.users++
	e.news.want(uri, true)
	return s, nil
}

// dismiss counts one user less, and tells the connection after the last.
func (e *Ensemble) dismiss(s *subscription) {
	e.mu.Lock()
	s.users--
	l := s.over
	if s.users > 0 {
		e.mu.Unlock()
		return
	}
	e.news.want(s.uri, false)
	if s.settling || l == nil || l.ended != nil || l != e.current {
		e.forget(s)
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	e.unsubscribe(l, s)
}

// forget drops a subscription without users; e.mu is held. One that somebody
// still tells a connection of is kept, so that nobody else does beside them.
func (e *Ensemble) forget(s *subscription) {
	if s.users == 0 && !s.settling && e.subscriptions[s.uri] == s {
		delete(e.subscriptions, s.uri)
	}
}

// unsubscribe tells the connection in a job of its own, which nobody waits for
// but the end of the connection.
func (e *Ensemble) unsubscribe(l *life, s *subscription) {
	ctx, cancel := context.WithTimeout(l.alive, e.options.ConnectTimeout)
	j := &job{name: "ending a subscription", life: l, cancel: cancel, done: make(chan struct{})}
	done := func() {
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.forget(s)
	}
	library, ok := l.connection.(Library)
	if !ok || e.begin(j) != nil {
		done()
		return
	}
	go func() {
		defer e.finish(j)
		defer done()
		_, err := guard(e.log, func() (struct{}, error) { return struct{}{}, e.settle(ctx, l, library, s) })
		if err != nil {
			e.log.Info("a subscription could not be ended", event.SubscriptionFailed, zap.Error(err))
		}
	}()
}

// settle brings a connection and a subscription together: it is to know of one
// that has users, and of no other. One at a time does it.
func (e *Ensemble) settle(ctx context.Context, l *life, library Library, s *subscription) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() {
		s.settling = false
		e.forget(s)
	}()
	var err error
	for err == nil && (s.users > 0) != (s.over == l) {
		s.settling = true
		err = e.tell(ctx, l, library, s)
	}
	return err
}

// tell tells a connection that a subscription has users, or none; e.mu is held,
// but not meanwhile.
func (e *Ensemble) tell(ctx context.Context, l *life, library Library, s *subscription) error {
	wanted := s.users > 0
	e.mu.Unlock()
	defer e.mu.Lock()
	if wanted {
		err := library.Subscribe(telemetry.Within(bare{ctx}, ctx), s.uri)
		if err == nil {
			e.mu.Lock()
			s.over = l
			e.mu.Unlock()
		}
		return err
	}
	ctx, cancel := context.WithTimeout(l.alive, e.options.ConnectTimeout) // whoever asked may be gone
	defer cancel()
	defer func() {
		e.mu.Lock()
		s.over = nil // whatever comes of it
		e.mu.Unlock()
	}()
	return library.Unsubscribe(telemetry.Within(bare{ctx}, ctx), s.uri)
}

// bare is a context that ends as another does, and carries nothing.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// resubscribe makes the subscriptions known to a fresh connection, and says of
// each that an earlier one knew of that the resource was updated.
func (e *Ensemble) resubscribe(l *life, library Library) {
	e.mu.Lock()
	left := slices.SortedFunc(maps.Values(e.subscriptions), func(a, b *subscription) int { return cmp.Compare(a.uri, b.uri) })
	e.mu.Unlock()
	for _, s := range left {
		if l.alive.Err() != nil {
			return
		}
		e.mu.Lock()
		known := s.over == l || s.users == 0
		missed := s.over != nil
		e.mu.Unlock()
		if known {
			continue
		}
		if err := e.resubscribeTo(l, library, s); err != nil && l.alive.Err() == nil {
			e.log.Warn("a subscription could not be renewed", event.SubscriptionFailed, zap.Error(err))
		}
		if missed {
			e.news.updated(s.uri)
		}
	}
}

func (e *Ensemble) resubscribeTo(l *life, library Library, s *subscription) error {
	ctx, cancel := context.WithTimeout(l.alive, e.options.ConnectTimeout)
	defer cancel()
	j := &job{name: "renewing a subscription", life: l, cancel: cancel, done: make(chan struct{})}
	if err := e.begin(j); err != nil {
		return err
	}
	_, err := run(ctx, e, j, func(ctx context.Context) (struct{}, error) { return struct{}{}, e.settle(ctx, l, library, s) })
	if err != nil {
		return fmt.Errorf("ensemble %q: %w", e.name, err)
	}
	return nil
}
