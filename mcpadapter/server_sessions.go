// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"sync"
	"time"

	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions are those of HTTP clients with protocols before 2026-07-28 (MCP
// 2025-11-25, basic/transports § Session Management). The SDK keeps them too;
// here it is known whose they are.
type sessions struct {
	most, mostPerClient int
	idle                time.Duration
	telemetry           *telemetry.Telemetry

	mu      sync.Mutex
	byID    map[string]*session
	ended   bool
	watched sync.WaitGroup
}

// session belongs to the caller who opened it, and to nobody else who learns
// its name.
type session struct {
	sdk    *mcp.ServerSession
	owner  string // the identity
	client string
	busy   int // requests and streams
	used   time.Time
	timer  *time.Timer

	lasting *telemetry.Session
}

func newSessions(o *ServerOptions) *sessions {
	return &sessions{
		most: o.MaxSessions, mostPerClient: max(1, o.MaxSessions/4), idle: o.SessionIdle, telemetry: o.Telemetry,
		byID: make(map[string]*session),
	}
}

// opened notes a session that is being opened, unless there are too many. One
// without a name, of a stateless request or of a stream, is none.
func (s *sessions) opened(of mcp.Session, from *caller) error {
	sdk, ok := of.(*mcp.ServerSession)
	if !ok || sdk.ID() == "" || from.gone != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.byID[sdk.ID()]; again {
		return nil // the SDK refuses that
	}
	if s.ofClient(from.client) >= s.mostPerClient && !s.endOldest(func(client string) bool { return client == from.client }) {
		return refusal(jsonrpc.CodeInternalError, "there are too many sessions of this client")
	}
	if s.ended || len(s.byID) >= s.most && !s.endOldest(s.largest()) {
		return refusal(jsonrpc.CodeInternalError, "there are too many sessions")
	}
	opened := &session{sdk: sdk, owner: from.identity, client: from.client, used: time.Now()}
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

// agreed notes the version of the protocol that a session speaks.
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

// largest reports of a client whether none has more idle sessions.
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

// endOldest ends that session of the clients which has nothing under way for
// longest.
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

// use begins a request in a session of the caller; ok is false if the caller
// has none of the name.
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

// expire ends a session that nobody uses.
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

// end ends all sessions, and lets none begin.
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
