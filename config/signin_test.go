// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/mcptest"
)

// TestSignInLeavesNoConnections: a person who begins to sign in at the issuer of a gateway, and does
// not come back, leaves no open connection.
func TestSignInLeavesNoConnections(t *testing.T) {
	web := httptest.NewUnstartedServer(nil)
	origin := "http://" + web.Listener.Addr().String()
	s := authserver.New(origin, authserver.Behaviour{})
	s.AddClient("gateway", "http://127.0.0.1:1/login/issuer")
	var open sync.WaitGroup
	web.Config.Handler, web.Config.ConnState = s, func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		}
	}
	web.Start()
	defer web.Close()
	r, err := config.SignIn(t.Context(), "http://127.0.0.1:1/mcp", &serve.OIDC{Issuer: values.Plain(origin), ClientID: values.Plain("gateway")}, "http://127.0.0.1:1/login/issuer")
	if err != nil || r.Issuer != origin {
		t.Fatal(r, err)
	}
	none := make(chan struct{})
	go func() {
		open.Wait()
		close(none)
	}()
	mcptest.Await(t, "the end of the connections", none)
}
