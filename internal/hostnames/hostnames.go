// SPDX-License-Identifier: Apache-2.0

// Package hostnames checks the Host and the Origin of requests to an HTTP server.
package hostnames

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// WithoutPort returns an address without its port, and an IPv6 address without its brackets.
func WithoutPort(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// IsLoopback reports whether a name always resolves to this machine (RFC 6761, § 6.3).
func IsLoopback(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

// IsThisMachine reports whether a host is localhost or a loopback address. Secrets and plain
// HTTP may go there. Other names that [IsLoopback] accepts need a resolver, which may send
// them elsewhere.
func IsThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// Allow reports whether a server accepts requests for host, the Host of a request. hosts are
// the names of the server, with or without a port; "*" is any name. An empty hosts stands for
// the loopback names. A web page whose own name resolves to the server could send requests for
// other names (DNS rebinding).
func Allow(hosts []string, host string) bool {
	name := WithoutPort(host)
	return len(hosts) == 0 && IsLoopback(name) || slices.ContainsFunc(hosts, func(h string) bool {
		return h == "*" || strings.EqualFold(h, host) || strings.EqualFold(strings.Trim(h, "[]"), name)
	})
}

// AllowPage reports whether a server accepts a request because no web page sent it, or a page
// of the server's own host or of one of origins. The origin "*" is any page.
func AllowPage(r *http.Request, origins []string) bool {
	sent := r.Header.Values("Origin")
	return len(sent) == 0 || len(sent) == 1 && (isOriginOf(sent[0], r.Host) || slices.ContainsFunc(origins, func(o string) bool {
		return o == "*" || strings.EqualFold(o, sent[0])
	}))
}

// isOriginOf reports whether origin is the origin of a page of host: a scheme and the
// host, and nothing else (RFC 6454, section 6.2).
func isOriginOf(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && origin == u.Scheme+"://"+u.Host && strings.EqualFold(u.Host, host)
}
