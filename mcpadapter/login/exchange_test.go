// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/login"
)

func subject(token string) func(context.Context) (login.Subject, error) {
	return func(context.Context) (login.Subject, error) { return login.Subject{Token: login.Secret(token)}, nil }
}

// The token of a user is exchanged at the issuer of the options, and no refusal asks a person
// to log in.
func TestTokenExchange(t *testing.T) {
	s, network := world(authserver.Behaviour{NoRegistration: true})
	s.AddSubject("adas-token", "ada")
	exchanging := login.Options{Issuer: issuer, ClientID: "gateway", Audience: "mcp", Scopes: []string{"notes"}}
	ada := exchanging
	ada.Subject = subject("adas-token")
	token, err := newClient(t, network, ada).Token(t.Context())
	if err != nil || s.SubjectOf(token) != "ada" || !s.Accepts(token, resource) {
		t.Fatalf("%q, %v", token, err)
	}
	form := s.Forms()[0]
	if form.Get("audience") != "mcp" || form.Get("resource") != resource || form.Get("scope") != "notes" ||
		form.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:access_token" {
		t.Errorf("the request: %v", form)
	}
	for name, get := range map[string]func(context.Context) (login.Subject, error){
		"unknown": subject("eves-token"), "empty": subject(""),
		"failing": func(context.Context) (login.Subject, error) { return login.Subject{}, errors.New("no token") },
	} {
		eve := exchanging
		eve.Subject = get
		token, err := newClient(t, network, eve).Token(t.Context())
		if failure := invoker.AsFailure(err); token != "" || failure.Code != invoker.Unauthorized || errors.Is(err, ensemble.ErrNeedsLogin) ||
			strings.Contains(err.Error(), "eves-token") {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
	s.Fail(func(*http.Request) int { return http.StatusBadGateway })
	if _, err := newClient(t, network, ada).Token(t.Context()); invoker.AsFailure(err).Code != invoker.Unavailable {
		t.Errorf("an outage: %v", err)
	}
}

// With an identity provider, the user's token is sent to it only, and its grant to the server's
// authorization server.
func TestEnterpriseManagedAuthorization(t *testing.T) {
	const idp = "https://idp.example"
	s, network := world(authserver.Behaviour{NoRegistration: true})
	provider := authserver.New(idp, authserver.Behaviour{})
	network["idp.example"] = provider
	provider.AddSubject("id-token-of-ada", "ada")
	s.Trust(provider)
	o := login.Options{
		ClientID: "gateway", Provider: &login.Provider{Issuer: idp, ClientID: "gateway-at-idp", ClientSecret: "at-idp"},
		Subject: func(context.Context) (login.Subject, error) {
			return login.Subject{Token: "id-token-of-ada", Type: "urn:ietf:params:oauth:token-type:id_token"}, nil
		},
	}
	c := newClient(t, network, o)
	token, err := c.Token(t.Context())
	if err != nil || s.SubjectOf(token) != "ada" {
		t.Fatalf("%q, %v", token, err)
	}
	if asked := provider.Forms()[0]; asked.Get("audience") != issuer || asked.Get("resource") != resource {
		t.Errorf("the identity provider was asked for %v", asked)
	}
	for _, form := range s.Forms() {
		if strings.Contains(form.Encode(), "id-token-of-ada") {
			t.Errorf("the authorization server got the user's token: %v", form)
		}
	}
	if text := c.Redact("id-token-of-ada and id-jag-1 and " + token); strings.Contains(text, "id-") || strings.Contains(text, token) {
		t.Errorf("not redacted: %s", text)
	}
	o.Subject = subject("another")
	if _, err := newClient(t, network, o).Token(t.Context()); invoker.AsFailure(err).Code != invoker.Unauthorized {
		t.Errorf("an unknown user: %v", err)
	}
}

// A client authenticates with its key, and a workload with its own token.
func TestClientKey(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, network := world(authserver.Behaviour{NoRegistration: true})
	s.AddKey(&key.PublicKey)
	get := func(o login.Options) error {
		c := newClient(t, network, o)
		return c.Authorize(t.Context(), &http.Request{Header: http.Header{}}, &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody})
	}
	if err := get(login.Options{Machine: true, ClientID: "machine", ClientKey: pemOf(t, key)}); err != nil {
		t.Error(err)
	}
	other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := get(login.Options{Machine: true, ClientID: "machine", ClientKey: pemOf(t, other)}); err == nil ||
		!strings.Contains(err.Error(), "refuses the client") {
		t.Errorf("another key: %v", err)
	}
	s.AddSubject("workload-token", "workload")
	token, err := newClient(t, network, login.Options{Issuer: issuer, Assertion: true, Subject: subject("workload-token")}).Token(t.Context())
	if err != nil || s.SubjectOf(token) != "workload" {
		t.Errorf("a workload: %q, %v", token, err)
	}
}

func pemOf(t *testing.T, key any) login.Secret {
	t.Helper()
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return login.Secret(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func TestOptionsWithoutAPerson(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	large, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	machine := login.Options{URL: resource, Machine: true, ClientID: "machine"}
	for name, c := range map[string]struct {
		change func(*login.Options)
		want   string
	}{
		"RSA":        {func(o *login.Options) { o.ClientKey = pemOf(t, rsaKey) }, ""},
		"Ed25519":    {func(o *login.Options) { o.ClientKey = pemOf(t, edKey) }, ""},
		"P-384":      {func(o *login.Options) { o.ClientKey = pemOf(t, large) }, "P-256"},
		"no PEM":     {func(o *login.Options) { o.ClientKey = "secret-text" }, "PEM"},
		"no key":     {func(*login.Options) {}, "secret or key"},
		"both":       {func(o *login.Options) { o.ClientKey, o.Subject = pemOf(t, edKey), subject("x") }, "either"},
		"no issuer":  {func(o *login.Options) { o.Machine, o.Subject = false, subject("x") }, "set its issuer"},
		"no subject": {func(o *login.Options) { o.ClientKey, o.Provider = pemOf(t, edKey), &login.Provider{} }, "subject"},
		"half a provider": {func(o *login.Options) {
			o.Machine, o.Subject, o.Provider = false, subject("x"), &login.Provider{Issuer: issuer}
		}, "client ID there"},
	} {
		o := machine
		c.change(&o)
		_, err := login.New(&o)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-text")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
