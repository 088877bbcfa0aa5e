// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/mcpadapter/login"
)

// TestForgedRedirects: redirects that do not belong to the login neither end it nor change
// it (RFC 9700, sections 4.5 and 4.7).
func TestForgedRedirects(t *testing.T) {
	s, network := world(authserver.Behaviour{})
	c := newClient(t, network, login.Options{})
	_, err := c.Login(within(t), browse(t, network, func(to *url.URL) {
		with := func(change func(u *url.URL, query url.Values)) string {
			forged, query := *to, to.Query()
			change(&forged, query)
			forged.RawQuery = query.Encode()
			return forged.String()
		}
		for name, address := range map[string]string{
			"no state":         with(func(_ *url.URL, q url.Values) { q.Del("state") }),
			"another state":    with(func(_ *url.URL, q url.Values) { q.Set("state", "AAAAAAAAAAAAAAAAAAAAAAAAAA") }),
			"an injected code": with(func(_ *url.URL, q url.Values) { q.Set("state", ""); q.Set("code", "stolen") }),
			"another path":     with(func(u *url.URL, _ url.Values) { u.Path = "/callback" }),
			"a forged error":   with(func(_ *url.URL, q url.Values) { q.Set("state", "x"); q.Set("error", "access_denied") }),
		} {
			if status := visit(t, address); status < 400 {
				t.Errorf("%s is answered with status %d", name, status)
			}
		}
		request, _ := http.NewRequest(http.MethodGet, to.String(), nil)
		request.Host = "evil.example" // DNS rebinding
		response, err := browser.Do(request)
		if err != nil || response.StatusCode < 400 {
			t.Errorf("a request for another host is answered: %v", err)
		}
		if err == nil {
			response.Body.Close()
		}
		if status := visit(t, to.String()); status != http.StatusOK {
			t.Errorf("the redirect is answered with status %d", status)
		}
		response, err = browser.Get(to.String())
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			t.Error("a replayed redirect is accepted, and not answered")
		}
		if err == nil { // otherwise the listener has ended
			response.Body.Close()
			if response.StatusCode < 400 {
				t.Errorf("a replayed redirect is answered with status %d", response.StatusCode)
			}
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if n := s.Count("/token authorization_code"); n != 1 {
		t.Errorf("%d codes were redeemed", n)
	}
}

// TestHostileRedirects: the answers of hostile authorization servers, and of those that
// were attacked, end the login without a token.
func TestHostileRedirects(t *testing.T) {
	for name, change := range map[string]func(url.Values){
		"mix-up":                func(q url.Values) { q.Set("iss", "https://honest.example") },
		"iss is missing":        func(q url.Values) { q.Del("iss") },
		"iss with another case": func(q url.Values) { q.Set("iss", strings.ToUpper(issuer)) },
		"iss with a suffix":     func(q url.Values) { q.Set("iss", issuer+".evil.example") },
		"iss twice":             func(q url.Values) { q.Add("iss", "https://evil.example") },
		"code twice":            func(q url.Values) { q.Add("code", "injected") },
		"state twice":           func(q url.Values) { q.Add("state", "x") },
		"an injected code":      func(q url.Values) { q.Set("code", "code-of-another-login") },
		"no code":               func(q url.Values) { q.Del("code") },
		"an error":              func(q url.Values) { q.Set("error", "access_denied") },
	} {
		t.Run(name, func(t *testing.T) {
			s, network := world(authserver.Behaviour{})
			c := newClient(t, network, login.Options{})
			_, err := c.Login(within(t), browse(t, network, func(to *url.URL) {
				query := to.Query()
				change(query)
				to.RawQuery = query.Encode()
				visit(t, to.String())
			}))
			if err == nil {
				t.Fatal("the login was accepted")
			}
			if n := s.Count("/token authorization_code"); n > 0 && name != "an injected code" {
				t.Error("the code was sent to the token endpoint")
			}
			if found, _ := c.Stored(within(t)); found != nil {
				t.Error("a login was stored")
			}
		})
	}
}

// TestCodeOfAnotherLogin: a code that was stolen from another login of the same client
// cannot be injected, because its PKCE challenge is another one.
func TestCodeOfAnotherLogin(t *testing.T) {
	_, network := world(authserver.Behaviour{Documents: true, NoRegistration: true})
	options := login.Options{ClientMetadata: "https://app.example/client.json", RedirectURL: "http://127.0.0.1/callback"}
	stolen := ""
	ctx, cancel := context.WithCancel(within(t))
	_, err := newClient(t, network, options).Login(ctx, browse(t, network, func(to *url.URL) {
		stolen = to.Query().Get("code")
		cancel()
	}))
	if err == nil || stolen == "" {
		t.Fatal("the first login did not end")
	}
	_, err = newClient(t, network, options).Login(within(t), browse(t, network, func(to *url.URL) {
		query := to.Query()
		query.Set("code", stolen)
		to.RawQuery = query.Encode()
		visit(t, to.String())
	}))
	if err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("the injected code was answered with %v", err)
	}
}

// TestEndpointsThatAreRefused: neither a server nor its authorization server can make the
// client use plain HTTP, other schemes, or addresses of this machine.
func TestEndpointsThatAreRefused(t *testing.T) {
	for _, endpoint := range []string{
		"http://auth.example/x", "javascript:alert(1)", "file:///etc/passwd", "http://127.0.0.1/x", "http://localhost/x", "//auth.example/x", "",
	} {
		for _, name := range []string{"authorization_endpoint", "token_endpoint"} {
			_, network := world(authserver.Behaviour{})
			network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				endpoints := map[string]string{"authorization_endpoint": issuer + "/authorize", "token_endpoint": issuer + "/token"}
				endpoints[name] = endpoint
				_, _ = w.Write([]byte(`{"issuer":"` + issuer + `","code_challenge_methods_supported":["S256"],"registration_endpoint":"` + issuer +
					`/register","authorization_endpoint":"` +
					endpoints["authorization_endpoint"] + `","token_endpoint":"` + endpoints["token_endpoint"] + `"}`))
			})
			c := newClient(t, network, login.Options{})
			_, err := c.Login(within(t), &login.Prompt{Visit: func(_ context.Context, address string) error {
				t.Errorf("the person was sent to %s", address)
				return context.Canceled
			}})
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s = %q is answered with %v", name, endpoint, err)
			}
		}
	}
}

