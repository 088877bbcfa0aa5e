// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/internal/dpop"
	"github.com/consort-go/consort/mcpadapter/login"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

var es256 = []string{"ES256"}

// ask sends a request to the resource with the token of a client, and returns the status.
func ask(t testing.TB, network http.RoundTripper, c *login.Client) int {
	t.Helper()
	ctx, prover := dpop.Expect(t.Context())
	token, err := c.Token(ctx)
	if err != nil {
		t.Error(err)
		return 0
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, resource, strings.NewReader("{}"))
	request.Header.Set("Authorization", "Bearer "+token)
	send := network.RoundTrip
	if p := prover(); p != nil {
		request.Header.Set("Authorization", "DPoP "+token)
		send = func(r *http.Request) (*http.Response, error) { return p.Send(r, network.RoundTrip) }
	}
	response, err := send(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// Tokens are bound to a key if the authorization server offers that and the server knows it, and
// are bearer tokens otherwise.
func TestWhatIsBound(t *testing.T) {
	for name, test := range map[string]struct {
		behaviour authserver.Behaviour
		bound     bool
		fails     string
	}{
		"challenge":                    {authserver.Behaviour{DPoP: es256, DPoPResource: "challenge"}, true, ""},
		"metadata":                     {authserver.Behaviour{DPoP: es256, DPoPResource: "metadata"}, true, ""},
		"required":                     {authserver.Behaviour{DPoP: es256, DPoPResource: "required"}, true, ""},
		"required, nothing announced":  {authserver.Behaviour{DPoP: []string{}, DPoPResource: "required"}, true, ""},
		"required, another algorithm":  {authserver.Behaviour{DPoP: []string{"RS256"}, DPoPResource: "required"}, false, "ES256"},
		"required, and not given":      {authserver.Behaviour{DPoPResource: "required"}, false, "not bound"},
		"the server does not know it":  {authserver.Behaviour{DPoP: es256}, false, ""},
		"another algorithm":            {authserver.Behaviour{DPoP: []string{"RS256"}, DPoPResource: "challenge"}, false, ""},
		"only the server knows it":     {authserver.Behaviour{DPoPResource: "metadata"}, false, ""},
		"bearer tokens all the same":   {authserver.Behaviour{DPoP: es256, DPoPResource: "challenge", TokenType: "Bearer"}, false, ""},
		"bearer tokens, bound demand":  {authserver.Behaviour{DPoP: es256, DPoPResource: "required", TokenType: "Bearer"}, false, "not bound"},
		"bound tokens without a proof": {authserver.Behaviour{TokenType: "DPoP"}, false, "cannot be used"},
	} {
		for _, nonces := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", nonces ", nonces), func(t *testing.T) {
				test.behaviour.DPoPNonces = nonces
				s, network := world(test.behaviour)
				c := newClient(t, network, login.Options{})
				l, err := c.Login(within(t), agree(t, network))
				if test.fails != "" {
					if found, _ := c.Stored(within(t)); err == nil || !strings.Contains(err.Error(), test.fails) || found != nil {
						t.Fatalf("the error is %v, stored is %v", err, found)
					}
					return
				}
				if err != nil || (l.DPoPKey != "") != test.bound {
					t.Fatalf("the login is %+v, %v", l, err)
				}
				honest := test.behaviour.TokenType != "Bearer" // otherwise, the fake's token is bound in secret
				if status := ask(t, network, c); honest && status != http.StatusOK {
					t.Errorf("a request is answered with %d", status)
				}
				if accepted, refused := s.Proofs(); len(refused) > 0 || test.bound != (accepted > 1) && honest {
					t.Errorf("%d proofs were accepted, refused: %v", accepted, refused)
				}
			})
		}
	}
}

// The key lasts as long as the login: over renewals and restarts, and while nonces change.
func TestBoundLoginLasts(t *testing.T) {
	for _, nonces := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, network := world(authserver.Behaviour{DPoP: es256, DPoPResource: "challenge", DPoPNonces: nonces})
			store := login.NewMemory()
			storedLogin(t, s, network, store)
			same := newClient(t, network, login.Options{Store: store})
			for range 12 {
				time.Sleep(45 * time.Minute)
				for _, c := range []*login.Client{same, newClient(t, network, login.Options{Store: store})} {
					if status := ask(t, network, c); status != http.StatusOK {
						t.Errorf("status %d", status)
					}
				}
				s.RenewNonces()
			}
			if _, refused := s.Proofs(); len(refused) > 0 || s.Count("/device") != 1 || s.Count("/token refresh_token") == 0 {
				t.Errorf("refused: %v", refused)
			}
			s.Behave(func(b *authserver.Behaviour) { b.TokenType = "Bearer" })
			time.Sleep(2 * time.Hour)
			if _, err := same.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "not bound") {
				t.Errorf("after a downgrade: %v", err)
			}
		})
	}
}

// A client without a person has a key that lasts as long as the process.
func TestBoundMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, network := world(authserver.Behaviour{DPoP: es256, DPoPResource: "metadata", DPoPNonces: true})
		c := newClient(t, network, login.Options{Machine: true, ClientID: "machine", ClientSecret: "machine-secret", Issuer: issuer})
		if err := rejected(t, c, ""); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if status := ask(t, network, c); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
			time.Sleep(2 * time.Hour)
		}
		if accepted, refused := s.Proofs(); len(refused) > 0 || accepted != 6 {
			t.Errorf("%d accepted, refused: %v", accepted, refused)
		}
	})
}

