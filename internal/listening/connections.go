// SPDX-License-Identifier: Apache-2.0

package listening

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/consort-go/consort/internal/access"
)

// The default limits of a listener. [DefaultConnections] is lower in a process that may
// open fewer than twice as many files.
const (
	defaultConnections           = 4096
	DefaultConnectionsPerAddress = 1024
)

// DefaultConnections returns how many connections a listener holds by default:
// 4096, but at most half of the files that this process may open.
func DefaultConnections() int {
	return int(min(defaultConnections, max(1, openFiles()/2)))
}

// Limits are the limits of a listener. Zero values mean the defaults.
type Limits struct {
	// Connections is how many connections may be open at once, and PerAddress how many
	// of one IP address (for IPv6, of one /64). Sockets without an IP address, such as
	// Unix sockets, are subject only to the first limit.
	Connections, PerAddress int
	// Full is called when the listener closed connections because of a limit, with
	// their number since the last call and the address of the latest. It is called at
	// most once in ten seconds, one call at a time; it must not block. May be nil.
	Full func(closed int, address string)
}

// fullEvery is the minimum time between two calls of Limits.Full.
const fullEvery = 10 * time.Second

// Listener is a [net.Listener] with limits. At a limit, it closes the connection that
// has been without a request for longest to make room for the new one: at the limit of
// an address, a connection of that address, and at the limit of all connections, one of
// the address with the most such connections. If each of these serves a request, the
// new connection is closed.
type Listener struct {
	inner  net.Listener
	limits Limits

	mu        sync.Mutex
	open      int
	waiting   Queue[*connection] // connections that serve no request, by address
	addresses map[string]int     // number of open connections of each
	closed    Closed
}

// Closed counts values closed because of a limit, for reports at most once in ten
// seconds. It is not safe for concurrent use.
type Closed struct {
	n    int // since the last report
	told time.Time
}

// Add counts one more. If a report is due, it returns the count since the last report,
// and otherwise 0.
func (c *Closed) Add() (report int) {
	if c.n++; time.Since(c.told) < fullEvery {
		return 0
	}
	report = c.n
	c.n, c.told = 0, time.Now()
	return report
}

// Limit returns a listener that accepts the connections of inner within limits.
func Limit(inner net.Listener, limits Limits) *Listener {
	if limits.Connections <= 0 {
		limits.Connections = DefaultConnections()
	}
	if limits.PerAddress <= 0 {
		limits.PerAddress = DefaultConnectionsPerAddress
	}
	return &Listener{inner: inner, limits: limits, addresses: make(map[string]int)}
}

// Accept implements [net.Listener]. If the process cannot open another file, it closes
// a connection that serves no request and tries again.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.inner.Accept()
		if err == nil {
			if c := l.add(accepted); c != nil {
				return c, nil
			}
			continue
		}
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) || !l.makeRoom() {
			return nil, err
		}
	}
}

// Close implements [net.Listener].
func (l *Listener) Close() error { return l.inner.Close() }

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// add returns the connection, or nil if it was closed because of a limit.
func (l *Listener) add(accepted net.Conn) *connection {
	c := &connection{Conn: accepted, listener: l, address: addressOf(accepted)}
	l.mu.Lock()
	var victim *connection
	isFull := true
	switch {
	case c.address != "" && l.addresses[c.address] >= l.limits.PerAddress:
		victim, _ = l.waiting.Next(c.address)
	case l.open >= l.limits.Connections:
		victim, _ = l.waiting.Next()
	default:
		isFull = false
	}
	if victim != nil {
		victim.remove()
	}
	isAdded := !isFull || victim != nil
	if isAdded {
		l.open++
		l.addresses[c.address]++
		c.wait()
	}
	report := func() {}
	if isFull {
		report = l.countClosed(c.address)
	}
	l.mu.Unlock()
	report()
	if victim != nil {
		_ = victim.Conn.Close()
	}
	if !isAdded {
		_ = accepted.Close()
		return nil
	}
	return c
}

// makeRoom closes the connection that has waited longest, of the address with the most
// waiting connections. It returns false if none waits.
func (l *Listener) makeRoom() bool {
	l.mu.Lock()
	victim, ok := l.waiting.Next()
	if !ok {
		l.mu.Unlock()
		return false
	}
	victim.remove()
	report := l.countClosed(victim.address)
	l.mu.Unlock()
	report()
	_ = victim.Conn.Close()
	return true
}

// CloseWaiting closes the connections that serve no request.
func (l *Listener) CloseWaiting() {
	l.mu.Lock()
	var victims []*connection
	for c, ok := l.waiting.Next(); ok; c, ok = l.waiting.Next() {
		c.remove()
		victims = append(victims, c)
	}
	l.mu.Unlock()
	for _, c := range victims {
		_ = c.Conn.Close()
	}
}

// countClosed counts a connection that is closed because of a limit. If a report is
// due, the returned function calls Limits.Full. The caller must hold l.mu.
func (l *Listener) countClosed(address string) (report func()) {
	closed := l.closed.Add()
	if closed == 0 || l.limits.Full == nil {
		return func() {}
	}
	return func() { l.limits.Full(closed, address) }
}

// addressOf returns the key for the limit per address; empty if that limit does not
// apply.
func addressOf(c net.Conn) string {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return access.Address(tcp.String())
	}
	return ""
}
