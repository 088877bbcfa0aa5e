// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/authserver"
)

// People with tokens of an issuer see what the rules about them allow, over HTTP and gRPC.
func TestServeOIDC(t *testing.T) {
	t.Parallel()
	key := authserver.NewKey(t, "k1")
	issuer := authserver.NewIssuer("", key)
	web := httptest.NewServer(issuer)
	t.Cleanup(web.Close)
	issuer.URL = web.URL
	const audience = "https://tools.example/mcp"
	table, _ := library(t, "")
	path := file(t, table, `
[serve]
http = "127.0.0.1:0"
grpc = "127.0.0.1:0"
watch = false
[serve.oidc]
issuer = "`+web.URL+`"
audience = "`+audience+`"
name = "email"
trusted = {roles = "/realm_access/roles"}
[[serve.rules]]
action = "deny"
when = 'not ("ops" in trusted.roles)'
tools = ["leak"]
[[serve.rules]]
action = "deny"
clients = ["*@guests.example"]
tools = ["wait"]
`)
	explained := consort(
		t, "serve", "--config", path, "--explain", "ben@example.com", "library__leak", "--trusted", `{"roles": ["dev"]}`,
	).expect(t, exit.Done).stdout
	if !strings.Contains(explained, "may not use the tool leak of library: serve.rules[0] (") {
		t.Error(explained)
	}
	contains(t, "no JSON", consort(t, "serve", "--config", path, "--explain", "x", "y", "--trusted", "roles").expect(t, exit.Usage).stderr, "--trusted")
	contains(t, "alone", consort(t, "serve", "--config", path, "--trusted", "{}").expect(t, exit.Usage).stderr, "--explain")
	s := serve(t, true, "--config", path)
	token := func(email, role string) string {
		return key.Sign(issuer.Claims(audience, map[string]any{"sub": email, "email": email, "realm_access": map[string]any{"roles": []string{role}}}), nil)
	}
	for _, c := range []struct {
		email, role   string
		hidden, shown []string
	}{
		{"ada@example.com", "ops", nil, []string{"library__leak", "library__wait"}},
		{"ben@example.com", "dev", []string{"library__leak"}, []string{"library__wait"}},
		{"eve@guests.example", "dev", []string{"library__leak", "library__wait"}, nil},
	} {
		for transport, names := range map[string][]string{
			"http":          toolNames(t, s.connect(token(c.email, c.role))),
			"mcp over grpc": toolNames(t, s.connectGRPC(token(c.email, c.role))), "grpc": s.namesGRPC(token(c.email, c.role)),
		} {
			for _, name := range c.hidden {
				if slices.Contains(names, name) {
					t.Errorf("%s over %s sees %s", c.email, transport, name)
				}
			}
			for _, name := range c.shown {
				if !slices.Contains(names, name) {
					t.Errorf("%s over %s does not see %s: %q", c.email, transport, name, names)
				}
			}
		}
	}
}

// People whose tokens lack the claim that identifies users have no conversations: they would share them.
func TestConversationsWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	key := authserver.NewKey(t, "k1")
	issuer := authserver.NewIssuer("", key)
	web := httptest.NewServer(issuer)
	t.Cleanup(web.Close)
	issuer.URL = web.URL
	s := serve(t, true, "--config", file(t, model(t, says("Good morning.")), historyTable, `
[conversation]
identity = ["user"]
[serve]
http = "127.0.0.1:0"
converse = true
watch = false
[serve.oidc]
issuer = "`+web.URL+`"
audience = "https://tools.example/mcp"
trusted = {user = "/email"}
`))
	for _, person := range []string{"ada", "ben"} {
		token := key.Sign(issuer.Claims("https://tools.example/mcp", map[string]any{"sub": person}), nil)
		for _, request := range [][2]string{{"POST", `{"message":"Hello?"}`}, {"GET", ""}} {
			status, text := s.asks("", request[0], "/api/conversations", request[1], "Authorization", "Bearer "+token)
			if status != http.StatusForbidden || !strings.Contains(text, "conversation.identity") {
				t.Errorf("%s %s: %d %s", person, request[0], status, text)
			}
		}
		if h, failure := s.says(token, "Hello?", ""); !strings.Contains(failure, "conversation.identity") {
			t.Errorf("%s: %+v, %s", person, h, failure)
		}
	}
	token := key.Sign(issuer.Claims("https://tools.example/mcp", map[string]any{"sub": "eve", "email": "eve@example.com"}), nil)
	if h, failure := s.says(token, "Hello?", ""); h.Answer != "Good morning." {
		t.Errorf("eve: %+v, %s", h, failure)
	}
}

// The conversations of people with tokens of an issuer belong to them, over the HTTP API too.
func TestConversationsOfOIDC(t *testing.T) {
	t.Parallel()
	key := authserver.NewKey(t, "k1")
	issuer := authserver.NewIssuer("", key)
	web := httptest.NewServer(issuer)
	t.Cleanup(web.Close)
	issuer.URL = web.URL
	const audience = "https://tools.example/mcp"
	path := file(t, model(t, says("Good morning."), says("Good evening.")), historyTable, `
[serve]
http = "127.0.0.1:0"
converse = true
watch = false
[serve.oidc]
issuer = "`+web.URL+`"
audience = "`+audience+`"
name = "email"
trusted = {user = "/email"}
`)
	s := serve(t, true, "--config", path)
	asks := func(email, method, path, body string) (int, string) {
		token := key.Sign(issuer.Claims(audience, map[string]any{"sub": email, "email": email}), nil)
		return s.asks("", method, path, body, "Authorization", "Bearer "+token)
	}
	status, text := asks("ada@example.com", "POST", "/api/conversations", `{"message":"Hello?"}`)
	var created struct{ ID string }
	if err := json.Unmarshal([]byte(text), &created); status != http.StatusCreated || err != nil {
		t.Fatalf("%d %s", status, text)
	}
	for email, want := range map[string]int{"ada@example.com": http.StatusOK, "ben@example.com": http.StatusNotFound} {
		if status, text := asks(email, "GET", "/api/conversations/"+created.ID, ""); status != want {
			t.Errorf("%s: %d %s", email, status, text)
		}
		_, text := asks(email, "GET", "/api/conversations", "")
		if strings.Contains(text, created.ID) != (want == http.StatusOK) {
			t.Errorf("%s lists %s", email, text)
		}
	}
	if status, text := s.asks("no token", "GET", "/api/conversations", ""); status != http.StatusUnauthorized {
		t.Errorf("%d %s", status, text)
	}
	waitFor(t, "the answer", func() bool {
		_, text := asks("ada@example.com", "GET", "/api/conversations/"+created.ID+"/history", "")
		return strings.Contains(text, "Good morning.") || strings.Contains(s.stderr.String(), "engine.turn.")
	})
	if _, text := asks("ada@example.com", "GET", "/api/conversations/"+created.ID+"/history", ""); !strings.Contains(text, "Good morning.") {
		t.Fatalf("no answer: %s", text)
	}
	ada := key.Sign(issuer.Claims(audience, map[string]any{"sub": "ada@example.com", "email": "ada@example.com"}), nil)
	if h, failure := s.says(ada, "And now?", created.ID); failure != "" || h.Answer != "Good evening." {
		t.Errorf("the tool: %+v, %s", h, failure)
	}
}
