// SPDX-License-Identifier: Apache-2.0

package dpop

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// maxNonce is the length of the longest nonce that is taken, in bytes.
const maxNonce = 1024

// maxNonces is how many servers are remembered. A client has two.
const maxNonces = 16

// Nonces are the last nonces of servers. A server may be an authorization server and a
// protected resource at once, with nonces of each kind (RFC 9449, sections 8 and 9). The zero
// value has none. Its methods may be called concurrently.
type Nonces struct {
	mu   sync.Mutex
	last map[place]string
}

// place is where a nonce is valid.
type place struct {
	origin   string
	resource bool
}

func placeOf(u *url.URL, resource bool) place {
	return place{strings.ToLower(u.Scheme + "://" + u.Host), resource}
}

// Of returns the last nonce of a server; empty if it has given none. resource is false for a
// token endpoint.
func (n *Nonces) Of(u *url.URL, resource bool) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last[placeOf(u, resource)]
}

// Learn remembers the nonce in the header of a response, if there is one that is valid (RFC 9449,
// section 8.1). It reports whether the nonce is another one than used.
func (n *Nonces) Learn(u *url.URL, resource bool, header http.Header, used string) bool {
	given := header.Values("DPoP-Nonce")
	if len(given) != 1 || !valid(given[0]) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	at := placeOf(u, resource)
	if _, known := n.last[at]; !known && len(n.last) >= maxNonces || n.last == nil {
		n.last = map[place]string{}
	}
	n.last[at] = given[0]
	return given[0] != used
}

// valid reports whether a nonce has the characters NQCHAR only (RFC 6749, appendix A) and a
// length that fits into a header.
func valid(nonce string) bool {
	return nonce != "" && len(nonce) <= maxNonce && !strings.ContainsFunc(nonce, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || c == '"' || c == '\\'
	})
}
