// SPDX-License-Identifier: Apache-2.0

package ensemble

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/consort-go/consort/internal/backoff"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// subscription is a request for updates of a resource.
type subscription struct {
	ensemble *Ensemble
	uri      string
	turn     chan struct{} // holds a value while settle runs

	// The rest is guarded by Ensemble.mu.

	users    int
	over     *session      // the connection that is subscribed; nil if none is
	missed   bool          // it was moved, and no connection has reported the resource since
	settling bool          // a goroutine is in settle, and will clean up
	moved    *subscription // of the ensemble that has replaced this one; has the users; nil if none has
}

// Subscribe makes updates of a resource appear as news in [Roster.Watch] until stop is
// called. Callers that subscribe to the same resource share one subscription, and
// Options.MaxSubscriptions bounds the number of subscriptions. A subscription survives
// the loss of the connection: while there is a subscription, the ensemble reconnects by
// itself as with [RestartAlways], unless it is [Parked], subscribes again, and reports the
// resource as updated, because an update may have been missed. If that fails, it does the same
// every 30 s. A subscription also counts as a use for Options.IdleDisconnect.
//
// The error is an [*invoker.Failure]: as of [Ensemble.ReadResource], DENIED if
// Options.MaxSubscriptions is reached, or the server's error if it does not report
// updates. Only the end of ctx affects the server,
// since the subscription is shared.
func (e *Ensemble) Subscribe(ctx context.Context, uri string) (stop func(), err error) {
	sub, err := e.subscriptionTo(uri)
	if err != nil {
		return nil, err
	}
	_, err = request(ctx, sub.ensemble, "subscribing to a resource", mayReach(uri), func(ctx context.Context, s *session, library Library) (struct{}, error) {
		return struct{}{}, sub.settle(ctx, s, library)
	})
	if err != nil {
		sub.release()
		return nil, err
	}
	return sync.OnceFunc(sub.release), nil
}

// subscriptionTo returns the subscription to a resource, with one user more. If the ensemble
// was replaced, it is one of the new ensemble.
func (e *Ensemble) subscriptionTo(uri string) (*subscription, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	sub := e.subscriptions[uri]
	switch next := e.retirement.next; {
	case next != nil:
		return next.subscriptionTo(uri)
	case sub == nil && len(e.subscriptions) >= e.options.MaxSubscriptions:
		return nil, invoker.Failf(invoker.Denied, "%q has %d subscriptions, which is the limit. End one of them first.", e.name, e.options.MaxSubscriptions)
	case sub == nil:
		sub = &subscription{ensemble: e, uri: uri, turn: make(chan struct{}, 1)}
		e.subscriptions[uri] = sub
	}
	sub.users++
	e.news.want(uri, true)
	return sub, nil
}

