// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := ensembletest.NewTool("slow", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			var d time.Duration
			fmt.Sscan(string(call.Arguments), (*int64)(&d))
			pause(ctx, d)
			return invoker.Output{}, ctx.Err()
		})
		source := ensembletest.NewSource(slow, ensembletest.Fails("bad", errDied), ensembletest.Returns("no", ""))
		e := ensemble.New("e", source, &ensemble.Options{Deny: []string{"no"}, Required: true, Redact: func(text string) string {
			return strings.ReplaceAll(text, "secret", "***")
		}})
		roster := newRoster(t, e, answering("other", "x"))

		born := time.Now()
		h := roster.Health()
		if source.Count(ensembletest.Open) != 0 || !h.Live || !h.Ready || h.Ensembles[0].State != ensemble.Idle || h.Ensembles[1].Name != "other" {
			t.Errorf("at first: %+v", h)
		}
		time.Sleep(time.Second)
		tool := toolOf(t, e, "slow")
		for i := range 1000 { // the newest 256 take 745 to 1000 ms
			tool.Invoke(t.Context(), &invoker.Call{Arguments: fmt.Append(nil, int64(time.Duration(i+1)*time.Millisecond))})
		}
		success := time.Now()
		invoke(t.Context(), toolOf(t, e, "bad"))
		source.Lose(fmt.Errorf("secret: %w", errDied))
		namesOf(t, e)
		want := ensemble.EnsembleHealth{
			Name: "e", State: ensemble.Ready, Since: time.Now(), Required: true, LastSuccess: success,
			LastError: `ensemble "e": the connection was lost: ***: the server died: exit status 3`,
			Latency:   ensemble.Latency{P50: 872 * time.Millisecond, P99: 998 * time.Millisecond},
			Calls:     1001, Failures: 1, Restarts: 1, Tools: 2,
			Aside: []ensemble.Aside{{Tool: "no", Reason: `the deny list has "no"`}},
		}
		if got := roster.Health().Ensembles[0]; !reflect.DeepEqual(got, want) {
			t.Errorf("the health is\n%+v, want\n%+v", got, want)
		}
		if !success.After(born) {
			t.Error("no time passed")
		}
	})
}

// TestReady follows the ensembles that are required, and no others.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := ensemble.Restart{Policy: ensemble.RestartNever}
		needed, extra := ensembletest.NewSource(), ensembletest.NewSource()
		roster := newRoster(t,
			ensemble.New("needed", needed, &ensemble.Options{Required: true, Restart: never}),
			ensemble.New("extra", extra, &ensemble.Options{Restart: never}))
		ready := func(want bool) {
			t.Helper()
			if h := roster.Health(); h.Ready != want || !h.Live {
				t.Errorf("the health is %+v, want ready %v", h, want)
			}
		}
		if err := roster.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		ready(true)
		extra.Lose(errDied)
		synctest.Wait()
		ready(true)
		needed.Lose(errDied)
		synctest.Wait()
		ready(false)
		if err := roster.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		ready(true)
		needed.Lose(errDied)
		extra.Lose(errDied)
		synctest.Wait()
		ready(false)
		if got := fmt.Sprint(roster.Health().Reasons); got != `[ensemble "needed" is required and parked; it stays so until it is revived]` {
			t.Errorf("the reasons are %s", got)
		}
		roster.Close(t.Context())
		if h := roster.Health(); h.Live || h.Ready {
			t.Errorf("after Close: %+v", h)
		}
	})
}

// A required ensemble connects again without a use, which a load balancer would not send. Without
// a required one, the next use connects, so it must be sent.
func TestReadyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		needed, extra := ensembletest.NewSource(), ensembletest.NewSource()
		roster := newRoster(t, ensemble.New("needed", needed, &ensemble.Options{Required: true}))
		alone := newRoster(t, ensemble.New("extra", extra, nil))
		if err := errors.Join(roster.Connect(t.Context()), alone.Connect(t.Context())); err != nil {
			t.Fatal(err)
		}
		needed.Fail(ensembletest.Open, 2, errDied)
		needed.Lose(errDied)
		synctest.Wait()
		if got := fmt.Sprint(roster.Health().Reasons); got != `[ensemble "needed" is required and lost; it connects again by itself]` {
			t.Errorf("the reasons are %s", got)
		}
		time.Sleep(time.Minute)
		if h := roster.Health(); !h.Ready || needed.Count(ensembletest.Open) != 4 {
			t.Errorf("after %d attempts: %+v", needed.Count(ensembletest.Open), h)
		}
		extra.Fail(ensembletest.Open, 1, errDied)
		extra.Lose(errDied)
		synctest.Wait()
		if h := alone.Health(); !h.Ready {
			t.Errorf("after a loss: %v", h.Reasons)
		}
		if _, err := alone.Catalog(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h := alone.Health(); h.Ready {
			t.Errorf("a moment after a failed attempt: %+v", h)
		}
		time.Sleep(time.Second)
		if h := alone.Health(); !h.Ready || h.Ensembles[0].State != ensemble.Lost {
			t.Errorf("when another attempt is due: %+v", h)
		}
	})
}

