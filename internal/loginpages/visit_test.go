// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/mcpadapter/login"
)

// stage returns pages at which logins cannot
// begin, for the servers.
func stage(servers map[string]Server) *Pages {
	return New(&Options{
		Base:     func() string { return "http://127.0.0.1:8080" },
		Identity: func(ctx context.Context) (string, bool) { return access.IdentityFrom(ctx), true },
		Servers:  func() map[string]Server { return servers },
	})
}

func noBegin(context.Context, string, string) (*login.Redirect, error) {
	return nil, errors.New("no authorization server")
}

// visit opens a page for a person, and returns its path and the cookies of the browser.
func visit(t *testing.T, p *Pages, person string, v Visit) (path string, cookies []*http.Cookie) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, p.base()+"/console", nil)
	path, err := p.Open(w, r.WithContext(access.WithIdentity(r.Context(), person)), v)
	if err != nil {
		t.Fatal(err)
	}
	return path, w.Result().Cookies()
}

// sent sends a request of a browser to a page.
func sent(p *Pages, method, path string, cookies []*http.Cookie) (status int, text string) {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, p.base()+path, nil)
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	p.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestVisitsOfTwoPersons: each operator has an own page for the login of the gateway, which the
// browser of the other one does not open. A page counts with the rights of its last visit.
func TestVisitsOfTwoPersons(t *testing.T) {
	p := stage(map[string]Server{"notes": {Shared, noBegin}})
	over := func() error { return errors.New("the session is over") }
	adas, _ := visit(t, p, "ada", Visit{Server: "notes", Client: "ada", May: over})
	again, ada := visit(t, p, "ada", Visit{Server: "notes", Client: "ada"})
	bens, ben := visit(t, p, "ben", Visit{Server: "notes", Client: "ben", May: over})
	if again != adas || bens == adas {
		t.Errorf("ada: %s, then %s; ben: %s", adas, again, bens)
	}
	for _, c := range []struct {
		path, want string
		cookies    []*http.Cookie
		status     int
	}{
		{adas, "no authorization server", ada, http.StatusBadGateway}, // it has passed
		{bens, "the session is over", ben, http.StatusForbidden},
		{adas, "this token is not valid", ben, http.StatusForbidden},
	} {
		if status, text := sent(p, http.MethodPost, c.path, c.cookies); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s; want %d, %s", c.path, status, text, c.status, c.want)
		}
	}
}

// TestVisitSaysWhoseLogin: the page says whose login it is, also to the user of the program, who
// has no identity.
func TestVisitSaysWhoseLogin(t *testing.T) {
	p := stage(map[string]Server{"own": {Own, noBegin}, "shared": {Shared, noBegin}})
	for server, want := range map[string]string{"own": "Nobody else gets your login", "shared": "for all of its clients"} {
		path, cookies := visit(t, p, "", Visit{Server: server, Client: "console"})
		if status, text := sent(p, http.MethodGet, path, cookies); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s; want %s", server, status, text, want)
		}
	}
}
