// SPDX-License-Identifier: Apache-2.0

package oidc_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/consort-go/consort/mcpadapter/server/oidc"
)

const (
	issuer   = "https://login.example"
	audience = "https://tools.example/mcp"
)

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// place is an issuer, and a verifier of its tokens.
type place struct {
	*authserver.Issuer
	*oidc.Verifier
	key *authserver.Key
}

func newPlace(t *testing.T, change func(*oidc.Options)) *place {
	t.Helper()
	key := authserver.NewKey(t, "k1")
	p := &place{key: key, Issuer: authserver.NewIssuer(issuer, key)}
	options := &oidc.Options{Issuer: issuer, Audience: audience, HTTP: &http.Client{Transport: authserver.Network{"login.example": p.Issuer}}}
	if change != nil {
		change(options)
	}
	var err error
	if p.Verifier, err = oidc.New(options); err != nil {
		t.Fatal(err)
	}
	return p
}

// token returns a valid token, with changes of its claims.
func (p *place) token(changes map[string]any) string {
	return p.key.Sign(p.Claims(audience, changes), nil)
}

// accepts reports whether the verifier accepts a token.
func (p *place) accepts(t *testing.T, token string) error {
	t.Helper()
	_, _, err := p.Verify(t.Context(), token)
	return err
}

func isAway(err error) bool {
	failure, ok := errors.AsType[*invoker.Failure](err)
	return ok && failure.Code == invoker.Unavailable && failure.RetryAfter > 0
}

