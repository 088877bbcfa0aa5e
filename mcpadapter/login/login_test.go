// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/mcptest"
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

// TestIssuerOfTheConfiguration: if the server does not name its authorization server, that of the
// configuration is used, which must have metadata.
func TestIssuerOfTheConfiguration(t *testing.T) {
	for name, test := range map[string]struct {
		behaviour authserver.Behaviour
		fails     string
	}{
		"metadata":    {},
		"no metadata": {authserver.Behaviour{NoMetadata: true}, "no metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			s, network := world(test.behaviour)
			network["mcp.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/mcp" {
					http.NotFound(w, r)
					return
				}
				w.WriteHeader(http.StatusUnauthorized)
			})
			c := newClient(t, network, login.Options{Issuer: issuer})
			_, err := c.Login(within(t), agree(t, network))
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("the login: %v", err)
			}
			if test.fails == "" {
				accepted(t, s, c)
			}
		})
	}
}

// TestPageInsteadOfMetadata: web applications answer every path with their page. It counts as no
// metadata at the well-known places, but not where the server says that its metadata is.
func TestPageInsteadOfMetadata(t *testing.T) {
	page := func(w http.ResponseWriter) { _, _ = w.Write([]byte("<!doctype html><title>Notes</title>")) }
	for name, test := range map[string]struct {
		challenge string
		place     string // of the metadata of the server
		works     bool
	}{
		"without a challenge": {"", "/.well-known/oauth-protected-resource", true},
		"named":               {`Bearer resource_metadata="https://mcp.example/metadata"`, "/metadata", true},
		"named, and a page":   {`Bearer resource_metadata="https://mcp.example/metadata"`, "/.well-known/oauth-protected-resource", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, network := world(authserver.Behaviour{OpenIDOnly: true})
			network["mcp.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/mcp":
					w.Header().Set("WWW-Authenticate", test.challenge)
					w.WriteHeader(http.StatusUnauthorized)
				case test.place:
					fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, resource, issuer)
				default:
					page(w)
				}
			})
			network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/.well-known/oauth-authorization-server" {
					page(w)
					return
				}
				s.ServeHTTP(w, r)
			})
			_, err := newClient(t, network, login.Options{}).Login(within(t), agree(t, network))
			if (err == nil) != test.works {
				t.Errorf("the login: %v", err)
			}
		})
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

// countingConn is a connection that counts as open until it is closed.
type countingConn struct {
	net.Conn
	close func()
}

func (c *countingConn) Close() error {
	c.close()
	return c.Conn.Close()
}

// TestRedirectLeavesNoConnections: a client that only begins and finishes logins has no open
// connections between these, and need not be closed.
func TestRedirectLeavesNoConnections(t *testing.T) {
	_, address := authserver.Start(t, authserver.Behaviour{}, http.NotFoundHandler())
	var open sync.WaitGroup
	c, err := login.New(&login.Options{URL: address, HTTP: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			open.Add(1)
			return &countingConn{conn, sync.OnceFunc(open.Done)}, nil
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	closed := func(after string) {
		t.Helper()
		none := make(chan struct{})
		go func() {
			open.Wait()
			close(none)
		}()
		mcptest.Await(t, "the end of the connections after "+after, none)
	}
	r, err := c.Begin(within(t), "http://127.0.0.1/callback")
	if err != nil {
		t.Fatal(err)
	}
	closed("the begin")
	if _, err := r.Finish(within(t), authserver.Redirect(t, http.DefaultTransport, r.URL).Query()); err != nil {
		t.Fatal(err)
	}
	closed("the end")
}

// TestDeviceFlowRefused: a client that may not use the device flow logs in by a redirect. A person
// who has seen a code and refuses is not asked again.
func TestDeviceFlowRefused(t *testing.T) {
	refuse := func(w http.ResponseWriter, code string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":%q}`, code)
	}
	for name, test := range map[string]struct{ path, body, code string }{
		"registration": {"/register", "device_code", "invalid_client_metadata"},
		"code":         {"/device", "", "unauthorized_client"},
	} {
		t.Run(name, func(t *testing.T) {
			s, network := world(authserver.Behaviour{Device: true})
			network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if r.URL.Path == test.path && strings.Contains(string(body), test.body) {
					refuse(w, test.code)
					return
				}
				s.ServeHTTP(w, r)
			})
			prompt := agree(t, network)
			prompt.Enter = func(context.Context, login.Code) error { return nil }
			if _, err := newClient(t, network, login.Options{}).Login(within(t), prompt); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{Device: true})
		network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				refuse(w, "access_denied")
				return
			}
			s.ServeHTTP(w, r)
		})
		_, err := newClient(t, network, login.Options{}).Login(t.Context(), &login.Prompt{
			Enter: func(context.Context, login.Code) error { return nil },
			Visit: func(context.Context, string) error { t.Error("the person is asked again"); return nil },
		})
		if err == nil || !strings.Contains(err.Error(), "access_denied") {
			t.Errorf("the person refuses: %v", err)
		}
	})
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
