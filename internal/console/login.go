// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/consort-go/consort/internal/openstreams"
	"github.com/consort-go/consort/invoker"
)

// identified calls serve for the request of a person who is logged in. It checks the token of
// the session again, so that a token that was withdrawn opens nothing. Others get the login
// page.
func (c *Console) identified(w http.ResponseWriter, r *http.Request, serve handler) {
	s := c.sessions.find(r)
	if s == nil {
		c.toLogin(w, r)
		return
	}
	ok := c.withToken(w, r, s.token, func(w http.ResponseWriter, r *http.Request) {
		caller, ok := c.callerOf(r, s)
		if !ok {
			c.refuse(w, r, http.StatusForbidden, "You have no access to the console.")
			return
		}
		p := &person{Caller: caller, session: s, isScript: r.Header.Get("X-Consort-Script") != ""}
		openstreams.Require(r.Context(), func() error { return p.mayContinue(c, r) })
		serve(w, r, p)
	})
	if !ok {
		c.sessions.end(r)
		setCookie(w, r, "")
		c.toLogin(w, r)
	}
}

var errSessionEnded = errors.New("you are logged out, or your rights have changed")

// mayContinue returns an error if the person is logged out, or has other rights now.
func (p *person) mayContinue(c *Console, r *http.Request) error {
	if now, ok := c.callerOf(r, p.session); !ok || now != p.Caller || !c.sessions.isOpen(p.session) {
		return errSessionEnded
	}
	return nil
}

// callerOf returns the person of a session. ok is false if the person may see nothing.
func (c *Console) callerOf(r *http.Request, s *session) (caller Caller, ok bool) {
	caller, err := c.Caller(r.Context())
	if s.operates {
		caller.Role = Operate
	}
	return caller, err == nil && caller.Role != Nothing
}

// withToken calls next for a request with a bearer token. If the token is not valid it
// returns false, and has written nothing.
func (c *Console) withToken(w http.ResponseWriter, r *http.Request, token string, next http.HandlerFunc) (ok bool) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	held := &heldRefusal{ResponseWriter: w}
	c.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { held.passed = true; next(w, r) })).ServeHTTP(held, r)
	return held.passed || !held.refused
}

// heldRefusal is a response that does not send the refusal of a token (401), for which the
// console has a page.
type heldRefusal struct {
	http.ResponseWriter
	passed, refused bool
}

func (h *heldRefusal) WriteHeader(status int) {
	if h.refused = !h.passed && status == http.StatusUnauthorized; h.refused {
		for _, name := range []string{"Www-Authenticate", "Content-Length", "Connection"} {
			h.Header().Del(name)
		}
		return
	}
	h.ResponseWriter.WriteHeader(status)
}

func (h *heldRefusal) Write(p []byte) (int, error) {
	if h.refused {
		return len(p), nil
	}
	return h.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController access to the methods that this writer lacks.
func (h *heldRefusal) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// toLogin sends a person to the login page, and refuses what is not a page.
func (c *Console) toLogin(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		c.refuse(w, r, http.StatusUnauthorized, "You are not logged in.")
		return
	}
	http.Redirect(w, r, Prefix+"/login", http.StatusSeeOther)
}

func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) {
	c.showLogin(w, r, http.StatusOK, "")
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request, status int, problem string) {
	content := el("p", text("This server has no tokens. Open the link that it printed when it started, or start another console with: consort console"))
	if c.Tokens() {
		content = el("form", attr("method", "post"), action(Prefix+"/login"), class("stack"),
			el("label", attr("for", "token"), text("Token")),
			el("input", id("token"), attr("name", "token"), attr("type", "password"), attr("autocomplete", "current-password"), attr("required", ""), attr("maxlength", "16384")),
			el("p", class("faint"), text("The bearer token that the operator of this server gave you.")),
			el("button", text("Log in")))
	}
	c.write(w, r, status, &page{title: "Log in", content: group(
		el("h1", text("Log in")),
		when(problem != "", el("p", class("notice failed"), attr("role", "alert"), text(problem))),
		content)})
}

// login begins a session for a token. Its cookie has a new ID, whatever the request sent.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	token := strings.TrimSpace(r.PostFormValue("token"))
	if !c.Tokens() || token == "" || strings.ContainsAny(token, " \t\r\n") {
		c.failed.record(c, r, &person{}, invoker.Unauthorized, "This cannot be a token.")
		c.showLogin(w, r, http.StatusUnauthorized, "This is not a token of this server.")
		return
	}
	ok := c.withToken(w, r, token, func(w http.ResponseWriter, r *http.Request) {
		caller, err := c.Caller(r.Context())
		if err != nil || caller.Role == Nothing {
			c.failed.record(c, r, &person{Caller: caller}, invoker.Denied, "This token does not open the console.")
			c.showLogin(w, r, http.StatusForbidden, "This token does not open the console.")
			return
		}
		c.sessions.end(r)
		setCookie(w, r, c.sessions.begin(r, &caller, token, false))
		c.record(r, &person{Caller: caller}, "login", "", nil)
		http.Redirect(w, r, Prefix+"/", http.StatusSeeOther)
	})
	if !ok {
		c.failed.record(c, r, &person{}, invoker.Unauthorized, "This is not a token of this server, or it has expired.")
		c.showLogin(w, r, http.StatusUnauthorized, "This is not a token of this server, or it has expired.")
	}
}

func (c *Console) logout(w http.ResponseWriter, r *http.Request, p *person) {
	c.sessions.end(r)
	setCookie(w, r, "")
	c.record(r, p, "logout", "", nil)
	http.Redirect(w, r, Prefix+"/login", http.StatusSeeOther)
}
