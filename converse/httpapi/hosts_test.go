// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/converse/httpapi"
)

// TestHosts: a handler that identifies no caller answers only requests for names of its machine, so
// that a page whose own name resolves to it reads nothing. Others have the names that Hosts lists, or any.
func TestHosts(t *testing.T) {
	s := serve(t, echo, nil, nil)
	anyone := func(context.Context) (string, error) { return "", nil }
	for _, one := range []struct {
		name    string
		options *httpapi.Options
		host    string
		status  int
	}{
		{"no options", nil, "evil.example", http.StatusForbidden},
		{"any origin", &httpapi.Options{Origins: []string{"*"}}, "evil.example:8080", http.StatusForbidden},
		{"a name that begins like one", nil, "localhost.evil.example", http.StatusForbidden},
		{"localhost", nil, "localhost:8080", http.StatusOK},
		{"an address", nil, "127.0.0.1:8080", http.StatusOK},
		{"an IPv6 address", nil, "[::1]:8080", http.StatusOK},
		{"with owners", &httpapi.Options{Owner: anyone}, "any.example", http.StatusOK},
		{"a listed name", &httpapi.Options{Hosts: []string{"good.example"}}, "good.example:8080", http.StatusOK},
		{"another than the listed", &httpapi.Options{Hosts: []string{"good.example"}}, "localhost", http.StatusForbidden},
		{"another, with owners", &httpapi.Options{Hosts: []string{"good.example"}, Owner: anyone}, "evil.example", http.StatusForbidden},
		{"any name", &httpapi.Options{Hosts: []string{"*"}}, "any.example", http.StatusOK},
	} {
		t.Run(one.name, func(t *testing.T) {
			server := httptest.NewServer(httpapi.New(s.feed, one.options))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/api/conversations", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = one.host
			request.Header.Set("Origin", "http://"+one.host)
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != one.status {
				t.Errorf("status %d, want %d", response.StatusCode, one.status)
			}
		})
	}
}
