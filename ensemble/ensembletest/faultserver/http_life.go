// SPDX-License-Identifier: Apache-2.0

package faultserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// httpLife is one life of a server over HTTP: from listening until death.
type httpLife struct {
	core   *server
	server http.Server
	served sync.WaitGroup // the listener, and work that follows answers
	open   sync.WaitGroup // running requests

	mu       sync.Mutex
	shut     bool
	conns    map[net.Conn]*connection
	sessions map[string]chan struct{} // closed when the session ends
	streams  map[*eventStream]bool    // that clients keep open
}

// connection is the state of a TCP connection.
type connection struct{ after []func() }

type connectionKey struct{}

func newHTTPLife(core *server) *httpLife {
	life := &httpLife{
		core: core, conns: make(map[net.Conn]*connection),
		sessions: make(map[string]chan struct{}), streams: make(map[*eventStream]bool),
	}
	core.expire = life.expire
	core.standing = standing{life}
	life.server = http.Server{
		Handler:     life,
		ErrorLog:    log.New(io.Discard, "", 0), // errors here are intended
		ConnContext: life.connContext,
		ConnState:   life.connState,

		ReadHeaderTimeout: requestTimeout,
	}
	return life
}

// serve starts everything; wait waits for its end.
func (life *httpLife) serve(listener net.Listener) {
	life.served.Add(3)
	go func() {
		defer life.served.Done()
		_ = life.server.Serve(listener)
	}()
	go func() {
		defer life.served.Done()
		life.core.start()
	}()
	go func() {
		defer life.served.Done()
		<-life.core.ctx.Done()
		life.mu.Lock()
		life.shut = true
		life.mu.Unlock()
		_ = life.server.Close()
		_ = listener.Close() // in case Serve has not begun
	}()
}

// wait returns when nothing is left of a life that has ended.
func (life *httpLife) wait() {
	life.served.Wait()
	life.open.Wait()
}

// enter counts a piece of work, unless the life is over.
func (life *httpLife) enter() bool {
	life.mu.Lock()
	defer life.mu.Unlock()
	if life.shut {
		return false
	}
	life.open.Add(1)
	return true
}

func (life *httpLife) connContext(ctx context.Context, c net.Conn) context.Context {
	kept := new(connection)
	life.mu.Lock()
	defer life.mu.Unlock()
	life.conns[c] = kept
	return context.WithValue(ctx, connectionKey{}, kept)
}

// connState runs the functions that wait for the end of an answer: when its last byte
// has been written, the connection becomes idle or closed.
func (life *httpLife) connState(c net.Conn, state http.ConnState) {
	if state != http.StateIdle && state != http.StateClosed {
		return
	}
	life.mu.Lock()
	var after []func()
	if kept := life.conns[c]; kept != nil {
		after, kept.after = kept.after, nil
	}
	if state == http.StateClosed {
		delete(life.conns, c)
	}
	life.mu.Unlock()
	for _, f := range after {
		if life.enter() {
			go func() {
				defer life.open.Done()
				f()
			}()
		}
	}
}

func (life *httpLife) dropConnections() {
	life.mu.Lock()
	conns := slices.Collect(maps.Keys(life.conns))
	life.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// newSession creates a session.
func (life *httpLife) newSession() string {
	id := rand.Text()
	life.mu.Lock()
	defer life.mu.Unlock()
	life.sessions[id] = make(chan struct{})
	return id
}

// session returns a channel that is closed when the session ends; nil if the session
// does not exist.
func (life *httpLife) session(id string) <-chan struct{} {
	life.mu.Lock()
	defer life.mu.Unlock()
	return life.sessions[id]
}

func (life *httpLife) endSession(id string) {
	life.mu.Lock()
	defer life.mu.Unlock()
	if end := life.sessions[id]; end != nil {
		close(end)
		delete(life.sessions, id)
	}
}

func (life *httpLife) expire() {
	life.mu.Lock()
	defer life.mu.Unlock()
	for _, end := range life.sessions {
		close(end)
	}
	clear(life.sessions)
}

// standing combines the streams that clients keep open into one link. Messages sent
// without such a stream are lost, as MCP specifies without resumption.
type standing struct{ life *httpLife }

func (s standing) each(do func(*eventStream) error) error {
	s.life.mu.Lock()
	streams := slices.Collect(maps.Keys(s.life.streams))
	s.life.mu.Unlock()
	for _, stream := range streams {
		_ = do(stream) // a stream that is gone does not affect the others
	}
	return nil
}

func (s standing) message(write writer) error {
	return s.each(func(e *eventStream) error { return e.message(write) })
}

func (s standing) answer(write writer) error { return s.message(write) }

func (s standing) raw(write writer) error {
	return s.each(func(e *eventStream) error { return e.raw(write) })
}

func (s standing) mute() {
	_ = s.each(func(e *eventStream) error { e.mute(); return nil })
}

func (s standing) cut() {
	_ = s.each(func(e *eventStream) error { e.cut(); return nil })
}

func (s standing) done() <-chan struct{} { return s.life.core.ctx.Done() }
func (s standing) after(f func())        { f() }

// headerNames lists the names of headers, in order.
func headerNames(h http.Header) string {
	return strings.Join(slices.Sorted(maps.Keys(h)), " ")
}

// refuseHTTP answers a request that violates the protocol.
func refuseHTTP(w http.ResponseWriter, status int, format string, args ...any) {
	http.Error(w, fmt.Sprintf(format, args...), status)
}
