// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	maxSessions = 1000
	maxOwn      = 20                 // of one person
	maxIdle     = 12 * time.Hour     // without a request
	maxAge      = 7 * 24 * time.Hour // since the login
)

// cookieName is the name of the cookie with the ID of a session. Over TLS it has a prefix, with
// which a browser takes it from this host only (RFC 6265bis, § 4.1.3.2): otherwise another host of
// the domain could plant the cookie of its own login.
const cookieName, hostPrefix = "consort_console", "__Host-"

// formField is the field of each form with the token of its session.
const formField = "form_token"

// session is a login of a person. Only the hash of its ID is stored.
type session struct {
	owner     string // the person, or the token of one without a name
	token     string // sent as the header Authorization with each request; empty for none
	operates  bool   // began with a link, which only the operator of the process has
	isSecure  bool   // began over TLS
	key       digest // of the ID
	form      string // proves that a form belongs to this session
	began     time.Time
	seen      time.Time // guarded by sessions.mu
	flash     string    // a text for the next page; guarded by sessions.mu
	flashFail bool
	forms     []*sentForm          // the newest; guarded by sessions.mu
	read      map[string]time.Time // conversations of others, and when; guarded by sessions.mu
}

// isForm reports whether a form has the token of the session.
func (s *session) isForm(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.form)) == 1
}

type digest = [sha256.Size]byte

// sessions are the logins and the unused links. All methods may be called concurrently.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	open  map[digest]*session
	links map[digest]*link
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, open: map[digest]*session{}, links: map[digest]*link{}}
}

// begin begins a session of a person for a request and returns its ID, which is always a new one.
// If there are too many sessions, the one that was used least recently ends: first of the same
// person, who does not end the sessions of others.
func (s *sessions) begin(r *http.Request, who *Caller, token string, operates bool) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, owner := s.now(), cmp.Or(who.Identity, who.Name, token)
	for key, old := range s.open {
		if isOver(old, now) {
			delete(s.open, key)
		}
	}
	s.leave(maxOwn-1, func(one *session) bool { return one.owner == owner })
	s.leave(maxSessions-1, func(*session) bool { return true })
	id = rand.Text()
	key := sha256.Sum256([]byte(id))
	s.open[key] = &session{owner: owner, token: token, operates: operates, isSecure: isSecure(r), key: key, form: rand.Text(), began: now, seen: now}
	return id
}

// leave ends sessions that match, the ones that were used least recently, until at most n are open.
// The caller must hold s.mu.
func (s *sessions) leave(n int, match func(*session) bool) {
	var all []*session
	for _, one := range s.open {
		if match(one) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return a.seen.Compare(b.seen) })
	for _, one := range all[:max(0, len(all)-n)] {
		delete(s.open, one.key)
	}
}

func isOver(s *session, now time.Time) bool {
	return now.Sub(s.seen) > maxIdle || now.Sub(s.began) > maxAge
}

// find returns the session of a request, or nil. A cookie that only this host can have set comes
// first. Over plain HTTP it may be a leftover: browsers send it to a server on the same machine too.
// If only the header Origin says that there is TLS, the other cookie counts for a session that began
// with a link: if a proxy does not say that it ended TLS, the request for the link looks like plain
// HTTP. Another host cannot plant such a session, because only the operator has the link.
func (s *sessions) find(r *http.Request) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.named(r, hostPrefix+cookieName, true)
	if found == nil && !cameOverTLS(r) {
		if found = s.named(r, cookieName, false); found != nil && isSecure(r) && !found.operates {
			found = nil
		}
	}
	if found != nil {
		found.seen = s.now()
	}
	return found
}

// named returns the session of a cookie of a request, or nil; isSecure says how it must have begun.
// The caller must hold s.mu.
func (s *sessions) named(r *http.Request, cookie string, isSecure bool) *session {
	sent, err := r.Cookie(cookie)
	if err != nil {
		return nil
	}
	found := s.open[sha256.Sum256([]byte(sent.Value))]
	switch {
	case found == nil || found.isSecure != isSecure:
		return nil
	case isOver(found, s.now()):
		delete(s.open, found.key)
		return nil
	}
	return found
}

// isOpen reports whether a session has not ended. It does not count as a use.
func (s *sessions) isOpen(one *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[one.key] == one && s.now().Sub(one.began) <= maxAge
}

// end ends the session of a request, if it has one.
func (s *sessions) end(r *http.Request) {
	if found := s.find(r); found != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, found.key)
	}
}

// setFlash stores a text for the next page of the session.
func (s *sessions) setFlash(to *session, text string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.flash, to.flashFail = text, failed
}

// takeFlash returns that text, once.
func (s *sessions) takeFlash(from *session) (text string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, failed = from.flash, from.flashFail
	from.flash = ""
	return text, failed
}

// cameOverTLS reports whether a request came over TLS, which a proxy may have ended that says so.
func cameOverTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// isSecure reports whether a request came to this host over TLS, also from a proxy that does not say so: browsers
// send the origin with each form.
func isSecure(r *http.Request) bool {
	return cameOverTLS(r) || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// setCookie sends the ID of a session; an empty one removes the cookie.
func setCookie(w http.ResponseWriter, r *http.Request, id string) {
	cookie := &http.Cookie{Name: cookieName, Value: id, Path: Prefix, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isSecure(r)}
	if cookie.Secure {
		cookie.Name, cookie.Path = hostPrefix+cookieName, "/" // as the prefix wants
	}
	if id == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}
