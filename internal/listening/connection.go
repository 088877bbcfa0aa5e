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
	address  string // counts against the limit of this address; may be empty

	// The rest is guarded by listener.mu.
	isClosed bool
	requests int    // requests being served
	waits    *Place // place in the listener's queue; nil while requests are served
}

// wait adds c to the end of the waiting connections. The caller must hold listener.mu.
func (c *connection) wait() { c.waits = c.listener.waiting.Add(c, c.address) }

// leave removes c from the waiting connections. The caller must hold listener.mu.
func (c *connection) leave() {
	if c.waits != nil {
		c.waits.Remove()
		c.waits = nil
	}
}

// remove stops counting c. The caller must hold listener.mu.
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

// begin records that c began serving a request.
func (c *connection) begin() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.requests++; !c.isClosed {
		c.leave()
	}
}

// end records that c has served a request.
func (c *connection) end() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.requests--; c.requests == 0 && !c.isClosed {
		c.wait()
	}
}

// idle records that c serves no request.
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

// CloseWrite is for net/http, which uses it to let a client read the whole response.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// RemoteAddr implements [net.Conn]. [ServeRequest] finds the connection by it.
func (c *connection) RemoteAddr() net.Addr { return &remote{Addr: c.Conn.RemoteAddr(), of: c} }

// remote is the address of a client, with its connection.
type remote struct {
	net.Addr
	of *connection
}

// ServeRequest records that the connection of a client serves a request, so that it is
// not closed to make room for others until end is called. from must be the result of
// [net.Conn.RemoteAddr]; other addresses have no effect.
func ServeRequest(from net.Addr) (end func()) {
	if r, ok := from.(*remote); ok {
		r.of.begin()
		return r.of.end
	}
	return func() {}
}

type connectionKey struct{}

// ServeHTTP does the same for an HTTP request of a [Server], given its context. The end
// is recorded when the response has been sent.
func ServeHTTP(request context.Context) {
	if c, ok := request.Value(connectionKey{}).(*connection); ok && c != nil {
		c.begin()
	}
}
