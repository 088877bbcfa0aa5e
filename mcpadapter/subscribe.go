// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// standing is a request to listen (MCP 2026-07-28, SEP-2575, subscriptions/listen) that
// is kept open until its context ends. The SDK would send it once, and not again after
// the stream was cut.
type standing struct {
	c      *connection
	what   string         // what it listens for, for the log
	filter map[string]any // the notifications to ask for
	missed func()         // called when notifications may have been missed

	answered func()        // called when the first request was answered, also with a refusal
	ready    chan struct{} // closed by answered
	late     time.Time     // when waiting for the first answer stops
	again    chan struct{} // asks for a new request

	mu      sync.Mutex
	refusal error // why the server refuses; set before ready is closed
	asked   int
	acked   bool // the server has acknowledged a request
}

func (c *connection) newStanding(what string, filter map[string]any, missed func()) *standing {
	s := &standing{c: c, what: what, filter: filter, missed: missed, ready: make(chan struct{}), again: make(chan struct{}, 1)}
	s.answered = sync.OnceFunc(func() { close(s.ready) })
	s.late = time.Now().Add(streamWait)
	return s
}

// keep sends one request to listen after another.
func (s *standing) keep(ctx context.Context) {
	defer s.answered()
	wait := firstRetry
	for {
		began := time.Now()
		restarted, refusal, err := s.listen(ctx)
		if ctx.Err() != nil || s.c.life.ctx.Err() != nil {
			return
		}
		if (refusal != nil || refusesToTell(err) || err == nil && !restarted) && !s.wasAcknowledged() {
			s.refused(cmp.Or(err, errNotTold))
			return
		}
		s.answered()
		if restarted {
			continue
		}
		wait = nextWait(wait, 0, time.Since(began))
		if !paused(ctx, wait) {
			return
		}
	}
}

// refused records that the server will not send notifications.
func (s *standing) refused(err error) {
	s.mu.Lock()
	s.refusal = err
	s.mu.Unlock()
	s.c.log.Warn("the server does not report changes", logevent.ListenRefused, zap.String("of", s.what), zap.Error(cleaned(err)))
}

// why returns why the server refuses; nil if it does not, or has not answered.
func (s *standing) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal
}

func (s *standing) wasAcknowledged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// listen sends one request and returns when it has ended. refusal is the server's error
// answer.
func (s *standing) listen(ctx context.Context) (restarted bool, refusal *jsonrpc.Error, err error) {
	c := s.c
	x := &exchange{standing: true}
	defer c.interceptor.forget(x)
	id := fmt.Sprintf("listen-%d", c.serial.Add(1))
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	c.listeners.add(id, s)
	defer c.listeners.remove(id)
	over := make(chan error, 1)
	asking, cancel := context.WithCancel(c.life.ctx)
	defer cancel()
	if !c.life.start(func() {
		over <- c.ask(asking, x, id, "subscriptions/listen", map[string]any{"notifications": s.filter})
	}) {
		return false, nil, errClosed
	}
	select {
	case err = <-over:
		return false, x.refusal(), err
	case <-s.again:
	case <-ctx.Done():
	}
	s.takeBack(id, over)
	cancel()
	<-over
	return true, nil, ctx.Err()
}

// takeBack cancels a request to listen and gives the server a moment to answer it. A
// server that keeps one list of subscriptions per session, as the SDK's does over
// stdio, must finish this request before it gets the next.
func (s *standing) takeBack(id string, over chan error) {
	request, err := jsonrpc.MakeID(id)
	if _, overHTTP := s.c.link.(*httpLink); overHTTP || err != nil {
		return // over HTTP, the end of the stream is enough
	}
	ctx, cancel := context.WithTimeout(s.c.life.ctx, wire.EndTimeout)
	defer cancel()
	s.c.interceptor.cancel(ctx, request, "the subscription has ended")
	select {
	case err := <-over:
		over <- err
	case <-ctx.Done():
	}
}

// acknowledged handles the server's acknowledgement (SEP-2575).
func (s *standing) acknowledged(granted map[string]json.RawMessage) {
	s.mu.Lock()
	first := s.asked == 1
	s.acked = true
	if wanted, ok := s.filter["resourceSubscriptions"].([]string); ok {
		var uris []string
		_ = json.Unmarshal(granted["resourceSubscriptions"], &uris)
		if !slices.Contains(uris, wanted[0]) {
			s.refusal = errNotTold
		}
	}
	s.mu.Unlock()
	if !first || time.Now().After(s.late) {
		s.missed() // something may have changed without a request to listen
	}
	s.answered()
}

var errNotTold = errors.New("it does not report these changes")

// listeners finds the request to listen that an acknowledgement belongs to.
type listeners struct {
	mu   sync.Mutex
	byID map[string]*standing
	main *standing // for a server that does not name the request
}

func (l *listeners) add(id string, s *standing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = make(map[string]*standing)
	}
	l.byID[id] = s
}

func (l *listeners) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}

// acknowledged handles notifications/subscriptions/acknowledged.
func (l *listeners) acknowledged(params json.RawMessage) {
	var said struct {
		Meta          map[string]json.RawMessage `json:"_meta"`
		Notifications map[string]json.RawMessage `json:"notifications"`
	}
	_ = json.Unmarshal(params, &said)
	var id string
	_ = json.Unmarshal(said.Meta[mcp.MetaKeySubscriptionID], &id)
	l.mu.Lock()
	s := l.byID[id]
	if s == nil && id == "" {
		s = l.main
	}
	l.mu.Unlock()
	if s != nil {
		s.acknowledged(said.Notifications)
	}
}

