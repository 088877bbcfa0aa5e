// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/mcpadapter/login"
)

func TestLogin(t *testing.T) {
	s, network := world(authserver.Behaviour{})
	store := login.NewMemory()
	c := newClient(t, network, login.Options{Store: store})
	if _, err := c.Token(within(t)); !errors.Is(err, ensemble.ErrNeedsLogin) {
		t.Fatalf("without a login: %v", err)
	}
	l := loggedIn(t, c, network)
	if l.Issuer != issuer || l.Resource != resource || l.Audience != resource {
		t.Errorf("the login is for %+v", l.Key)
	}
	token, err := c.Token(within(t))
	if err != nil || !s.Accepts(token, resource) {
		t.Errorf("the token is not accepted: %v", err)
	}
	form := s.Forms()[0]
	if form.Get("resource") != resource || len(form.Get("code_verifier")) < 43 {
		t.Errorf("the token was requested with %v", form)
	}
	again := newClient(t, network, login.Options{Store: store}) // as after a restart
	if found, err := again.Token(within(t)); err != nil || found != token {
		t.Errorf("after a restart: %v", err)
	}
	if n := s.Count("/authorize"); n != 1 {
		t.Errorf("the person was asked %d times", n)
	}
	if text := fmt.Sprintf("%v %+v %#v %q", l, l, *l, *l); strings.Contains(text, token) {
		t.Errorf("printing shows the token: %s", text)
	}
	if text := c.Redact("it is " + token); strings.Contains(text, token) {
		t.Error("the token is not redacted")
	}
}

// TestOddServers logs in at servers that differ from a correct one.
func TestOddServers(t *testing.T) {
	for name, test := range map[string]struct {
		behaviour authserver.Behaviour
		options   login.Options
		fails     string // a part of the error; empty if the login works
	}{
		"OpenID discovery only":      {behaviour: authserver.Behaviour{OpenIDOnly: true}},
		"no metadata":                {behaviour: authserver.Behaviour{NoMetadata: true}, fails: "no metadata"},
		"another issuer":             {behaviour: authserver.Behaviour{MetadataIssuer: "https://evil.example"}, fails: "another issuer"},
		"issuer with a slash":        {behaviour: authserver.Behaviour{MetadataIssuer: issuer + "/", NoIssSupport: true}},
		"no PKCE":                    {behaviour: authserver.Behaviour{Challenges: []string{}}, fails: "PKCE"},
		"plain PKCE only":            {behaviour: authserver.Behaviour{Challenges: []string{"plain"}}, fails: "S256"},
		"no iss, announced":          {behaviour: authserver.Behaviour{NoIss: true}, fails: "does not say that it comes from"},
		"no iss, not announced":      {behaviour: authserver.Behaviour{NoIssSupport: true}},
		"iss, not announced":         {behaviour: authserver.Behaviour{NoIssSupport: true, Iss: issuer}},
		"iss of another":             {behaviour: authserver.Behaviour{Iss: "https://evil.example"}, fails: "the login is refused"},
		"iss of another, no support": {behaviour: authserver.Behaviour{NoIssSupport: true, Iss: "https://evil.example"}, fails: "the login is refused"},
		"no registration":            {behaviour: authserver.Behaviour{NoRegistration: true}, fails: "register themselves"},
		"a registered client": {
			behaviour: authserver.Behaviour{NoRegistration: true},
			options:   login.Options{ClientID: "known", RedirectURL: "http://127.0.0.1:0/callback"},
		},
		"a metadata document": {
			behaviour: authserver.Behaviour{NoRegistration: true, Documents: true},
			options:   login.Options{ClientMetadata: "https://app.example/client.json"},
		},
		"no documents":                 {options: login.Options{ClientMetadata: "https://app.example/client.json"}},
		"expires_in as a string":       {behaviour: authserver.Behaviour{ExpiresIn: `"3600"`}},
		"expires_in of zero":           {behaviour: authserver.Behaviour{ExpiresIn: "0"}},
		"no expires_in":                {behaviour: authserver.Behaviour{ExpiresIn: "-"}},
		"expires_in that is nonsense":  {behaviour: authserver.Behaviour{ExpiresIn: `{"soon":true}`}},
		"no refresh token":             {behaviour: authserver.Behaviour{NoRefresh: true}},
		"fewer scopes":                 {behaviour: authserver.Behaviour{Granted: "read"}},
		"a token that cannot be used":  {behaviour: authserver.Behaviour{TokenType: "DPoP"}, fails: "cannot be used"},
		"the token endpoint redirects": {behaviour: authserver.Behaviour{TokenRedirect: "https://evil.example/token"}, fails: "307"},
		"the only issuer":              {options: login.Options{Issuer: issuer}},
		"not the allowed issuer":       {options: login.Options{Issuer: "https://login.example"}, fails: "is allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			s, network := world(test.behaviour)
			evil := 0
			network["evil.example"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { evil++ })
			c := newClient(t, network, test.options)
			prompt := browse(t, network, func(to *url.URL) { visit(t, to.String()) })
			if test.options.ClientID != "" {
				visitAs := prompt.Visit
				prompt.Visit = func(ctx context.Context, address string) error {
					u, _ := url.Parse(address)
					s.AddClient("known", u.Query().Get("redirect_uri"))
					return visitAs(ctx, address)
				}
			}
			_, err := c.Login(within(t), prompt)
			switch {
			case test.fails == "" && err != nil:
				t.Fatal(err)
			case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
				t.Fatalf("the error is %v", err)
			case evil > 0:
				t.Error("another server received a request")
			}
			if test.fails == "" {
				if token, err := c.Token(within(t)); err != nil || !s.Accepts(token, resource) {
					t.Errorf("the token is not accepted: %v", err)
				}
			} else if found, _ := c.Stored(within(t)); found != nil {
				t.Error("a login was stored")
			}
		})
	}
}

