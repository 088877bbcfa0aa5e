// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// remembered gives a browser a cookie for an identity, and returns a function that reports whether the
// cookie still proves the identity.
func remembered(p *Pages, identity string) (isKnown func() bool) {
	w := httptest.NewRecorder()
	p.remember(w, identity)
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/login/x", nil)
	r.AddCookie(w.Result().Cookies()[0])
	return func() bool { return p.identityOf(r) == identity }
}

// TestProofsOfOneIdentity: one client does not end the logins of others. Of its own, the newest stay.
func TestProofsOfOneIdentity(t *testing.T) {
	p := New(&Options{Base: func() string { return "http://127.0.0.1:8080" }})
	ben, first := remembered(p, "ben"), remembered(p, "ann")
	last := first
	for range 20_000 {
		last = remembered(p, "ann")
	}
	if !ben() {
		t.Error("the logins of one client ended that of another")
	}
	if first() || !last() || len(p.sessions) != 1+maxOwn {
		t.Errorf("the first login of a client is kept: %v; the last: %v; %d in all", first(), last(), len(p.sessions))
	}
}

// TestProofsOfAllIdentities: beyond the bound for all, the oldest proof is dropped.
func TestProofsOfAllIdentities(t *testing.T) {
	p := New(&Options{Base: func() string { return "http://127.0.0.1:8080" }})
	first := remembered(p, "first")
	for i := range maxSessions - 1 {
		identity := strconv.Itoa(i)
		p.sessions[sha256.Sum256([]byte(identity))] = session{identity, time.Now().Add(sessionLifetime)}
	}
	if !first() {
		t.Fatal("a proof was dropped before the bound")
	}
	second := remembered(p, "second")
	if first() || !second() || len(p.sessions) != maxSessions {
		t.Errorf("the oldest proof is kept: %v; the newest: %v; %d in all", first(), second(), len(p.sessions))
	}
}
