// SPDX-License-Identifier: Apache-2.0

package loginpages

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestCookies: over TLS, another host of the domain cannot plant the cookie of its own login.
func TestCookies(t *testing.T) {
	for base, want := range map[string]http.Cookie{
		"https://tools.example.com": {Name: "__Host-consort_login", Path: "/", Secure: true},
		"http://127.0.0.1:8080":     {Name: "consort_login", Path: "/login/"},
	} {
		p := New(&Options{Base: func() string { return base }})
		w := httptest.NewRecorder()
		p.remember(w, "ann")
		cookie := w.Result().Cookies()[0]
		if cookie.Name != want.Name || cookie.Path != want.Path || cookie.Secure != want.Secure || cookie.Domain != "" || !cookie.HttpOnly {
			t.Errorf("%s: %v", base, cookie)
		}
		identity := func(name string) string {
			r := httptest.NewRequest(http.MethodGet, base+"/login/x", nil)
			r.AddCookie(&http.Cookie{Name: name, Value: cookie.Value})
			return p.identityOf(r)
		}
		if got := identity(want.Name); got != "ann" {
			t.Errorf("%s: the browser is %q", base, got)
		}
		if want.Secure && identity("consort_login") != "" {
			t.Errorf("%s: a cookie that any host of the domain can set counts", base)
		}
	}
}