// TestLegacyServer: a server of MCP 2025-03-26 has no metadata, and is its own
// authorization server.
func TestLegacyServer(t *testing.T) {
	const origin = "https://old.example"
	s := authserver.New(origin, authserver.Behaviour{NoMetadata: true, NoIssSupport: true})
	network := authserver.Network{"old.example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.ServeHTTP(w, r)
	})}
	c := newClient(t, network, login.Options{URL: origin + "/mcp"})
	loggedIn(t, c, network)
	if token, err := c.Token(within(t)); err != nil || !s.Accepts(token, origin+"/mcp") {
		t.Errorf("the token is not accepted: %v", err)
	}
}

func TestServerWithoutLogin(t *testing.T) {
	network := authserver.Network{"open.example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" {
			http.NotFound(w, r)
		}
	})}
	for _, only := range []string{"", issuer} {
		c := newClient(t, network, login.Options{URL: "https://open.example/mcp", Issuer: only})
		if _, err := c.Login(within(t), agree(t, network)); !errors.Is(err, login.ErrNeverRequired) {
			t.Errorf("with the issuer %q, the error is %v", only, err)
		}
	}
}

// TestResourceOfMetadata: tokens are only requested for the server itself or a parent of
// its path.
func TestResourceOfMetadata(t *testing.T) {
	for claimed, works := range map[string]bool{
		resource: true, "https://mcp.example": true, "https://mcp.example/": true,
		"https://mcp.example/m": false, "https://mcp.example/mcp/other": false,
		"https://evil.example/mcp": false, "http://mcp.example/mcp": false, "https://mcp.example:8443/mcp": false, "": false,
	} {
		s, network := world(authserver.Behaviour{})
		network["mcp.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, claimed, issuer)
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
		})
		_, err := newClient(t, network, login.Options{}).Login(within(t), agree(t, network))
		if (err == nil) != works {
			t.Errorf("for the resource %q: %v", claimed, err)
		}
		if err == nil && s.Forms()[0].Get("resource") != claimed {
			t.Errorf("the token was requested for %q", s.Forms()[0].Get("resource"))
		}
	}
}

func TestLogout(t *testing.T) {
	s, network := world(authserver.Behaviour{})
	c := newClient(t, network, login.Options{})
	if found, err := c.Logout(within(t)); found || err != nil {
		t.Errorf("without a login: %v, %v", found, err)
	}
	loggedIn(t, c, network)
	token, _ := c.Token(within(t))
	if found, err := c.Logout(within(t)); !found || err != nil {
		t.Errorf("logging out: %v, %v", found, err)
	}
	if s.Accepts(token, resource) {
		t.Error("the token was not revoked")
	}
	if _, err := c.Token(within(t)); !errors.Is(err, ensemble.ErrNeedsLogin) {
		t.Errorf("after logging out: %v", err)
	}
	loggedIn(t, c, network)
	s.Fail(func(*http.Request) int { return 503 })
	if found, err := c.Logout(within(t)); !found || err == nil {
		t.Errorf("without the authorization server: %v, %v", found, err)
	}
	if found, _ := c.Stored(within(t)); found != nil {
		t.Error("the login is still stored")
	}
}