// The fake refuses what a server must refuse (RFC 9449, section 4.3), so that the other tests show
// that proofs are right.
func TestWrongProofs(t *testing.T) {
	_, network := world(authserver.Behaviour{DPoP: es256, DPoPResource: "challenge", DPoPNonces: true})
	c := newClient(t, network, login.Options{})
	l := loggedIn(t, c, network)
	if status := ask(t, network, c); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	key, err := dpop.ParseKey(string(l.DPoPKey))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := dpop.NewKey()
	stranger, _ := dpop.ParseKey(text)
	at, _ := url.Parse(resource)
	elsewhere, _ := url.Parse("https://mcp.example/other")
	token := string(l.AccessToken)
	proof := func(k *dpop.Key, method string, to *url.URL, token, nonce string) string {
		proof, err := k.Proof(method, to, token, nonce)
		if err != nil {
			t.Fatal(err)
		}
		return proof
	}
	const nonce = "resource-nonce-0"
	right := proof(key, "POST", at, token, nonce)
	for _, test := range []struct{ name, proof, error string }{
		{"right", right, ""},
		{"replayed", right, "invalid_dpop_proof"},
		{"htu", proof(key, "POST", elsewhere, token, nonce), "invalid_dpop_proof"},
		{"htm", proof(key, "GET", at, token, nonce), "invalid_dpop_proof"},
		{"ath", proof(key, "POST", at, "another", nonce), "invalid_dpop_proof"},
		{"no ath", proof(key, "POST", at, "", nonce), "invalid_dpop_proof"},
		{"no nonce", proof(key, "POST", at, token, ""), "use_dpop_nonce"},
		{"another nonce", proof(key, "POST", at, token, "token-nonce-0"), "use_dpop_nonce"},
		{"another key", proof(stranger, "POST", at, token, nonce), "invalid_token"},
		{"damaged", right + "x", "invalid_dpop_proof"},
		{"empty", "", "invalid_dpop_proof"},
	} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, resource, nil)
		request.Header.Set("Authorization", "DPoP "+token)
		request.Header.Set("DPoP", test.proof)
		response, err := network.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		challenge := response.Header.Get("WWW-Authenticate")
		if (test.error == "") != (response.StatusCode == http.StatusOK) || !strings.Contains(challenge, test.error) {
			t.Errorf("%s: status %d, %s", test.name, response.StatusCode, challenge)
		}
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, resource, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	if response, err := network.RoundTrip(request); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a bound token as a bearer token: %v, %v", response, err)
	}
}

// The key is in no text that is printed or logged, nor in a request.
func TestKeyIsSecret(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	s, network := world(authserver.Behaviour{DPoP: es256, DPoPResource: "challenge"})
	var sent bytes.Buffer
	for host, handler := range network {
		network[host] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(&sent, r.URL, r.Header)
			handler.ServeHTTP(w, r)
		})
	}
	c := newClient(t, network, login.Options{Logger: zap.New(core)})
	l := loggedIn(t, c, network)
	ask(t, network, c)
	s.RevokeAll()
	err := rejected(t, c, string(l.AccessToken))
	text := fmt.Sprintf("%v %+v %#v %q %v %v %v", l, l, *l, *l, logs.All(), err, sent.String())
	for _, form := range s.Forms() {
		text += form.Encode()
	}
	if key := string(l.DPoPKey); key == "" || strings.Contains(text, key) || strings.Contains(c.Redact("it is "+key), key) {
		t.Errorf("the key is shown: %s", text)
	}
}

// Records of before stay readable, and a record has the form of the golden file.
func TestStoredForm(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "stored.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*login.Login
	if err := json.Unmarshal(golden, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].DPoPKey != "" || all[1].DPoPKey == "" {
		t.Fatalf("read: %+v", all)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil || string(text)+"\n" != string(golden) {
		t.Errorf("the form is\n%s", text)
	}
	folder := t.TempDir()
	for _, l := range all {
		put(t, login.NewFiles(folder, nil), l)
	}
	back, err := login.NewFiles(folder, nil).List(t.Context())
	if err != nil || len(back) != 2 || !slices.ContainsFunc(back, func(l *login.Login) bool { return l.DPoPKey == all[1].DPoPKey }) {
		t.Errorf("%+v, %v", back, err)
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, file := range files {
		if raw, err := os.ReadFile(file); err != nil || bytes.Contains(raw, []byte(all[1].DPoPKey)) {
			t.Errorf("the key is in %s, %v", file, err)
		}
	}
}

// A real connection, over sockets, sends a proof with each request.
func TestConnectionWithProofs(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "write", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s, address := authserver.Start(t, authserver.Behaviour{DPoP: es256, DPoPResource: "challenge", DPoPNonces: true}, inner)
	c, err := login.New(&login.Options{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	loggedIn(t, c, http.DefaultTransport)
	for name, options := range map[string]*mcpadapter.HTTPOptions{"Token and OAuth": {Token: c.Token, OAuth: c}, "OAuth": {OAuth: c}} {
		connection := mcptest.Open(t, mcpadapter.HTTP(address, options))
		write := mcptest.Tool(t, connection, "write")
		for range 3 {
			if result, err := write.Invoke(within(t), mcptest.RawCall(`{}`)); err != nil || !strings.Contains(fmt.Sprint(result), "done") {
				t.Errorf("%s: %v, %v", name, result, err)
			}
			s.RenewNonces()
		}
	}
	if accepted, refused := s.Proofs(); len(refused) > 0 || accepted < 9 {
		t.Errorf("%d accepted, refused: %v", accepted, refused)
	}
}
