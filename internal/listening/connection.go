// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"context"
	"net"
)

// connection is a connection of a [Listener].
type connection struct {
	net.Conn
	listener *Listener
	address  string // whose bound it counts against; may be empty

	// The rest is guarded by listener.mu.
	isClosed bool
	requests int    // that are being served
	waits    *Place // among those that wait; nil while requests are served
}

// wait puts c at the end of those that wait. listener.mu is held.
func (c *connection) wait() { c.waits = c.listener.waiting.Add(c, c.address) }

// leave takes c out of those that wait. listener.mu is held.
func (c *connection) leave() {
	if c.waits != nil {
		c.waits.Remove()
		c.waits = nil
	}
}

// remove counts c no more. listener.mu is held.
func (c *connection) remove() {
	if c.isClosed {
		return
	}
	c.isClosed = true
	l := c.listener
	c.leave()
	l.open--
	if l.addresses[c.address]--; l.addresses[c.address] == 0 {
		delete(l.addresses, c.address)
	}
}

// begin notes that a request is served.
func (c *connection) begin() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.requests++; !c.isClosed {
		c.leave()
	}
}

// end notes that a request was served.
func (c *connection) end() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.requests--; c.requests == 0 && !c.isClosed {
		c.wait()
	}
}

// idle notes that no request is served.
func (c *connection) idle() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.requests > 0 && !c.isClosed {
		c.wait()
	}
	c.requests = 0
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.listener.mu.Lock()
	c.remove()
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite is for net/http, which lets a client read its answer to the end.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// RemoteAddr implements [net.Conn]. [ServeRequest] finds the connection by it.
func (c *connection) RemoteAddr() net.Addr { return &remote{Addr: c.Conn.RemoteAddr(), of: c} }

// remote is the address of a client, and its connection.
type remote struct {
	net.Addr
	of *connection
}

// ServeRequest notes that the connection of a client serves a request, and so
// makes room for no other, until end is called. The address is what
// [net.Conn.RemoteAddr] returned; others do nothing.
func ServeRequest(from net.Addr) (end func()) {
	if r, ok := from.(*remote); ok {
		r.of.begin()
		return r.of.end
	}
	return func() {}
}

type connectionKey struct{}

// ServeHTTP does the same for an HTTP request of a [Server], by its context. It
// ends when the answer has left.
func ServeHTTP(request context.Context) {
	if c, ok := request.Value(connectionKey{}).(*connection); ok {
		c.begin()
	}
}
