// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
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
