// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/testing/authserver"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

func TestOIDC(t *testing.T) {
	key := authserver.NewKey(t, "k1")
	issuer := authserver.NewIssuer("", key)
	web := httptest.NewServer(issuer)
	t.Cleanup(web.Close)
	issuer.URL = web.URL
	const audience = "https://tools.example/mcp"
	text := `
[serve]
http = "0.0.0.0:0"
grpc = "127.0.0.1:0"
[serve.oidc]
issuer = "` + web.URL + `"
audience = "` + audience + `"
scopes = ["mcp"]
name = "email"
trusted = {roles = "/access/roles"}
[[serve.clients]]
name = "robot"
token = "0123456789abcdef"
[[serve.rules]]
action = "deny"
clients = ["*@guests.example"]
tools = ["write"]
`
	assemble := func(text string, before *config.Assembly) *config.Assembly {
		t.Helper()
		c, err := parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := config.Assemble(c, &config.AssembleOptions{Previous: before})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := assemble(text, nil)
	t.Cleanup(func() { first.Close(t.Context()) })
	if want := (&mcpserver.ResourceMetadata{Resource: audience, AuthorizationServers: []string{web.URL}, Scopes: []string{"mcp"}}); !reflect.DeepEqual(first.Serve.ResourceMetadata, want) {
		t.Errorf("clients are told %+v", first.Serve.ResourceMetadata)
	}
	token := func(email string) string {
		return key.Sign(issuer.Claims(audience, map[string]any{"email": email, "scope": "mcp", "access": map[string]any{"roles": []string{"ops"}}}), nil)
	}
	name, values, err := first.Serve.Authenticate(t.Context(), token("ada@example.com"), nil)
	if err != nil || name != "ada@example.com" || len(values) != 3 {
		t.Errorf("%q, %v, %v", name, values, err)
	}
	if _, _, err := first.ServeGRPC.Authenticate(t.Context(), token("ada@example.com")); err != nil {
		t.Errorf("over gRPC: %v", err)
	}
	if _, _, err := first.Serve.Authenticate(t.Context(), token("robot"), nil); err == nil || !strings.Contains(err.Error(), "another client") {
		t.Errorf("a person with the name of a client: %v", err)
	}
	write := ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "files", Name: "write"}
	for name, want := range map[string]bool{"ada@example.com": true, "eve@guests.example": false, "robot": true} {
		s := first.Serve.Select(access.WithUser(t.Context(), name))
		if got := s == nil || s.Contains(write); got != want {
			t.Errorf("%s may write: %t", name, got)
		}
	}
	second := assemble(text, first)
	if _, _, err := second.Serve.Authenticate(t.Context(), token("ada@example.com"), nil); err != nil || issuer.Count("/keys") != 1 {
		t.Errorf("after a reload: %v, and the keys were fetched %d times", err, issuer.Count("/keys"))
	}
	third := assemble(strings.Replace(text, `["mcp"]`, `["admin"]`, 1), second)
	if _, _, err := third.Serve.Authenticate(t.Context(), token("ada@example.com"), nil); err == nil {
		t.Error("after a reload with another scope, the token is still accepted")
	}
	allowed, why, err := mustParse(t, text).Explain("eve@guests.example", nil, write)
	if err != nil || allowed || !strings.Contains(why, "serve.rules[0]") {
		t.Errorf("%t, %s, %v", allowed, why, err)
	}
}

func mustParse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOIDCMistakes(t *testing.T) {
	const issuer, audience = `issuer = "https://login.example"`, `audience = "tools"`
	for text, want := range map[string]string{
		"http = '127.0.0.1:0', oidc = {" + audience + "}":                                          "serve.oidc.issuer: missing",
		"http = '127.0.0.1:0', oidc = {" + issuer + "}":                                            "serve.oidc.audience: missing",
		"http = '127.0.0.1:0', oidc = {issuer = 'http://login.example', " + audience + "}":         "serve.oidc.issuer: the issuer should begin with https://",
		"http = '127.0.0.1:0', oidc = {" + issuer + ", " + audience + ", trusted = {sub = 'sub'}}": "serve.oidc.trusted.sub: the claims iss and sub are always",
		"http = '127.0.0.1:0', open = true, oidc = {" + issuer + ", " + audience + "}":             "serve.open: a server that requires a token is not open",
		"oidc = {" + issuer + ", " + audience + "}":                                                "",
		"http = '0.0.0.0:0', oidc = {" + issuer + ", " + audience + "}":                            "",
	} {
		if _, err := parse("serve = {"+text+"}", nil); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestTokenHashes(t *testing.T) {
	const hash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" // of "test"
	client := func(text string) string { return "http = '127.0.0.1:0', clients = [{" + text + "}]" }
	for text, want := range map[string]string{
		client("token_hash = '" + hash + "'"):                                        "",
		client("token_hash = '" + hash + "', expires = '2027-01-31'"):                "",
		client("token_hash = '" + hash + "', expires = '2027-01-31T12:00:00+02:00'"): "",
		client("token_hash = '" + hash[7:] + "'"):                                    `serve.clients[0].token_hash: expected "sha256:"`,
		client("token_hash = '" + hash + "0'"):                                       "serve.clients[0].token_hash: expected",
		client("token_hash = ''"):                                                    "serve.clients[0].token_hash",
		client("token_hash = 'sha256:" + strings.Repeat("0", 64) + "'"):              "serve.clients[0].token_hash: expected",
		client("token_hash = '" + hash + "', token = '0123456789abcdef'"):            "serve.clients[0].token_hash: a client is identified by one of",
		client("token_hash = '" + hash + "', expires = '31.1.2027'"):                 "serve.clients[0].expires: expected a date",
		client("certificate = 'x', expires = '2027-01-31'"):                          "serve.clients[0].expires: only for a token",
		client("token_hash = '" + hash + "'}, {token_hash = '" + hash + "'"):         "serve.clients[1].token_hash: another client already has this token",
		client("expires = '2027-01-31'"):                                             "serve.clients[0].token: missing",
	} {
		if _, err := parse("serve = {"+text+"}", nil); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]time.Time{
		"2027-01-31":                time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC),
		"2027-01-31T12:00:00+02:00": time.Date(2027, 1, 31, 10, 0, 0, 0, time.UTC),
	} {
		c := mustParse(t, "serve = {"+client("token_hash = '"+hash+"', expires = '"+text+"'")+"}")
		if got := c.Serve.Clients[0].Expires; !got.Equal(want) {
			t.Errorf("%s is %v", text, got)
		}
	}
}
