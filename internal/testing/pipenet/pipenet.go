// SPDX-License-Identifier: Apache-2.0

// Package pipenet is a network without sockets, for tests in a bubble of synctest, where time
// passes only while all goroutines wait.
package pipenet

import (
	"context"
	"net"
	"sync"
)

// Listener accepts the connections of Dial, which are pipes.
type Listener struct {
	dialled chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Listen returns a listener. A test must call it within its bubble.
func Listen() *Listener {
	return &Listener{dialled: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the listener, whatever the address is.
func (l *Listener) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.dialled <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialled:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (*Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6loopback, Port: 80} }
