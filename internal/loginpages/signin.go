// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"

	"github.com/consort-go/consort/internal/listening"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/mcpadapter/login"
	"go.uber.org/zap"
)

// signIn is a login at the issuer of clients' tokens, by which the person at a link shows who
// they are.
type signIn struct {
	redirect *login.Redirect
	browser  [sha256.Size]byte // hash of the cookie of the browser that began it
}

// signIn leads the person on to the issuer. The browser gets a cookie, so that the answer is
// accepted from this browser only: otherwise somebody could log in as themselves, and send the
// address of the answer to another person, whose login at the server would then be stored for
// them (MCP 2025-11-25, client/elicitation § Phishing).
func (p *Pages) signIn(w http.ResponseWriter, r *http.Request, a *attempt) {
	redirect, err := p.options.SignIn(r.Context(), p.base()+signInPath)
	if err != nil {
		p.log.Warn("a person could not log in at the issuer", logevent.LoginByPersonFailed, zap.String("server", a.request.Server), zap.String("client_name", a.request.Client), zap.Error(err))
		p.show(w, http.StatusBadGateway, notice{Title: "It did not work", Text: "The login at the gateway could not begin: " + err.Error()})
		return
	}
	secret := rand.Text() + rand.Text()
	a.mu.Lock()
	a.proof = &signIn{redirect, sha256.Sum256([]byte(secret))} // an earlier one is void: its state is not known any more
	a.mu.Unlock()
	p.setCookie(w, signInCookie, secret, signInPath, attemptLifetime)
	http.Redirect(w, r, redirect.URL, http.StatusSeeOther)
}

// signedIn receives the redirect of the issuer, and leads back to the link if the person is the
// one whose call needs the login.
func (p *Pages) signedIn(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	a := p.find(func(a *attempt) bool { return a.signsInWith(query) != nil })
	if a == nil {
		p.show(w, http.StatusBadRequest, notice{Title: "No such login", Text: "This page does not belong to a login that the gateway waits for."})
		return
	}
	refuse := func(status int, title, text string, err error) {
		p.log.Warn("a login at the issuer was refused", logevent.LoginByPersonFailed, zap.String("server", a.request.Server), zap.String("client_name", a.request.Client), zap.Error(err))
		p.show(w, status, notice{Title: title, Text: text})
	}
	proof := a.signsInWith(query)
	cookie, err := r.Cookie(p.cookie(signInCookie))
	if proof == nil || err != nil || sha256.Sum256([]byte(cookie.Value)) != proof.browser {
		refuse(http.StatusForbidden, "Another browser", "The login was begun in another browser, so it was not completed. If you did not begin it, close this page.",
			errors.New("the redirect came from the browser of another person"))
		return
	}
	a.mu.Lock()
	a.proof = nil // a code and a state are used once
	a.mu.Unlock()
	listening.ServeHTTP(r.Context())
	l, err := proof.redirect.Finish(r.Context(), query)
	if err != nil {
		refuse(http.StatusBadGateway, "It did not work", "The login at the gateway failed: "+err.Error()+". Open the link again to try once more.", err)
		return
	}
	switch identity, err := p.identityOfToken(r, string(l.AccessToken)); {
	case errors.Is(err, errUnchecked):
		refuse(http.StatusServiceUnavailable, "It did not work", "The gateway cannot check the token that you got at the moment. Open the link again to try once more.", err)
	case err != nil:
		refuse(http.StatusForbidden, "Refused", "The gateway does not accept the token that you got: clients of this gateway may need other rights.",
			errors.New("the gateway does not accept the token that the person got"))
	case identity != a.request.Identity:
		refuse(http.StatusForbidden, "Refused", "This account is not the one whose call needs the login: if you did not make that call, close this page.",
			errors.New("another person opened the link"))
	default:
		p.remember(w, identity)
		http.Redirect(w, r, p.base()+Path+a.id, http.StatusSeeOther)
	}
}

// signsInWith returns the login at the issuer that a redirect belongs to, or nil.
func (a *attempt) signsInWith(query url.Values) *signIn {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.proof == nil || !a.proof.redirect.IsFor(query) {
		return nil
	}
	return a.proof
}
