// SPDX-License-Identifier: Apache-2.0

package grpctooltest

import (
	"crypto/tls"
	"net"
	"sync"
)

// listener accepts the connections of clients, and passes each one to gRPC that no
// fault has ended.
type listener struct {
	net.Listener
	server  *Server
	ready   chan net.Conn
	closing sync.Once
	closed  chan struct{}
	apart   sync.WaitGroup // accept loop, and connections not passed to gRPC
}

func (s *Server) listen(inner net.Listener) *listener {
	l := &listener{Listener: inner, server: s, ready: make(chan net.Conn), closed: make(chan struct{})}
	l.apart.Go(l.accept)
	return l
}

func (l *listener) accept() {
	for {
		socket, err := l.Listener.Accept()
		if err != nil {
			return
		}
		w := &wire{Conn: socket, socket: socket, server: l.server, closed: make(chan struct{})}
		l.server.remember(w)
		rules := l.server.script.at("connect", "")
		l.apart.Go(func() { l.admit(w, rules) })
	}
}

// admit passes a connection to gRPC unless one of its faults ends it.
func (l *listener) admit(w *wire, rules []Rule) {
	if l.isClosed() { // DropConnections may have run before it was added
		_ = w.Close()
		return
	}
	for _, r := range rules {
		kind, _ := findKind(r.Fault)
		if !kind.connect(w, r) {
			_ = w.Close()
			return
		}
	}
	if made := l.server.certificates; made != nil {
		w.Conn = tls.Server(w.socket, made.config(w.bad))
	}
	select {
	case l.ready <- w:
	case <-l.closed:
		_ = w.Close()
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case w := <-l.ready:
		return w, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (l *listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

func (s *Server) remember(w *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wires[w] = true
}

func (s *Server) forget(w *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wires, w)
}
