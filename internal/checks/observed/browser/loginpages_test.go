// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/loginpages"
	"github.com/consort-go/consort/mcpadapter/login"
)

// A browser sends the form of a login page so that the page accepts it, and goes on to the
// authorization server without telling it the link.
func TestLoginPage(t *testing.T) {
	const token = "token-of-ada-0123456789"
	referrer := make(chan string, 10)
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/authorize" {
			referrer <- r.Header.Get("Referer")
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<main>the authorization server</main>"))
		}
	}))
	t.Cleanup(issuer.Close)
	var pages *loginpages.Pages
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { pages.ServeHTTP(w, r) }))
	t.Cleanup(gateway.Close)
	pages = loginpages.New(&loginpages.Options{
		Base: func() string { return gateway.URL },
		Identify: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") == "Bearer "+token {
					next.ServeHTTP(w, r.WithContext(access.WithIdentity(r.Context(), "ada")))
				}
			})
		},
		Identity: func(ctx context.Context) (string, bool) { return access.IdentityFrom(ctx), true },
	})
	ctx := open(t)
	err := pages.Login(t.Context(), loginpages.Request{Server: "notes", Client: "ada", Identity: "ada", Begin: func(context.Context, string) (*login.Redirect, error) {
		return &login.Redirect{URL: issuer.URL + "/authorize"}, nil
	}})
	_, link, _ := strings.Cut(err.Error(), "open ")
	link, _, _ = strings.Cut(link, " ")
	run(t, ctx, chromedp.Navigate(link), chromedp.WaitVisible(chromedp.CSS("input")), chromedp.SendKeys(chromedp.CSS("input"), token),
		chromedp.Click(chromedp.CSS("button")), chromedp.WaitReady(chromedp.CSS("main, .problem, body > p:only-of-type")))
	if got := value(t, ctx, chromedp.Text(chromedp.CSS("body"))); !strings.Contains(got, "the authorization server") {
		t.Fatalf("the page after the form: %s", got)
	}
	if got := <-referrer; got != "" {
		t.Errorf("the authorization server is told %s", got)
	}
}
