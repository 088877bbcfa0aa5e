// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/console"
	"github.com/consort-go/consort/invoker"
)

// The page has the latencies of calls of a server as lines, for half an hour and no longer.
func TestSparklines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, err := invoker.New("slow", "Take a second.", func(context.Context, struct{}) (string, error) {
			time.Sleep(time.Second)
			return "done", nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		roster, err := ensemble.NewRoster(ensemble.New("local", ensemble.LocalSource(slow), nil))
		if err != nil {
			t.Fatal(err)
		}
		c := console.New(console.Options{
			Identify: func(next http.Handler) http.Handler { return next }, Tokens: func() bool { return false }, Roster: roster,
			Caller: func(context.Context) (console.Caller, error) {
				return console.Caller{Name: "ops", Role: console.Operate}, nil
			},
		})
		defer func() {
			c.Close()
			if err := roster.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		linked := httptest.NewRecorder()
		c.ServeHTTP(linked, httptest.NewRequest(http.MethodGet, c.Link("token"), nil))
		page := func() string {
			request := httptest.NewRequest(http.MethodGet, console.Prefix+"/", nil)
			request.AddCookie(linked.Result().Cookies()[0])
			response := httptest.NewRecorder()
			c.ServeHTTP(response, request)
			return response.Body.String()
		}
		time.Sleep(time.Minute)
		if text := page(); strings.Contains(text, "<svg") || !strings.Contains(text, "0 calls") {
			t.Errorf("before the first call:\n%s", text)
		}
		catalog, err := roster.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := catalog.Tools()[0].Invoke(t.Context(), &invoker.Call{Arguments: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		text := page()
		for _, want := range []string{"1 call ", "p50 1s, p99 1s", `class="spark"`, "p99 at most 1s", `class="p50" points="`} {
			if !strings.Contains(text, want) {
				t.Errorf("the page lacks %q:\n%s", want, text)
			}
		}
		if calls := strings.Count(text, `class="calls"`); calls != 1 {
			t.Errorf("%d moments have calls", calls)
		}
		time.Sleep(2 * time.Hour)
		text = page()
		_, points, _ := strings.Cut(text, `class="p50" points="`)
		points, _, _ = strings.Cut(points, `"`)
		if n := len(strings.Fields(points)); n != 120 || !strings.HasPrefix(points, "0,") || strings.Contains(text, `class="calls"`) {
			t.Errorf("after two hours there are %d samples: %s", n, points)
		}
	})
}
