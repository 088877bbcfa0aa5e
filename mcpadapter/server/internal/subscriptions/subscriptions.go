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
	stops  map[string][]func() // by URI
}

// Add adds a subscription, which ends with stop. It returns false if the client has too many.
// drop is called for each URI of a session that has ended.
func (s *Set) Add(of *mcp.ServerSession, client, uri string, stop func(), drop func(uri string)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.of[of]; one != nil {
		client = one.client // the session counts for the client that began it
	}
	if s.clients[client] >= PerClient {
		return false
	}
	if s.of == nil {
		s.of, s.clients = make(map[*mcp.ServerSession]*session), make(map[string]int)
	}
	if s.of[of] == nil {
		s.of[of] = &session{client: client, drop: drop, stops: make(map[string][]func())}
		s.watched.Go(func() {
			_ = of.Wait()
			s.end(of)
		})
	}
	one := s.of[of]
	one.stops[uri] = append(one.stops[uri], stop)
	s.clients[one.client]++
	return true
}

// Remove ends one subscription of a session to a resource.
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
	if one == nil || len(one.stops[uri]) == 0 {
		return nil
	}
	last := len(one.stops[uri]) - 1
	stop, one.stops[uri] = one.stops[uri][last], one.stops[uri][:last]
	if last == 0 {
		delete(one.stops, uri)
	}
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
	for _, stops := range ended.stops {
		s.forget(ended.client, len(stops))
	}
	s.mu.Unlock()
	for uri, stops := range ended.stops {
		ended.drop(uri)
		for _, stop := range stops {
			stop()
		}
	}
}

// Wait waits until the sessions have ended, and their subscriptions.
func (s *Set) Wait() { s.watched.Wait() }
