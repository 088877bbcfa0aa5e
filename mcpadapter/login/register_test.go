// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/mcpadapter/login"
)

// TestRegistrationThatFails: the error says why, and nothing of a response in which a secret may be.
func TestRegistrationThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		body, says string
	}{
		"a time as a text": {201, `{"client_id":"x","client_secret":"s3cret","client_id_issued_at":"2026-01-01T00:00:00Z"}`, "not a registration"},
		"no client ID":     {200, `{"client_secret":"s3cret"}`, "not a registration"},
		"not JSON":         {201, `s3cret`, "not a registration"},
		"another status":   {403, `{"client_secret":"s3cret"}`, "status 403 Forbidden"},
		"no error code":    {400, `{"client_secret":"s3cret"}`, "status 400 Bad Request"},
		"not JSON, 400":    {400, `s3cret`, "status 400 Bad Request"},
		"a redirect":       {307, `s3cret`, "status 307 Temporary Redirect"},
		"an error":         {400, `{"error":"invalid_redirect_uri","error_description":"only \u001b[1mhttps"}`, "invalid_redirect_uri (only"},
	} {
		t.Run(name, func(t *testing.T) {
			s, network := world(authserver.Behaviour{})
			network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/register" {
					s.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Location", "https://evil.example/register")
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			})
			_, err := newClient(t, network, login.Options{}).Login(within(t), agree(t, network))
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	s, network := world(authserver.Behaviour{})
	network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(w, r)
		delete(network, "auth.example")
	})
	if _, err := newClient(t, network, login.Options{}).Login(within(t), agree(t, network)); err == nil ||
		!strings.Contains(err.Error(), "did not register the client: connection refused") {
		t.Errorf("without an answer, the error is %v", err)
	}
}

// TestRegisteredMethod: the client authenticates as it is registered (RFC 7591, section 3.2.1).
func TestRegisteredMethod(t *testing.T) {
	for method, want := range map[string]string{
		"none": "none", "client_secret_basic": "client_secret_basic", "client_secret_post": "client_secret_post", "": "client_secret_basic",
	} {
		synctest.Test(t, func(t *testing.T) {
			s, network := world(authserver.Behaviour{Device: true})
			basic := false
			network["auth.example"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/register" {
					basic = r.Header.Get("Authorization") != ""
					s.ServeHTTP(w, r)
					return
				}
				honest, answer := httptest.NewRecorder(), map[string]any{}
				s.ServeHTTP(honest, r)
				if err := json.Unmarshal(honest.Body.Bytes(), &answer); err != nil {
					t.Error(err)
				}
				answer["client_secret"], answer["token_endpoint_auth_method"] = "s3cret", method
				w.WriteHeader(honest.Code)
				_ = json.NewEncoder(w).Encode(answer)
			})
			c := newClient(t, network, login.Options{})
			l, err := c.Login(t.Context(), &login.Prompt{Enter: func(context.Context, login.Code) error { s.Enter(); return nil }})
			if err != nil || l.AuthMethod != want || (l.ClientSecret == "") != (want == "none") {
				t.Fatalf("%q: the login is %+v, %v", method, l, err)
			}
			form := s.Forms()[0]
			if basic != (want == "client_secret_basic") || (form.Get("client_secret") == "s3cret") != (want == "client_secret_post") {
				t.Errorf("%q: a token was requested with %v, Authorization %v", method, form, basic)
			}
		})
	}
}

// TestDefaultRedirect: a client that does not register itself has the redirect address that people
// register for it, with any port (RFC 8252, section 7.3).
func TestDefaultRedirect(t *testing.T) {
	for name, test := range map[string]struct {
		behaviour authserver.Behaviour
		options   login.Options
		constant  bool
	}{
		"registered beforehand":       {options: login.Options{ClientID: "known"}, constant: true},
		"metadata document":           {behaviour: authserver.Behaviour{Documents: true}, options: login.Options{ClientMetadata: "https://app.example/c.json"}, constant: true},
		"metadata document, not read": {options: login.Options{ClientMetadata: "https://app.example/c.json"}},
		"registers itself":            {},
	} {
		t.Run(name, func(t *testing.T) {
			_, network := world(test.behaviour)
			errSeen, redirect := errors.New("seen"), ""
			_, err := newClient(t, network, test.options).Login(within(t), &login.Prompt{Visit: func(_ context.Context, address string) error {
				u, err := url.Parse(address)
				redirect = u.Query().Get("redirect_uri")
				return errors.Join(errSeen, err)
			}})
			u, _ := url.Parse(redirect)
			if !errors.Is(err, errSeen) || u.Hostname() != "127.0.0.1" || u.Port() == "" || (u.Path == "/callback") != test.constant {
				t.Errorf("the redirect address is %q, %v", redirect, err)
			}
		})
	}
}

// TestOfflineAccess: the scope of OpenID providers for refresh tokens is added to those that the
// server asks for. It is not requested alone, nor beside the scopes of the configuration.
func TestOfflineAccess(t *testing.T) {
	for name, test := range map[string]struct {
		demanded   string
		configured []string
		want       string
	}{
		"asked for":  {"read", nil, "read offline_access"},
		"none":       {"", nil, ""},
		"configured": {"read", []string{"notes"}, "notes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, network := world(authserver.Behaviour{Demanded: test.demanded, Scopes: []string{"openid", "offline_access"}})
			r, err := newClient(t, network, login.Options{Scopes: test.configured}).Begin(within(t), "http://127.0.0.1/callback")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Scopes, " "); got != test.want || strings.Contains(r.URL, "scope=") != (test.want != "") {
				t.Errorf("the scopes are %q, want %q; the address is %s", got, test.want, r.URL)
			}
		})
	}
}
