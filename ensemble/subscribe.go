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

// subscription is a request for updates of a resource.
type subscription struct {
	uri  string
	turn chan struct{} // holds a value while settle runs

	// The rest is guarded by Ensemble.mu.

	users    int
	over     *life // the connection that is subscribed; nil if none is
	settling bool  // a goroutine is in settle, and will clean up
}

// Subscribe makes updates of a resource appear as news in [Roster.Watch] until stop is
// called. Callers that subscribe to the same resource share one subscription, and
// Options.MaxSubscriptions bounds the number of subscriptions. A subscription survives
// the loss of the connection: while there is a subscription, the ensemble reconnects by
// itself as with [RestartAlways], subscribes again, and reports the resource as updated
// once, because an update may have been missed. It also counts as a use for
// Options.IdleDisconnect.
//
// The error is an [*invoker.Failure]: NOT_FOUND if the resource does not exist, or the
// server's error if it does not report updates. Only the end of ctx affects the server,
// since the subscription is shared.
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

// enlist adds a user to a subscription.
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

// dismiss removes a user, and unsubscribes after the last one.
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

// forget drops a subscription without users; e.mu is held. It keeps one that settle is
// still working on, so that only one goroutine does so at a time.
func (e *Ensemble) forget(s *subscription) {
	if s.users == 0 && !s.settling && e.subscriptions[s.uri] == s {
		delete(e.subscriptions, s.uri)
	}
}

// unsubscribe ends the subscription over the connection in a separate job, which only
// the end of the connection waits for.
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

// settle makes a connection agree with a subscription: the connection is subscribed if
// the subscription has users, and not otherwise. One goroutine at a time does it.
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

// tell subscribes or unsubscribes over a connection, depending on whether the
// subscription has users; e.mu is held, but released in the meantime.
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
	ctx, cancel := context.WithTimeout(l.alive, e.options.ConnectTimeout) // the caller may be gone
	defer cancel()
	defer func() {
		e.mu.Lock()
		s.over = nil // even if this fails
		e.mu.Unlock()
	}()
	return library.Unsubscribe(telemetry.Within(bare{ctx}, ctx), s.uri)
}

// bare is a context that ends with another one and carries no values.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// resubscribe renews the subscriptions over a fresh connection. It reports the resource
// of each subscription that an earlier connection had as updated.
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