// release removes a user, and unsubscribes after the last one.
func (sub *subscription) release() {
	e := sub.ensemble
	e.mu.Lock()
	if moved := sub.moved; moved != nil {
		e.mu.Unlock()
		moved.release()
		return
	}
	sub.users--
	s := sub.over
	if sub.users > 0 {
		e.mu.Unlock()
		return
	}
	e.news.want(sub.uri, false)
	if sub.settling || s == nil || s.ended != nil || s != e.supervisor.current {
		sub.forget()
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	sub.unsubscribe(s)
}

// forget drops a subscription without users; Ensemble.mu is held. It keeps one that
// settle is still working on, so that only one goroutine does so at a time.
func (sub *subscription) forget() {
	if all := sub.ensemble.subscriptions; sub.users == 0 && !sub.settling && all[sub.uri] == sub {
		delete(all, sub.uri)
	}
}

// unsubscribe ends the subscription over the connection in a separate job, which only
// the end of the connection waits for.
func (sub *subscription) unsubscribe(s *session) {
	e := sub.ensemble
	ctx, cancel := context.WithTimeout(s.alive, e.options.ConnectTimeout)
	done := func() {
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		sub.forget()
	}
	library := s.connection.(Library) // the one that subscribed
	j, err := s.begin("ending a subscription", cancel)
	if err != nil {
		done()
		return
	}
	go func() {
		defer j.finish()
		defer done()
		if err := e.foreign.do(func() error { return sub.settle(ctx, s, library) }); err != nil {
			e.log.Info("a subscription could not be ended", logevent.SubscriptionFailed, zap.Error(err))
		}
	}()
}

// settle makes a connection agree with a subscription: the connection is subscribed if
// the subscription has users, and not otherwise. One goroutine at a time does it.
func (sub *subscription) settle(ctx context.Context, s *session, library Library) error {
	select {
	case sub.turn <- struct{}{}:
		defer func() { <-sub.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	e := sub.ensemble
	if e != s.ensemble {
		return invoker.Failf(invoker.Unavailable, "%q was replaced at this moment. Try again.", e.name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() {
		sub.settling = false
		sub.forget()
	}()
	var err error
	for err == nil && (sub.users > 0) != (sub.over == s) {
		sub.settling = true
		sub.over, err = sub.send(ctx, s, library)
	}
	return err
}

// send subscribes or unsubscribes over a connection, depending on whether the
// subscription has users, and returns the connection that is subscribed then; Ensemble.mu is
// held, but released in the meantime.
func (sub *subscription) send(ctx context.Context, s *session, library Library) (*session, error) {
	e, before, wanted := sub.ensemble, sub.over, sub.users > 0
	if !wanted {
		sub.over = nil // even if Unsubscribe panics
	}
	e.mu.Unlock()
	defer e.mu.Lock()
	if wanted {
		if err := library.Subscribe(telemetry.Within(bare{ctx}, ctx), sub.uri); err != nil {
			return before, err
		}
		return s, nil
	}
	ctx, cancel := context.WithTimeout(s.alive, e.options.ConnectTimeout) // the caller may be gone
	defer cancel()
	return nil, library.Unsubscribe(telemetry.Within(bare{ctx}, ctx), sub.uri)
}

// bare is a context that ends with another one and carries no values.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// keepSubscribed renews the subscriptions until the session ends. One that could not be
// renewed is tried again after backoff.Last.
func (s *session) keepSubscribed(library Library) {
	for s.alive.Err() == nil {
		s.resubscribe(library)
		pause, cancel := context.WithTimeout(s.alive, backoff.Last)
		<-pause.Done()
		cancel()
	}
}

// resubscribe renews the subscriptions that a connection does not have. It reports the resource
// of each subscription that an earlier connection had, or that was moved, as updated.
func (s *session) resubscribe(library Library) {
	e := s.ensemble
	e.mu.Lock()
	left := slices.SortedFunc(maps.Values(e.subscriptions), func(a, b *subscription) int { return cmp.Compare(a.uri, b.uri) })
	e.mu.Unlock()
	for _, sub := range left {
		e.mu.Lock()
		done, missed := s.ended != nil || sub.over == s && !sub.missed || sub.users == 0, sub.missed || sub.over != nil
		e.mu.Unlock()
		if done {
			continue
		}
		err := sub.renew(s, library)
		if err != nil && s.alive.Err() == nil {
			e.log.Warn("a subscription could not be renewed", logevent.SubscriptionFailed, zap.Error(err))
		}
		if missed {
			e.news.updated(sub.uri)
		}
		e.mu.Lock()
		sub.missed = sub.missed && err != nil
		e.mu.Unlock()
	}
}

func (sub *subscription) renew(s *session, library Library) error {
	ctx, cancel := context.WithTimeout(s.alive, s.ensemble.options.ConnectTimeout)
	defer cancel()
	return s.do(ctx, cancel, "renewing a subscription", func(ctx context.Context) error { return sub.settle(ctx, s, library) })
}

// moveSubscriptions moves the subscriptions that next allows to next, which replaces e; e.mu
// is held.
func (e *Ensemble) moveSubscriptions(next *Ensemble) {
	next.mu.Lock()
	defer next.mu.Unlock()
	for uri, sub := range e.subscriptions {
		if sub.users == 0 || mayReach(uri)(next) != nil {
			continue
		}
		moved := next.subscriptions[uri]
		if moved == nil {
			moved = &subscription{ensemble: next, uri: uri, turn: make(chan struct{}, 1)}
			next.subscriptions[uri] = moved
		}
		moved.users, moved.missed = moved.users+sub.users, true
		sub.users, sub.moved = 0, moved
		next.news.want(uri, true)
	}
}

// resubscribe makes the current connection agree with subscriptions that were moved to
// the ensemble, and reports their resources as updated, since an update may have been
// missed. Without a connection, it reports them, and the next connection does both.
func (e *Ensemble) resubscribe() {
	var library Library
	e.mu.Lock()
	uris := slices.Sorted(maps.Keys(e.subscriptions))
	e.supervisor.wake()
	s := e.supervisor.current
	if s != nil {
		library, _ = s.connection.(Library)
	}
	e.mu.Unlock()
	if library != nil {
		s.resubscribe(library)
		return
	}
	for _, uri := range uris {
		e.news.updated(uri)
	}
}