// A token names the client, and its claims become trusted values.
func TestClaims(t *testing.T) {
	p := newPlace(t, func(o *oidc.Options) {
		o.Name, o.Scopes = "email", []string{"tools", "mcp"}
		o.Trusted = map[string]string{
			"tenant": "https://example.com/tenant", "roles": "/realm_access/roles", "none": "missing", "deep": "/email/x/y",
			"null": "nothing",
		}
	})
	name, values, err := p.Verify(t.Context(), p.token(map[string]any{
		"email": "ada@example.com", "https://example.com/tenant": 7, "realm_access": map[string]any{"roles": []string{"ops"}},
		"scope": "mcp", "scp": []string{"tools"}, "nothing": nil,
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, value := range values {
		text, err := value.Reveal()
		if err != nil {
			t.Error(err)
		}
		got[value.Name()] = string(text)
	}
	want := map[string]string{"iss": `"https://login.example"`, "sub": `"ada"`, "tenant": "7", "roles": `["ops"]`}
	if name != "ada@example.com" || !maps.Equal(got, want) {
		t.Errorf("%q has the values %v, want %v", name, got, want)
	}
	for _, scopes := range []map[string]any{{}, {"scope": "tools"}, {"scope": "toolsmcp"}, {"scope": 3}, {"scp": "mcp"}} {
		scopes["email"] = "ada@example.com"
		err := p.accepts(t, p.token(scopes))
		if scope, ok := errors.AsType[*server.ScopeError](err); !ok || !slices.Equal(scope.Scopes, []string{"tools", "mcp"}) {
			t.Errorf("the scopes %v: %v", scopes, err)
		}
	}
}

// Each attack is refused, and a token that differs in nothing else is accepted.
func TestAttacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, nil)
		rs := &authserver.Key{ID: "rs", Algorithm: "RS256", RSA: rsaKey()}
		weak, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			t.Fatal(err)
		}
		small := &authserver.Key{ID: "small", Algorithm: "RS256", RSA: weak}
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		ed := &authserver.Key{ID: "ed", Algorithm: "EdDSA", Ed: private}
		secret := &authserver.Key{ID: "hs", Algorithm: "HS256", HMAC: []byte("0123456789abcdef0123456789abcdef")}
		p.Change(func(s *authserver.IssuerState) { s.Keys = []*authserver.Key{p.key, rs, ed, secret, small} })
		now := time.Now().Unix()
		with := func(name string, value any) string { return p.token(map[string]any{name: value}) }
		headed := func(key *authserver.Key, header map[string]any) string {
			return key.Sign(p.Claims(audience, nil), header)
		}
		for name, token := range map[string]string{
			"ES256": p.token(nil), "RS256": headed(rs, nil), "EdDSA": headed(ed, nil),
			"without kid": headed(p.key, map[string]any{"kid": nil}), "without typ": headed(p.key, map[string]any{"typ": nil}),
			"typ JWT": headed(p.key, map[string]any{"typ": "JWT"}), "typ application/at+JWT": headed(p.key, map[string]any{"typ": "application/at+JWT"}),
			"several audiences":       with("aud", []string{"https://other.example", audience}),
			"expired within the skew": with("exp", now-59), "nbf within the skew": with("nbf", now+60), "iat within the skew": with("iat", now+60),
			"16 KB": with("pad", strings.Repeat("x", 11<<10)),
		} {
			if err := p.accepts(t, token); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		stranger := authserver.NewKey(t, "k1")
		injected := authserver.NewKey(t, "own")
		public, err := x509.MarshalPKIXPublicKey(&rs.RSA.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		asSecret := func(text []byte) string {
			return headed(&authserver.Key{ID: "rs", Algorithm: "HS256", HMAC: text}, nil)
		}
		valid := p.token(nil)
		parts := strings.Split(valid, ".")
		for name, token := range map[string]string{
			"alg none":                      headed(&authserver.Key{ID: "k1", Algorithm: "none"}, nil),
			"alg None":                      headed(&authserver.Key{ID: "k1", Algorithm: "none"}, map[string]any{"alg": "nOnE"}),
			"no alg":                        headed(p.key, map[string]any{"alg": nil}),
			"HS256 with the key as secret":  asSecret(public),
			"HS256 with the PEM as secret":  asSecret(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
			"HS256 with a published secret": headed(secret, nil),
			"another algorithm for the key": headed(p.key, map[string]any{"alg": "ES384"}),
			"RS512 for a key of RS256":      headed(&authserver.Key{ID: "rs", Algorithm: "RS512", RSA: rs.RSA}, nil),
			"RS256 for a key of ES256":      headed(rs, map[string]any{"kid": "k1"}),
			"kid unknown":                   headed(p.key, map[string]any{"kid": "k2"}),
			"kid of another key":            headed(p.key, map[string]any{"kid": "rs"}),
			"kid injected":                  headed(p.key, map[string]any{"kid": "../../k1' OR '1'='1"}),
			"kid no text":                   headed(p.key, map[string]any{"kid": []string{"k1"}}),
			"a key of a stranger":           headed(stranger, nil),
			"a key in the token":            headed(injected, map[string]any{"jwk": injected.JWK(), "kid": nil}),
			"a key at an address":           headed(injected, map[string]any{"jku": "https://evil.example/keys"}),
			"a certificate in the token":    headed(injected, map[string]any{"x5c": []string{"MIIB"}}),
			"an unknown critical header":    headed(p.key, map[string]any{"crit": []string{"x"}, "x": 1}),
			"typ logout":                    headed(p.key, map[string]any{"typ": "logout+jwt"}),
			"typ DPoP":                      headed(p.key, map[string]any{"typ": "dpop+jwt"}),
			"typ no text":                   headed(p.key, map[string]any{"typ": 1}),
			"aud missing":                   with("aud", nil),
			"aud wrong":                     with("aud", "https://other.example/mcp"),
			"aud a prefix":                  with("aud", "https://tools.example"),
			"aud empty":                     with("aud", []string{}),
			"aud in another case":           p.token(map[string]any{"aud": nil, "Aud": audience}),
			"iss with a long s":             p.token(map[string]any{"iss": "https://evil.example", "iſs": issuer}),
			"exp in another case":           p.token(map[string]any{"exp": nil, "EXP": now + 600}),
			"iss in another case":           p.token(map[string]any{"iss": nil, "Iss": issuer}),
			"RSA with 1024 bits":            headed(small, nil),
			"aud of another kind":           with("aud", map[string]any{audience: true}),
			"iss missing":                   with("iss", nil),
			"iss wrong":                     with("iss", "https://evil.example"),
			"iss with a slash":              with("iss", issuer+"/"),
			"sub missing":                   with("sub", nil),
			"sub empty":                     with("sub", ""),
			"sub a number":                  with("sub", 7),
			"sub with a line break":         with("sub", "ada\nlevel=info"),
			"sub too long":                  with("sub", strings.Repeat("a", 257)),
			"exp missing":                   with("exp", nil),
			"exp passed":                    with("exp", now-61),
			"exp a text":                    with("exp", "tomorrow"),
			"nbf in the future":             with("nbf", now+61),
			"nbf a text":                    with("nbf", "yesterday"),
			"iat in the future":             with("iat", now+61),
			"bound to a key (DPoP)":         with("cnf", map[string]any{"jkt": "x"}),
			"changed claims":                parts[0] + "." + strings.Split(with("sub", "eve"), ".")[1] + "." + parts[2],
			"no signature":                  parts[0] + "." + parts[1] + ".",
			"five parts":                    valid + ".x.y",
			"two parts":                     parts[0] + "." + parts[1],
			"JSON":                          `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
			"with blanks":                   valid[:10] + " " + valid[10:],
			"10 MB":                         with("pad", strings.Repeat("x", 10<<20)),
			"17 KB":                         with("pad", strings.Repeat("x", 12<<10)),
			"claims are a list":             signedText(p.key, `[1]`),
			"claims are nothing":            signedText(p.key, ``),
			"no JWT":                        "0123456789abcdef",
			"empty":                         "",
		} {
			switch err := p.accepts(t, token); {
			case err == nil:
				t.Errorf("%s is accepted", name)
			case isAway(err):
				t.Errorf("%s: %v", name, err)
			case len(err.Error()) > 600 || token != "" && strings.Contains(err.Error(), token):
				t.Errorf("%s: the error quotes the token: %.1000v", name, err)
			}
		}
	})
}

// signedText signs claims that are no JSON object.
func signedText(key *authserver.Key, claims string) string {
	header, _, _ := strings.Cut(key.Sign(nil, nil), ".")
	return key.SignText(header + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)))
}

// Rotation: a new key is accepted, a withdrawn one is not for long, and unknown keys do not
// make the verifier ask the issuer again and again.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, nil)
		old, fresh := p.key, authserver.NewKey(t, "k2")
		if err := p.accepts(t, p.token(nil)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		p.Change(func(s *authserver.IssuerState) { s.Keys = []*authserver.Key{old, fresh} })
		p.key = fresh
		if err := p.accepts(t, p.token(nil)); err != nil {
			t.Errorf("the new key: %v", err)
		}
		p.Change(func(s *authserver.IssuerState) { s.Keys = []*authserver.Key{fresh} })
		time.Sleep(11 * time.Minute)
		p.key = old
		if err := p.accepts(t, p.token(nil)); err == nil || isAway(err) {
			t.Errorf("the withdrawn key: %v", err)
		}
		again := authserver.NewKey(t, "k2") // another key with the same ID
		p.Change(func(s *authserver.IssuerState) { s.Keys = []*authserver.Key{again} })
		time.Sleep(11 * time.Second)
		if err := p.accepts(t, again.Sign(p.Claims(audience, nil), nil)); err != nil {
			t.Errorf("a key with the ID of another one: %v", err)
		}
		before := p.Count("/keys")
		unknown := authserver.NewKey(t, "k3")
		for range 1000 {
			if err := p.accepts(t, unknown.Sign(p.Claims(audience, nil), nil)); err == nil || isAway(err) {
				t.Fatalf("an unknown key: %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := p.Count("/keys") - before; n > 2 {
			t.Errorf("1000 tokens with an unknown key in 10 s made %d requests to the issuer", n)
		}
	})
}

// An outage: known keys go on working, also when they are due to be fetched again; what
// needs the issuer is answered with 503, and works when it is back.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t, nil)
		p.Change(func(s *authserver.IssuerState) { s.Status = http.StatusBadGateway })
		for range 100 {
			if err := p.accepts(t, p.token(nil)); !isAway(err) {
				t.Fatalf("without any key: %v", err)
			}
		}
		if n := p.Count("/.well-known/openid-configuration"); n != 1 {
			t.Errorf("the issuer was asked %d times at once", n)
		}
		if err := p.accepts(t, "no.JWT.x"); err == nil || isAway(err) {
			t.Errorf("what is no token needs no issuer: %v", err)
		}
		p.Change(func(s *authserver.IssuerState) { s.Status = 0 })
		time.Sleep(11 * time.Second)
		if err := p.accepts(t, p.token(nil)); err != nil {
			t.Fatalf("after the outage: %v", err)
		}
		p.Change(func(s *authserver.IssuerState) { s.Status = http.StatusBadGateway })
		for range 12 {
			time.Sleep(time.Hour)
			if err := p.accepts(t, p.token(nil)); err != nil {
				t.Fatalf("a known key during an outage: %v", err)
			}
		}
		unknown := authserver.NewKey(t, "k2")
		if err := p.accepts(t, unknown.Sign(p.Claims(audience, nil), nil)); !isAway(err) {
			t.Errorf("a key that may be new, during an outage: %v", err)
		}
		stranger := authserver.NewKey(t, "k1")
		if err := p.accepts(t, stranger.Sign(p.Claims(audience, nil), nil)); err == nil || isAway(err) {
			t.Errorf("a wrong signature needs no issuer: %v", err)
		}
	})
}

// An issuer that hangs is asked by one request, and the others go on with the known keys.
func TestHangingIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := false
		var inner http.RoundTripper
		p := newPlace(t, func(o *oidc.Options) {
			inner = o.HTTP.Transport
			o.HTTP = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if hanging {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return inner.RoundTrip(r)
			})}
		})
		if err := p.accepts(t, p.token(nil)); err != nil {
			t.Fatal(err)
		}
		hanging = true
		time.Sleep(11 * time.Minute)
		token := p.token(nil)
		began := time.Now()
		var slow sync.WaitGroup
		slow.Go(func() {
			if err := p.accepts(t, token); err != nil || time.Since(began) != 5*time.Second {
				t.Errorf("the one that asks: %v after %v", err, time.Since(began))
			}
		})
		synctest.Wait()
		for range 10 {
			if err := p.accepts(t, token); err != nil || time.Since(began) > 0 {
				t.Fatalf("another one: %v after %v", err, time.Since(began))
			}
		}
		slow.Wait()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Documents of the issuer that are too large, or lead elsewhere, are not used.
func TestBadDocuments(t *testing.T) {
	for name, change := range map[string]func(*authserver.IssuerState){
		"10 MB of keys": func(s *authserver.IssuerState) {
			s.Document = func() []byte { return bytes.Repeat([]byte(" "), 10<<20) }
		},
		"a key of 10 MB": func(s *authserver.IssuerState) {
			s.Document = func() []byte {
				return []byte(`{"keys":[{"kty":"RSA","kid":"k1","e":"AQAB","n":"` + strings.Repeat("A", 10<<20) + `"}]}`)
			}
		},
		"10 MB beside a good key": func(s *authserver.IssuerState) {
			text, _ := json.Marshal(map[string]any{"keys": []any{s.Keys[0].JWK()}, "x": strings.Repeat("A", 10<<20)})
			s.Document = func() []byte { return text }
		},
		"a key of 16,384 bits": func(s *authserver.IssuerState) {
			s.Document = func() []byte {
				return []byte(`{"keys":[{"kty":"RSA","kid":"k1","e":"AQAB","n":"` +
					base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 2048)) + `"}]}`)
			}
		},
		"a key of 1,024 bits": func(s *authserver.IssuerState) {
			s.Document = func() []byte {
				return []byte(`{"keys":[{"kty":"RSA","kid":"k1","e":"AQAB","n":"` +
					base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 128)) + `"}]}`)
			}
		},
		"65 keys": func(s *authserver.IssuerState) { s.Keys = slices.Repeat(s.Keys, 65) },
		"a key for encryption": func(s *authserver.IssuerState) {
			jwk := s.Keys[0].JWK()
			jwk["use"] = "enc"
			text, _ := json.Marshal(map[string]any{"keys": []any{jwk}})
			s.Document = func() []byte { return text }
		},
		"no key":                  func(s *authserver.IssuerState) { s.Keys = nil },
		"no JSON":                 func(s *authserver.IssuerState) { s.Document = func() []byte { return []byte("<html>") } },
		"another issuer":          func(s *authserver.IssuerState) { s.Metadata = map[string]any{"issuer": "https://evil.example"} },
		"keys over plain HTTP":    func(s *authserver.IssuerState) { s.Metadata = map[string]any{"jwks_uri": "http://login.example/keys"} },
		"keys at no address":      func(s *authserver.IssuerState) { s.Metadata = map[string]any{"jwks_uri": "file:///etc/keys"} },
		"no address of keys":      func(s *authserver.IssuerState) { s.Metadata = map[string]any{"jwks_uri": nil} },
		"a redirect":              func(s *authserver.IssuerState) { s.Status = http.StatusFound },
		"all metadata is missing": func(s *authserver.IssuerState) { s.Status = http.StatusNotFound },
	} {
		p := newPlace(t, nil)
		p.Change(change)
		if err := p.accepts(t, p.token(nil)); !isAway(err) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.1000v", name, err)
		}
	}
	for name, change := range map[string]func(*authserver.IssuerState){
		"the metadata of OAuth": func(s *authserver.IssuerState) { s.OnlyOAuth = true },
		"keys of other kinds": func(s *authserver.IssuerState) {
			text, _ := json.Marshal(map[string]any{"keys": []any{map[string]any{"kty": "quantum"}, "x", s.Keys[0].JWK()}})
			s.Document = func() []byte { return text }
		},
	} {
		p := newPlace(t, nil)
		p.Change(change)
		if err := p.accepts(t, p.token(nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for name, change := range map[string]func(*oidc.Options){
		"no issuer":            func(o *oidc.Options) { o.Issuer = "" },
		"plain HTTP":           func(o *oidc.Options) { o.Issuer = "http://login.example" },
		"a query":              func(o *oidc.Options) { o.Issuer += "?x" },
		"no audience":          func(o *oidc.Options) { o.Audience = "" },
		"a value named sub":    func(o *oidc.Options) { o.Trusted = map[string]string{"sub": "email"} },
		"a value without name": func(o *oidc.Options) { o.Trusted = map[string]string{"": "email"} },
	} {
		o := &oidc.Options{Issuer: issuer, Audience: audience}
		change(o)
		if _, err := oidc.New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Over HTTP, refusals say what the client needs (MCP 2025-11-25, basic/authorization).
func TestOverHTTP(t *testing.T) {
	p := newPlace(t, func(o *oidc.Options) { o.Scopes = []string{"mcp"} })
	roster, err := ensemble.NewRoster()
	if err != nil {
		t.Fatal(err)
	}
	srv := server.New(roster, &server.Options{
		Authenticate: func(ctx context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
			return p.Verify(ctx, token)
		},
		ResourceMetadata: &server.ResourceMetadata{Resource: audience, AuthorizationServers: []string{issuer}, Scopes: []string{"mcp"}},
	})
	t.Cleanup(func() { srv.Close(context.Background()) })
	good := p.token(map[string]any{"scope": "mcp"})
	const document = `Bearer resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp"`
	send := func(query string, tokens ...string) *httptest.ResponseRecorder {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"t","version":"1"}}}`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://tools.example/mcp"+query, strings.NewReader(body))
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		for _, token := range tokens {
			r.Header.Add("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r)
		return w
	}
	for name, c := range map[string]struct {
		query     string
		tokens    []string
		status    int
		challenge string
	}{
		"good":                       {"", []string{good}, 200, ""},
		"none":                       {"", nil, 401, document + `, scope="mcp"`},
		"two tokens":                 {"", []string{good, good}, 401, document + `, scope="mcp"`},
		"two tokens in one header":   {"", []string{good + ", Bearer " + good}, 401, document + `, error="invalid_token", scope="mcp"`},
		"in the query":               {"?access_token=" + good, nil, 401, document + `, scope="mcp"`},
		"wrong":                      {"", []string{p.token(map[string]any{"aud": "x"})}, 401, document + `, error="invalid_token", scope="mcp"`},
		"without the scope":          {"", []string{p.token(nil)}, 403, document + `, error="insufficient_scope", scope="mcp"`},
		"another token in the query": {"?access_token=x", []string{good}, 200, ""},
	} {
		w := send(c.query, c.tokens...)
		if got := w.Header().Get("WWW-Authenticate"); w.Code != c.status || got != c.challenge {
			t.Errorf("%s: status %d, %s\nwant %d, %s", name, w.Code, got, c.status, c.challenge)
		}
		if strings.Contains(w.Body.String(), "audience") {
			t.Errorf("%s: the caller is told %s", name, w.Body)
		}
	}
	away := newPlace(t, nil)
	away.Change(func(s *authserver.IssuerState) { s.Status = http.StatusBadGateway })
	p.Verifier = away.Verifier
	if w := send("", good); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "10" || w.Header().Get("WWW-Authenticate") != "" {
		t.Errorf("during an outage: status %d, %v", w.Code, w.Header())
	}
}
