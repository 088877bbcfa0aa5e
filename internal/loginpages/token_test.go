// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/mcpadapter/login"
)

// TestTokensThatAreNotChecked: a token that the gateway cannot check now is not a wrong one, and does not void the link; wrong
// tokens do. It turns red if identityOfToken returns errNotValid for each refusal.
func TestTokensThatAreNotChecked(t *testing.T) {
	refusal := 0
	p := New(&Options{
		Base: func() string { return "http://127.0.0.1:8080" },
		Identify: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if refusal != 0 {
					http.Error(w, "refused", refusal)
					return
				}
				identity, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
				next.ServeHTTP(w, r.WithContext(access.WithIdentity(r.Context(), identity)))
			})
		},
		Identity: func(ctx context.Context) (string, bool) { return access.IdentityFrom(ctx), true },
	})
	post := func(path, token string) (status int, text string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, p.base()+path, strings.NewReader(url.Values{"token": {token}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		p.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		refusal, status int
		text            string
	}{
		{http.StatusTooManyRequests, http.StatusServiceUnavailable, "cannot check this token at the moment"},
		{http.StatusServiceUnavailable, http.StatusServiceUnavailable, "cannot check this token at the moment"},
		{http.StatusUnauthorized, http.StatusForbidden, "is not valid at this gateway"},
		{http.StatusForbidden, http.StatusForbidden, "is not valid at this gateway"},
		{0, http.StatusForbidden, "belongs to another client"},
	} {
		err := p.Login(t.Context(), Request{Server: "notes", Client: "ada", Identity: "ada", Begin: func(context.Context, string) (*login.Redirect, error) {
			return &login.Redirect{URL: "https://issuer.example/authorize"}, nil
		}})
		_, link, _ := strings.Cut(err.Error(), p.base())
		path, _, _ := strings.Cut(link, " ")
		refusal = c.refusal
		for range maxWrong {
			if status, text := post(path, "ben"); status != c.status || !strings.Contains(text, c.text) {
				t.Fatalf("%d: %d %s", c.refusal, status, text)
			}
		}
		want := http.StatusSeeOther
		if refusal = 0; c.status == http.StatusForbidden {
			want = http.StatusForbidden
		}
		if status, text := post(path, "ada"); status != want || status == http.StatusForbidden && !strings.Contains(text, "too many wrong tokens") {
			t.Errorf("%d: then the right token gets %d %s", c.refusal, status, text)
		}
	}
}