// The attempts that a required ensemble makes by itself do not keep a use from trying, and with
// RestartNever there are none.
func TestUseOfARequiredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := ensembletest.NewSource()
		roster := newRoster(t, ensemble.New("needed", source, &ensemble.Options{Required: true}))
		if err := roster.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		source.Fail(ensembletest.Open, 1000, errDied)
		source.Lose(errDied)
		time.Sleep(3 * time.Minute)
		source.Fail(ensembletest.Open, 0, nil)
		if _, err := roster.Catalog(t.Context()); err != nil {
			t.Errorf("right after the repair: %v", err)
		}

		login := ensembletest.NewSource()
		never := newRoster(t, ensemble.New("never", login, &ensemble.Options{Required: true, Restart: ensemble.Restart{Policy: ensemble.RestartNever}}))
		login.Fail(ensembletest.Open, 1000, ensemble.ErrNeedsLogin)
		if err := never.Connect(t.Context()); err == nil {
			t.Fatal("it has connected")
		}
		time.Sleep(3 * time.Minute)
		if n := login.Count(ensembletest.Open); n != 1 {
			t.Errorf("with RestartNever there are %d attempts", n)
		}
	})
}

// While a required ensemble connects, and when none is left, the roster is not ready.
func TestNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := ensemble.Restart{Policy: ensemble.RestartNever}
		needed := ensembletest.NewSource()
		release := needed.Hang(ensembletest.Open, false)
		extra := ensembletest.NewSource()
		roster := newRoster(t, ensemble.New("needed", needed, &ensemble.Options{Required: true, Restart: never}))
		alone := newRoster(t, ensemble.New("extra", extra, &ensemble.Options{Restart: never}))
		draining := ""
		handler := roster.HealthHandler(func() string { return draining })
		ask := func(handler http.Handler, status int, want string) {
			t.Helper()
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
			if w.Code != status || strings.TrimSpace(w.Body.String()) != want {
				t.Errorf("status %d, %s; want %d, %s", w.Code, w.Body, status, want)
			}
		}
		go roster.Connect(t.Context())
		synctest.Wait()
		ask(handler, 503, `{"ready":false,"reasons":["ensemble \"needed\" is required and connecting"]}`)
		release()
		synctest.Wait()
		ask(handler, 200, `{"ready":true}`)
		draining = "it ends"
		ask(handler, 503, `{"ready":false,"reasons":["it ends"]}`)
		if err := alone.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask(alone.HealthHandler(), 200, `{"ready":true}`)
		extra.Lose(errDied)
		synctest.Wait()
		ask(alone.HealthHandler(), 503, `{"ready":false,"reasons":["no ensemble is ready"]}`)
	})
}

func TestHealthHandler(t *testing.T) {
	source := ensembletest.NewSource(ensembletest.Echo())
	e := ensemble.New("e", source, &ensemble.Options{Required: true})
	roster := newRoster(t, e)
	handler := roster.HealthHandler()
	get := func(method, path string, status int) string {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != status {
			t.Errorf("%s %s: status %d, want %d", method, path, w.Code, status)
		}
		if status != 404 && status != 405 && (w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store") {
			t.Errorf("%s: the header is %v", path, w.Header())
		}
		return w.Body.String()
	}
	get("GET", "/health/mcp", http.StatusOK)
	if body := get("GET", "/readyz", http.StatusOK); body != "{\"ready\":true}\n" {
		t.Errorf("the body is %q", body)
	}
	get("POST", "/health/mcp", http.StatusMethodNotAllowed)
	get("GET", "/", http.StatusNotFound)
	if source.Count(ensembletest.Open) != 0 {
		t.Error("it connected")
	}
	source.Fail(ensembletest.Open, 1, errDied)
	e.Connect(t.Context())
	body := get("GET", "/health/mcp", http.StatusServiceUnavailable)
	var h ensemble.Health
	if err := json.Unmarshal([]byte(body), &h); err != nil || h.Ready || !h.Live || h.Ensembles[0].State != ensemble.Lost {
		t.Errorf("%v in %s", err, body)
	}
	if strings.Contains(body, "last_success") || !strings.Contains(body, `"aside":[]`) {
		t.Errorf("the body is %s", body)
	}
	get("GET", "/livez", http.StatusOK)
	roster.Close(t.Context())
	get("GET", "/livez", http.StatusServiceUnavailable)
}
