// SPDX-License-Identifier: Apache-2.0

package servetoken_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/internal/servetoken"
	"github.com/consort-go/consort/mcpadapter/server"
)

// A server whose configuration has the lines accepts the token, until it expires.
func TestNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, err := servetoken.New(`ada's "laptop" <1>`, "90d")
		if err != nil {
			t.Fatal(err)
		}
		lines := token.TOML()
		if strings.Contains(lines, token.Token) || len(token.Token) < 40 {
			t.Errorf("%s, %s", token.Token, lines)
		}
		cfg, err := config.Parse("consort.toml", []byte("[serve]\nhttp = \"127.0.0.1:0\"\n"+lines), nil)
		if err != nil {
			t.Fatal(err)
		}
		assembly, err := config.Assemble(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer assembly.Close(t.Context())
		srv := server.New(assembly.Roster, assembly.Serve)
		defer srv.Close(t.Context())
		status := func(sent string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0",`+
				`"id":1,"method":"ping"}`))
			r.Header.Set("Authorization", "Bearer "+sent)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			w := httptest.NewRecorder()
			srv.Handler().ServeHTTP(w, r)
			return w.Code
		}
		if got := status(token.Token); got != http.StatusOK {
			t.Errorf("the token: status %d", got)
		}
		for _, other := range []string{token.Hash, strings.TrimPrefix(token.Hash, "sha256:"), token.Token + "x", token.Token[:len(token.Token)-1]} {
			if got := status(other); got != http.StatusUnauthorized {
				t.Errorf("%s: status %d", other, got)
			}
		}
		time.Sleep(90 * 24 * time.Hour)
		if got := status(token.Token); got != http.StatusOK {
			t.Errorf("on the last day: status %d", got)
		}
		time.Sleep(24 * time.Hour)
		if got := status(token.Token); got != http.StatusUnauthorized {
			t.Errorf("after the last day: status %d", got)
		}
	})
}

func TestBadArguments(t *testing.T) {
	for _, expires := range []string{"0d", "-1d", "d", "1.5d", "99999d", "90", "tomorrow", "2027-02-30", "2001-01-01"} {
		if token, err := servetoken.New("ada", expires); err == nil {
			t.Errorf("%q: %+v", expires, token)
		}
	}
	for _, name := range []string{"", " ", "a\nb"} {
		if _, err := servetoken.New(name, ""); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	ever, err := servetoken.New("ada", "")
	if err != nil || strings.Contains(ever.TOML(), "expires") {
		t.Errorf("%+v, %v", ever, err)
	}
}