// listenForLists keeps a request to listen for changes of the lists, if the server
// offers such notifications, and waits for the acknowledgement.
func (c *connection) listenForLists(ctx context.Context) {
	can, filter := c.offers(), map[string]any{}
	if can.Tools != nil && can.Tools.ListChanged {
		filter["toolsListChanged"] = true
	}
	if can.Prompts != nil && can.Prompts.ListChanged {
		filter["promptsListChanged"] = true
	}
	if can.Resources != nil && can.Resources.ListChanged {
		filter["resourcesListChanged"] = true
	}
	if len(filter) == 0 {
		return
	}
	s := c.newStanding("what it offers", filter, c.notifications.lists)
	c.listeners.mu.Lock()
	c.listeners.main = s
	c.listeners.mu.Unlock()
	c.life.work.Go(func() { s.keep(c.life.ctx) })
	waitFor(ctx, s.ready)
}

// refusesToTell reports whether asking again would return the same status.
func refusesToTell(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.refused() && !status.transient()
}

// subscription is a resource with update notifications.
type subscription struct {
	stop func() // ends the request to listen and waits for its end; nil for the older protocols
}

// Subscribe implements [ensemble.Library]: resources/subscribe (MCP 2025-11-25,
// server/resources § Subscriptions), or a request to listen for this resource only (MCP
// 2026-07-28, SEP-2575).
func (c *connection) Subscribe(ctx context.Context, uri string) error {
	if err := errors.Join(ctx.Err(), c.requests.gone()); err != nil {
		return err
	}
	if can := c.offers().Resources; can == nil || !can.Subscribe {
		return c.requests.named("subscribing to a resource", invoker.Failf(invoker.InvalidArguments, "The server does not report updates of resources."))
	}
	stop, err := c.subscribe(ctx, uri)
	if err != nil {
		return c.requests.named("subscribing to a resource", missing(err))
	}
	c.notifications.mu.Lock()
	defer c.notifications.mu.Unlock()
	c.notifications.watched[uri] = &subscription{stop}
	return nil
}

func (c *connection) subscribe(ctx context.Context, uri string) (stop func(), err error) {
	if c.modern {
		return c.listenFor(ctx, uri)
	}
	return nil, c.requests.shared(ctx, telemetry.Call{URI: uri}, new(struct{}), `{}`, func(ctx context.Context) error {
		return c.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	})
}

// listenFor keeps a request to listen for updates of one resource.
func (c *connection) listenFor(ctx context.Context, uri string) (stop func(), err error) {
	s := c.newStanding("a resource", map[string]any{"resourceSubscriptions": []string{uri}}, func() { c.updated(uri) })
	listening, cancel := context.WithCancel(c.life.ctx)
	done := make(chan struct{})
	if !c.life.start(func() { defer close(done); s.keep(listening) }) {
		cancel()
		return nil, c.requests.gone()
	}
	stop = func() { cancel(); <-done }
	select {
	case <-s.ready: // also if the connection has ended
		err = cmp.Or(s.why(), c.requests.gone())
	case <-ctx.Done():
		err = ctx.Err()
	case <-c.life.ctx.Done():
		err = c.requests.gone()
	}
	if err == nil {
		return stop, nil
	}
	stop()
	var rpc *jsonrpc.Error
	switch {
	case errors.Is(err, errNotTold):
		return nil, &invoker.Failure{Code: invoker.InvalidArguments, Message: "The server does not report updates of this resource.", Cause: err}
	case errors.As(err, &rpc):
		return nil, ofRPC(rpc, cleaned(err))
	}
	return nil, c.requests.failure(err, &exchange{}, true)
}

// Unsubscribe implements [ensemble.Library].
func (c *connection) Unsubscribe(ctx context.Context, uri string) error {
	c.notifications.mu.Lock()
	s := c.notifications.watched[uri]
	delete(c.notifications.watched, uri)
	c.notifications.mu.Unlock()
	switch {
	case s == nil:
		return ctx.Err()
	case s.stop == nil:
		err := c.requests.shared(ctx, telemetry.Call{URI: uri}, new(struct{}), `{}`, func(ctx context.Context) error {
			return c.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
		})
		if err != nil {
			return c.requests.named("ending a subscription", err)
		}
		return nil
	}
	s.stop()
	c.listenAgain()
	return nil
}

// listenAgain renews the request to listen for the lists. The SDK's server drops all
// subscriptions of a session when one of its requests ends; over HTTP each request is
// its own session.
func (c *connection) listenAgain() {
	c.listeners.mu.Lock()
	s := c.listeners.main
	c.listeners.mu.Unlock()
	if _, overHTTP := c.link.(*httpLink); s == nil || overHTTP {
		return
	}
	select {
	case s.again <- struct{}{}:
	default:
	}
}

// metaOf returns the _meta of every request of the newest protocol: the version, and
// the client's name and capabilities, which the SDK has just sent to the server.
func metaOf(discover *jsonrpc.Request) map[string]json.RawMessage {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(discover.Params, &params) != nil {
		return nil
	}
	return params.Meta
}

// speak sets the negotiated version in the _meta of later requests.
func (c *connection) speak(version string) {
	if c.requestMeta != nil {
		text, _ := json.Marshal(version) // a string
		c.requestMeta[mcp.MetaKeyProtocolVersion] = text
	}
}
