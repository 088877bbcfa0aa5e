// SPDX-License-Identifier: Apache-2.0

package netguard

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// guardOf returns the guard of a server with addresses.
func guardOf(host string, addresses ...string) *Guard {
	g := New(host)
	g.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		var all []netip.Addr
		for _, a := range addresses {
			all = append(all, netip.MustParseAddr(a))
		}
		return all, nil
	}
	return g
}

// TestServerInside: a server is inside a private network if all its addresses are, and none of its
// connections has shown the contrary.
func TestServerInside(t *testing.T) {
	for text, inside := range map[string]bool{
		"10.0.0.1": true, "127.0.0.1 ::1": true, "192.168.1.1 fd00::1": true, "100.64.0.1": true, "::ffff:10.0.0.1": true,
		"93.184.216.34": false, "93.184.216.34 10.0.0.1": false, "10.0.0.1 93.184.216.34": false, "2001:4860::1 ::1": false, "": false,
	} {
		if got := guardOf("mcp.example", strings.Fields(text)...).isInside(t.Context()); got != inside {
			t.Errorf("with the addresses %q, inside is %v", text, got)
		}
	}
	g := guardOf("mcp.example", "10.0.0.1")
	g.note(&net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 443})
	if !g.isInside(t.Context()) {
		t.Error("a server that was reached inside is not inside")
	}
	g.note(&net.TCPAddr{IP: net.ParseIP("93.184.216.34"), Port: 443})
	g.note(&net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 443})
	if g.isInside(t.Context()) {
		t.Error("a server that was reached at a public address is inside, because its name service says so now")
	}
	g = guardOf("mcp.example")
	g.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, errors.New("a part of the answer is missing")
	}
	if g.isInside(t.Context()) {
		t.Error("a server without a full answer is inside")
	}
}

// TestGuard: another host in a private network is dialled only if the server is inside one.
func TestGuard(t *testing.T) {
	inner := httptest.NewServer(http.NotFoundHandler())
	defer inner.Close()
	address := inner.Listener.Addr().String()
	for text, works := range map[string]bool{"10.0.0.1": true, "93.184.216.34": false, "93.184.216.34 10.0.0.1": false} {
		conn, err := guardOf("mcp.example", strings.Fields(text)...).Dial(t.Context(), "tcp", address)
		if err == nil {
			conn.Close()
		}
		if (err == nil) != works || err != nil && !strings.Contains(err.Error(), "inside a private network") {
			t.Errorf("for a server at %q: %v", text, err)
		}
	}
	conn, err := guardOf("127.0.0.1", "93.184.216.34").Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("the server itself: %v", err)
	}
	conn.Close()
}
