// SPDX-License-Identifier: Apache-2.0

package authserver

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Network is a round tripper without a network: it passes requests to the handler of
// their host. It works in the bubbles of testing/synctest.
type Network map[string]http.Handler

// RoundTrip implements [http.RoundTripper].
func (n Network) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	handler := n[r.URL.Host]
	if handler == nil {
		return nil, errors.New("connection refused")
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	response := w.Result()
	response.Request = r
	return response, nil
}

// Redirect opens an address of the server like the browser of a person who agrees, and
// returns where the server redirects to.
func Redirect(t testing.TB, network http.RoundTripper, address string) *url.URL {
	t.Helper()
	client := &http.Client{Transport: network, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Get(address)
	if err != nil {
		t.Error(err)
		return &url.URL{}
	}
	response.Body.Close()
	to, err := response.Location()
	if err != nil {
		t.Errorf("the authorization server refuses the request: %s", response.Status)
		return &url.URL{}
	}
	return to
}

// Start starts a server, and on the same address the resource at /mcp that it guards,
// until the test ends. It returns the address of the resource.
func Start(t testing.TB, b Behaviour, inner http.Handler) (s *Server, resource string) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	origin := "http://" + web.Listener.Addr().String()
	s = New(origin, b)
	guard := s.Guard(origin+"/mcp", inner)
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" || strings.Contains(r.URL.Path, "protected-resource") {
			guard.ServeHTTP(w, r)
			return
		}
		s.ServeHTTP(w, r)
	})
	web.Start()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return s, origin + "/mcp"
}
