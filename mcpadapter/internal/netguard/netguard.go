// SPDX-License-Identifier: Apache-2.0

// Package netguard keeps the requests that an MCP server asks for out of private networks (MCP,
// security best practices § SSRF).
package netguard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const timeout = 30 * time.Second // of a connection, and between its signs of life

// Guard dials for a client of an MCP server. It refuses addresses inside a private network unless the
// server is inside one itself, and its name service must not be able to pretend that.
type Guard struct {
	host      string // of the server
	lookup    func(ctx context.Context, network, host string) ([]netip.Addr, error)
	isOutside atomic.Bool // a connection went to a public address of the server
	plain     net.Dialer
	guarded   net.Dialer
}

// New returns the guard for the server on a host.
func New(host string) *Guard {
	g := &Guard{host: host, lookup: net.DefaultResolver.LookupNetIP}
	g.plain = net.Dialer{Timeout: timeout, KeepAlive: timeout}
	g.guarded = g.plain
	g.guarded.Control = refusePrivate
	return g
}

// Dial is the DialContext function of a transport.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(address); err == nil && strings.EqualFold(host, g.host) {
		conn, err := g.plain.DialContext(ctx, network, address)
		if err == nil {
			g.note(conn.RemoteAddr())
		}
		return conn, err
	}
	if g.isInside(ctx) {
		return g.plain.DialContext(ctx, network, address)
	}
	return g.guarded.DialContext(ctx, network, address)
}

// note remembers whether a connection to the server went outside: a login begins with one.
func (g *Guard) note(remote net.Addr) {
	if a, err := netip.ParseAddrPort(remote.String()); err != nil || !isPrivate(a.Addr()) {
		g.isOutside.Store(true)
	}
}

// isInside reports whether all addresses of the server are inside a private network.
func (g *Guard) isInside(ctx context.Context) bool {
	if g.isOutside.Load() {
		return false
	}
	addresses, err := g.lookup(ctx, "ip", g.host)
	isPublic := func(a netip.Addr) bool { return !isPrivate(a) }
	return err == nil && len(addresses) > 0 && !slices.ContainsFunc(addresses, isPublic)
}

// carrierNAT is shared address space (RFC 6598), which private networks use too.
var carrierNAT = netip.MustParsePrefix("100.64.0.0/10")

func isPrivate(a netip.Addr) bool {
	a = a.Unmap()
	return !a.IsGlobalUnicast() || a.IsPrivate() || carrierNAT.Contains(a)
}

// refusePrivate is the Control function of a dialer.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err == nil && isPrivate(a.Addr()) {
		return fmt.Errorf("its address %s is inside a private network, and the server is not; to allow it, name the issuer in the configuration", a.Addr())
	}
	return err
}
