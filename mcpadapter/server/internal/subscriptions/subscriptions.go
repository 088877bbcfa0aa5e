// SPDX-License-Identifier: Apache-2.0

// Package subscriptions has the subscriptions of the sessions of a server to resources.
package subscriptions

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// PerClient bounds the subscriptions of a client: templates allow an unlimited number of
// resources. It is a quarter of the default for an ensemble, so that one client does not take
// all places.
const PerClient = 250

// MaxURI bounds the URI of a subscription, in bytes.
const MaxURI = 8 << 10

// Set has the subscriptions of sessions. They end with their session at the latest. The zero
// value is empty. Its methods may be called concurrently.
type Set struct {
	mu      sync.Mutex
	of      map[*mcp.ServerSession]*session
	clients map[string]int // how many a client has
	watched sync.WaitGroup
}

// session has the subscriptions of one session.
type session struct {
	client string
	drop   func(uri string)
	stops  map[string]func() // by URI
}

// Add adds a subscription, which ends with stop. A session has one to each resource, the newest:
// the earlier one is stopped. Add returns false if the client has too many, and stop is not
// called then. drop is called for each URI of a session that has ended.
func (s *Set) Add(of *mcp.ServerSession, client, uri string, stop func(), drop func(uri string)) bool {
	earlier, ok := s.add(of, client, uri, stop, drop)
	if earlier != nil {
		earlier()
	}
	return ok
}

// add returns the function that ends the subscription that is replaced; nil without one.
func (s *Set) add(of *mcp.ServerSession, client, uri string, stop func(), drop func(uri string)) (earlier func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.of[of]; one != nil {
		if earlier = one.stops[uri]; earlier != nil {
			one.stops[uri] = stop
			return earlier, true
		}
		client = one.client // the session counts for the client that began it
	}
	if s.clients[client] >= PerClient {
		return nil, false
	}
	if s.of == nil {
		s.of, s.clients = make(map[*mcp.ServerSession]*session), make(map[string]int)
	}
	if s.of[of] == nil {
		s.of[of] = &session{client: client, drop: drop, stops: make(map[string]func())}
		s.watched.Go(func() {
			_ = of.Wait()
			s.end(of)
		})
	}
	s.of[of].stops[uri] = stop
	s.clients[client]++
	return nil, true
}

// Remove ends the subscription of a session to a resource.
func (s *Set) Remove(of *mcp.ServerSession, uri string) {
	if stop := s.taken(of, uri); stop != nil {
		stop()
	}
}

// taken removes a subscription and returns the function that ends it; nil without one.
func (s *Set) taken(of *mcp.ServerSession, uri string) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of[of]
	if one == nil || one.stops[uri] == nil {
		return nil
	}
	stop = one.stops[uri]
	delete(one.stops, uri)
	s.forget(one.client, 1)
	return stop
}

// forget lowers the number of a client. The caller must hold s.mu.
func (s *Set) forget(client string, n int) {
	if s.clients[client] -= n; s.clients[client] <= 0 {
		delete(s.clients, client)
	}
}

// end ends the subscriptions of a session that has ended.
func (s *Set) end(of *mcp.ServerSession) {
	s.mu.Lock()
	ended := s.of[of]
	delete(s.of, of)
	s.forget(ended.client, len(ended.stops))
	s.mu.Unlock()
	for uri, stop := range ended.stops {
		ended.drop(uri)
		stop()
	}
}

// Wait waits until the sessions have ended, and their subscriptions.
func (s *Set) Wait() { s.watched.Wait() }
