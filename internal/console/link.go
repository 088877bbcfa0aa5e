// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/consort-go/consort/invoker"
)

// linkLife is how long a link can be used.
const linkLife = 24 * time.Hour

// link is a link that logs its user in, once.
type link struct {
	token string
	ends  time.Time
}

// Link returns a path, with a query, that logs its first visitor in as an operator, within
// a day. token is the token that the requests of the session are made with; empty if
// the server asks for none.
func (c *Console) Link(token string) string {
	s := c.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	code := rand.Text()
	s.links[sha256.Sum256([]byte(code))] = &link{token, s.now().Add(linkLife)}
	return Prefix + "/link?code=" + code
}

// redeem returns the token of a link, which works once.
func (s *sessions) redeem(code string) (token string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(code))
	found := s.links[key]
	delete(s.links, key)
	if found == nil || s.now().After(found.ends) {
		return "", false
	}
	return found.token, true
}

// followLink begins a session for a link. It answers with a page, because a browser that came
// from elsewhere would not send the cookie with a redirect (SameSite=Strict).
func (c *Console) followLink(w http.ResponseWriter, r *http.Request) {
	token, ok := c.sessions.redeem(r.URL.Query().Get("code"))
	if !ok {
		c.failed.record(c, r, &person{}, invoker.Unauthorized, "The link was used already, or has expired.")
		c.showLogin(w, r, http.StatusForbidden, "This link was used already, or has expired.")
		return
	}
	known := c.withToken(w, r, token, func(w http.ResponseWriter, r *http.Request) {
		caller, err := c.Caller(r.Context())
		if err != nil {
			c.showLogin(w, r, http.StatusForbidden, "This link does not open the console.")
			return
		}
		c.sessions.end(r)
		setCookie(w, r, c.sessions.begin(r, &caller, token, true))
		c.record(r, &person{Caller: caller}, "login", "", nil, "with", "link")
		w.Header().Set("Referrer-Policy", "no-referrer")
		c.write(w, r, http.StatusOK, &page{title: "Logged in", forward: Prefix + "/", content: group(
			el("h1", text("You are logged in")),
			el("p", el("a", href(Prefix+"/"), text("Go to the console"))))})
	})
	if !known {
		c.failed.record(c, r, &person{}, invoker.Unauthorized, "The token of the link is not valid any longer.")
		c.showLogin(w, r, http.StatusForbidden, "The token of this link is not valid any longer.")
	}
}