// TestRedirectURLWithoutAPath: browsers ask for the path / then.
func TestRedirectURLWithoutAPath(t *testing.T) {
	s, network := world(authserver.Behaviour{NoRegistration: true})
	c := newClient(t, network, login.Options{ClientID: "known", RedirectURL: "http://127.0.0.1"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := c.Login(ctx, &login.Prompt{Visit: func(_ context.Context, address string) error {
		u, _ := url.Parse(address)
		s.AddClient("known", u.Query().Get("redirect_uri"))
		if status := visit(t, authserver.Redirect(t, network, address).String()); status != http.StatusOK {
			cancel()
		}
		return nil
	}})
	if err != nil {
		t.Error(err)
	}
}

// TestOnlyTheIssuer: a server without metadata, which counts as its own authorization server, gets
// neither the client's secret nor the token of a user if another issuer is configured.
func TestOnlyTheIssuer(t *testing.T) {
	for name, o := range map[string]login.Options{
		"a machine":  {Machine: true, ClientID: "machine", ClientSecret: "machine-secret"},
		"a workload": {Assertion: true, Subject: subject("workload-token")},
		"a person":   {ClientID: "known", ClientSecret: "machine-secret"},
	} {
		for _, noMetadata := range []bool{false, true} {
			s := authserver.New("https://mcp.example", authserver.Behaviour{NoMetadata: noMetadata})
			network := authserver.Network{"mcp.example": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/mcp" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				s.ServeHTTP(w, r)
			})}
			o.Issuer = issuer
			c := newClient(t, network, o)
			err := rejected(t, c, "")
			if name == "a person" {
				_, err = c.Login(within(t), agree(t, network))
			}
			if err == nil || !strings.Contains(err.Error(), issuer) { // which is asked, and is away
				t.Errorf("%s, no metadata %v: %v", name, noMetadata, err)
			}
			if forms := s.Forms(); len(forms) > 0 || s.Count("/authorize") > 0 {
				t.Errorf("%s, no metadata %v: the server got %v", name, noMetadata, forms)
			}
		}
	}
}

// TestMetadataRedirects: metadata may move, but not to plain HTTP.
func TestMetadataRedirects(t *testing.T) {
	_, network := world(authserver.Behaviour{})
	network["auth.example"] = http.RedirectHandler("http://127.0.0.1/metadata", http.StatusFound)
	if _, err := newClient(t, network, login.Options{}).Login(within(t), agree(t, network)); err == nil ||
		!strings.Contains(err.Error(), "redirects to an address") {
		t.Errorf("the error is %v", err)
	}
}

// TestRedirectURLsThatAreRefused: the code is only received on this machine.
func TestRedirectURLsThatAreRefused(t *testing.T) {
	for _, address := range []string{"https://evil.example/callback", "http://evil.example/", "http://0.0.0.0/",
		"http://127.0.0.1.evil.example/", "http://user@127.0.0.1/", "consort://callback"} {
		if _, err := login.New(&login.Options{URL: resource, RedirectURL: address}); err == nil {
			t.Errorf("%s is accepted", address)
		}
	}
}

func TestPaste(t *testing.T) {
	for name, test := range map[string]struct {
		change func(address string) string
		works  bool
	}{
		"the address":           {func(a string) string { return "  " + a + "\n" }, true},
		"of another login":      {func(a string) string { return strings.Replace(a, "state=", "state=x", 1) }, false},
		"the code alone":        {func(string) string { return "code-1" }, false},
		"the address to log in": {func(string) string { return issuer + "/authorize?client_id=x" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, network := world(authserver.Behaviour{})
			address := make(chan string, 1)
			prompt := browse(t, network, func(to *url.URL) { address <- to.String() })
			prompt.Paste = func(context.Context) (string, error) { return test.change(<-address), nil }
			if _, err := newClient(t, network, login.Options{}).Login(within(t), prompt); (err == nil) != test.works {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestRepeatedTokens: a response with two values of a parameter is refused, because programs on
// the way could have read the other one.
func TestRepeatedTokens(t *testing.T) {
	for more, refused := range map[string]bool{
		`,"access_token":"injected"`: true, `,"Access_Token":"injected"`: true, `,"acceſs_token":"injected"`: true,
		`,"refresh_token":"a","refresh_token":"b"`: true,
		`,"scope":"a","scope":"a b"`:               true, `,"TOKEN_TYPE":"Bearer"`: true, `,"other":1,"other":2`: false, `,"nested":{"scope":"a","access_token":1}`: false,
	} {
		_, network := world(authserver.Behaviour{})
		honest := network["auth.example"]
		network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/token" {
				honest.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			honest.ServeHTTP(answer, r)
			_, _ = w.Write([]byte(strings.TrimSuffix(strings.TrimSpace(answer.Body.String()), "}") + more + "}"))
		})
		c := newClient(t, network, login.Options{})
		_, err := c.Login(within(t), agree(t, network))
		found, _ := c.Stored(within(t))
		if (found == nil) != refused || (err == nil) == refused || refused && !strings.Contains(err.Error(), "more than once") {
			t.Errorf("%s: %v", more, err)
		}
	}
}
