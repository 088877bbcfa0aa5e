// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync"
	"time"

	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions holds the sessions of HTTP clients with protocols before 2026-07-28 (MCP
// 2025-11-25, basic/transports § Session Management). The SDK keeps them too; this type
// records their owners.
type sessions struct {
	most, mostPerClient int
	idle                time.Duration
	telemetry           *telemetry.Telemetry

	mu      sync.Mutex
	byID    map[string]*session
	ended   bool
	watched sync.WaitGroup
}

// session belongs to the caller that opened it. Other callers cannot use it, even if
// they know its id.
type session struct {
	sdk    *mcp.ServerSession
	owner  string // the identity, and the profile
	client string
	busy   int // requests and streams
	used   time.Time
	timer  *time.Timer

	lasting *telemetry.Session
}

func newSessions(o *Options) *sessions {
	return &sessions{
		most: o.MaxSessions, mostPerClient: max(1, o.MaxSessions/4), idle: o.SessionIdle, telemetry: o.Telemetry,
		byID: make(map[string]*session),
	}
}

// opened records a new session, or returns an error if there are too many. It ignores
// sessions of streams and of stateless requests, which have no id.
func (s *sessions) opened(of mcp.Session, from *caller) error {
	sdk, ok := of.(*mcp.ServerSession)
	if !ok || sdk.ID() == "" || from.gone != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.byID[sdk.ID()]; again {
		return nil // the SDK refuses it
	}
	if s.ofClient(from.client) >= s.mostPerClient && !s.endOldest(func(client string) bool { return client == from.client }) {
		return refusal(jsonrpc.CodeInternalError, "too many sessions of this client")
	}
	if s.ended || len(s.byID) >= s.most && !s.endOldest(s.largest()) {
		return refusal(jsonrpc.CodeInternalError, "too many sessions")
	}
	opened := &session{sdk: sdk, owner: from.owner(), client: from.client, used: time.Now()}
	opened.timer = time.AfterFunc(s.idle, func() { s.expire(sdk.ID()) })
	opened.lasting = s.telemetry.StartSession(from.route, false)
	s.byID[sdk.ID()] = opened
	s.watched.Go(func() {
		_ = sdk.Wait()
		opened.lasting.End(nil)
		s.remove(sdk.ID())
	})
	return nil
}

// agreed records the protocol version of a session.
func (s *sessions) agreed(id, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session, ok := s.byID[id]; ok {
		session.lasting.Agreed(version)
	}
}

func (s *sessions) ofClient(client string) (n int) {
	for _, session := range s.byID {
		if session.client == client {
			n++
		}
	}
	return n
}

// largest returns a function that reports whether a client has at least as many idle
// sessions as any other.
func (s *sessions) largest() func(client string) bool {
	idle, most := make(map[string]int), 0
	for _, session := range s.byID {
		if session.busy == 0 {
			idle[session.client]++
			most = max(most, idle[session.client])
		}
	}
	return func(client string) bool { return idle[client] == most }
}

// endOldest ends the session that has been idle for longest among the clients that
// match. It reports whether there was one.
func (s *sessions) endOldest(of func(client string) bool) bool {
	var oldest *session
	for _, session := range s.byID {
		if session.busy == 0 && of(session.client) && (oldest == nil || session.used.Before(oldest.used)) {
			oldest = session
		}
	}
	if oldest == nil {
		return false
	}
	delete(s.byID, oldest.sdk.ID())
	oldest.timer.Stop()
	s.watched.Go(func() { _ = oldest.sdk.Close() })
	return true
}

// use begins a request in a session of the caller. ok is false if the caller has no
// session with this id. The caller must call done when the request ends.
func (s *sessions) use(id, owner string) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, ok := s.byID[id]
	if !ok || session.owner != owner {
		return nil, false
	}
	session.busy++
	session.timer.Stop()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		session.used = time.Now()
		if session.busy--; session.busy == 0 && s.byID[id] == session {
			session.timer.Reset(s.idle)
		}
	}, true
}

// expire ends a session if it is idle.
func (s *sessions) expire(id string) {
	s.mu.Lock()
	session, ok := s.byID[id]
	if ok = ok && session.busy == 0; ok {
		delete(s.byID, id)
	}
	s.mu.Unlock()
	if ok {
		_ = session.sdk.Close()
	}
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session, ok := s.byID[id]; ok {
		session.timer.Stop()
		delete(s.byID, id)
	}
}

// end ends all sessions and refuses new ones.
func (s *sessions) end() {
	s.mu.Lock()
	s.ended = true
	for id, session := range s.byID {
		delete(s.byID, id)
		session.timer.Stop()
		s.watched.Go(func() { _ = session.sdk.Close() })
	}
	s.mu.Unlock()
	s.watched.Wait()
}
