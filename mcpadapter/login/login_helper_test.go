// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/mcpadapter/login"
)

const (
	resource = "https://mcp.example/mcp"
	issuer   = "https://auth.example"
)

// world returns an authorization server and a network with it and a server that trusts it.
func world(b authserver.Behaviour) (*authserver.Server, authserver.Network) {
	s := authserver.New(issuer, b)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	return s, authserver.Network{"auth.example": s, "mcp.example": s.Guard(resource, ok)}
}

// newClient returns a client in a network.
func newClient(t testing.TB, network http.RoundTripper, o login.Options) *login.Client {
	t.Helper()
	if o.URL == "" {
		o.URL = resource
	}
	o.HTTP = &http.Client{Transport: network}
	c, err := login.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// agree is a person who agrees in a browser.
func agree(t testing.TB, network http.RoundTripper) *login.Prompt {
	return browse(t, network, func(to *url.URL) { visit(t, to.String()) })
}

// browse is a person who agrees; then redirected is called instead of the browser.
func browse(t testing.TB, network http.RoundTripper, redirected func(to *url.URL)) *login.Prompt {
	return &login.Prompt{Visit: func(_ context.Context, address string) error {
		redirected(authserver.Redirect(t, network, address))
		return nil
	}}
}

// browser opens addresses of this machine. Where nobody answers, a test fails at its deadline.
var browser = &http.Client{Timeout: time.Minute}

// visit opens an address of this machine and returns the status.
func visit(t testing.TB, address string) int {
	t.Helper()
	response, err := browser.Get(address)
	if err != nil {
		t.Error(err)
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// loggedIn lets a person log in.
func loggedIn(t testing.TB, c *login.Client, network http.RoundTripper) *login.Login {
	t.Helper()
	l, err := c.Login(within(t), agree(t, network))
	if err != nil {
		t.Fatal(err)
	}
	return l
}
