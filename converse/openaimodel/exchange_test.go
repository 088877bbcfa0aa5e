// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const hello = `data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}

data: [DONE]

`

// serve answers each request with what respond writes.
func serve(t testing.TB, respond func(n int, w http.ResponseWriter, r *http.Request)) *httptest.Server {
	t.Helper()
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(int(n.Add(1)), w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestRetriesAreVisible: each retry is an event.
func TestRetriesAreVisible(t *testing.T) {
	for _, test := range []struct {
		name     string
		status   int
		header   map[string]string
		body     string
		attempts int
		wait     time.Duration
	}{
		{name: "asked in milliseconds", status: 429, header: map[string]string{"Retry-After-Ms": "20"}, attempts: 3, wait: 20 * time.Millisecond},
		{name: "asked in seconds", status: 503, header: map[string]string{"Retry-After": "0"}, attempts: 3},
		{name: "asked for too long", status: 429, header: map[string]string{"Retry-After": "300"}, attempts: 1},
		{name: "conflict", status: 409, header: map[string]string{"Retry-After": "0.01"}, attempts: 3, wait: 10 * time.Millisecond},
		{name: "bad request", status: 400, header: map[string]string{"Retry-After": "0"}, attempts: 1},
		{name: "bad request to try again", status: 400, header: map[string]string{"Retry-After": "0", "X-Should-Retry": "true"}, attempts: 3},
		{name: "server error not to try again", status: 500, header: map[string]string{"X-Should-Retry": "false"}, attempts: 1},
		{
			name: "no more money", status: 429, header: map[string]string{"Retry-After": "0"},
			body: `{"error":{"code":"insufficient_quota","message":"Pay."}}`, attempts: 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var attempts atomic.Int32
			server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				attempts.Add(1)
				for name, value := range test.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
			if n := int(attempts.Load()); n != test.attempts || len(got.Retries) != test.attempts-1 {
				t.Errorf("%d attempts and %d events, want %d attempts", n, len(got.Retries), test.attempts)
			}
			for i, retry := range got.Retries {
				var failed *converse.ModelError
				if retry.Attempt != i+1 || retry.Wait != test.wait || !errors.As(retry.Err, &failed) || failed.Status != test.status {
					t.Errorf("event %+v", retry)
				}
			}
			var failed *converse.ModelError
			if !errors.As(got.Err, &failed) || failed.Status != test.status {
				t.Errorf("error %v", got.Err)
			}
		})
	}
}

// TestWaitInAMessage: the server asks for a wait in its message, with a status or in a stream.
func TestWaitInAMessage(t *testing.T) {
	for _, test := range []struct {
		status  int
		header  http.Header
		message string
		want    time.Duration // 0 for the usual wait
	}{
		{200, nil, "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 5.448s.", 5448 * time.Millisecond},
		{429, nil, "Rate limit reached for m. Please try again in 20ms. Visit https://platform.openai.com.", 20 * time.Millisecond},
		{429, nil, "Rate limit reached for model `m`. Please try again in 1m12.5s. Need more tokens?", 72500 * time.Millisecond},
		{429, nil, "You exceeded your current quota, please check your plan and billing details. \\nPlease retry in 26.25s.", 26250 * time.Millisecond},
		{429, nil, "Requests have exceeded the token rate limit. Please retry after 26 seconds.", 26 * time.Second},
		{429, http.Header{"Retry-After": {"3"}}, "Please try again in 5s.", 3 * time.Second},
		{503, nil, "Please try again in 30 minutes or later.", 0},
		{503, nil, "Please try again in 30 milliseconds.", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				r.Body.Close()
				body := io.NopCloser(strings.NewReader(`{"error":{"message":"` + test.message + `","code":"rate_limit_exceeded"}}`))
				return &http.Response{StatusCode: test.status, Header: test.header, Body: body, Request: r}, nil
			})}
			got := modeltest.Run(t.Context(), newModel(t, "http://localhost", openaimodel.Options{HTTPClient: client}), newRequest())
			if len(got.Retries) != 2 {
				t.Fatalf("%d retries, %v", len(got.Retries), got.Err)
			}
			if wait := got.Retries[0].Wait; test.want != 0 && wait != test.want || test.want == 0 && wait > 500*time.Millisecond {
				t.Errorf("the wait is %v, want %v: %s", wait, test.want, test.message)
			}
		})
	}
	long := func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"error":{"message":"Please try again in 7m12s."}}`)
	}
	if got := modeltest.Run(t.Context(), newModel(t, serve(t, long).URL, openaimodel.Options{}), newRequest()); len(got.Retries) != 0 || got.Err == nil {
		t.Errorf("%d retries after a server asked for 7 minutes, %v", len(got.Retries), got.Err)
	}
}

// TestAmendedRequestsAreNoRetries: a request that was changed because of a refusal does not count
// against MaxRetries.
func TestAmendedRequestsAreNoRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			requests++
			status, body := 503, `{"error":{"message":"Overloaded."}}`
			switch requests {
			case 1:
				status, body = 400, `{"error":{"message":"Unknown parameter: stream_options."}}`
			case 4:
				status, body = 200, hello
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})}
		got := modeltest.Run(t.Context(), newModel(t, "http://localhost", openaimodel.Options{HTTPClient: client}), newRequest())
		if got.Err != nil || requests != 4 || len(got.Retries) != 3 {
			t.Fatalf("%d requests and %d events, %v", requests, len(got.Retries), got.Err)
		}
		if first := got.Retries[1].Wait; first > 500*time.Millisecond {
			t.Errorf("the first wait is %v", first)
		}
	})
}

// TestRetryComesBeforeTheWait: leaving the loop at the event ends the wait.
func TestRetryComesBeforeTheWait(t *testing.T) {
	var attempts atomic.Int32
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		attempts.Add(1)
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for event, err := range newModel(t, server.URL, openaimodel.Options{}).Exchange(ctx, newRequest()) {
		if retry, ok := event.(converse.Retry); !ok || err != nil || retry.Wait != time.Minute {
			t.Fatalf("%+v, %v", event, err)
		}
		break
	}
	if ctx.Err() != nil || attempts.Load() != 1 {
		t.Errorf("%v after %d attempts", ctx.Err(), attempts.Load())
	}
}

// TestWaitIsAsSaid: the next request comes when the event has said that it would.
func TestWaitIsAsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Time
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			sent = append(sent, time.Now())
			return &http.Response{StatusCode: 500, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})}
		got := modeltest.Run(t.Context(), newModel(t, "http://localhost", openaimodel.Options{HTTPClient: client}), newRequest())
		if len(got.Retries) != 2 || len(sent) != 3 {
			t.Fatalf("%d events, %d requests", len(got.Retries), len(sent))
		}
		for i, retry := range got.Retries {
			longest := 500 * time.Millisecond << i
			if waited := sent[i+1].Sub(sent[i]); waited != retry.Wait || waited < longest*3/4 || waited > longest {
				t.Errorf("the event says %v, and the next request came after %v", retry.Wait, waited)
			}
		}
	})
}

// TestCancelledWait: a caller that gives up during the wait gets its own error.
func TestCancelledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			requests++
			return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"60"}}, Body: http.NoBody, Request: r}, nil
		})}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		got := modeltest.Run(ctx, newModel(t, "http://localhost", openaimodel.Options{HTTPClient: client}), newRequest())
		if !errors.Is(got.Err, context.DeadlineExceeded) || !strings.Contains(got.Err.Error(), "cancelled") || len(got.Retries) != 1 || requests != 1 {
			t.Errorf("%v after %d requests, %d events", got.Err, requests, len(got.Retries))
		}
	})
}

// TestCancelledAsItAnswers: what arrives after the caller has given up is not read.
func TestCancelledAsItAnswers(t *testing.T) {
	for _, status := range []int{200, 400} {
		ctx, cancel := context.WithCancel(t.Context())
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			cancel()
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(hello)), Request: r}, nil
		})}
		got := modeltest.Run(ctx, newModel(t, "http://localhost", openaimodel.Options{HTTPClient: client}), newRequest())
		if !errors.Is(got.Err, context.Canceled) || len(got.Retries) != 0 {
			t.Errorf("%d: %v, %d events", status, got.Err, len(got.Retries))
		}
	}
}

// TestOpenAfterTheEnd: an answer without content is an error that is retried, also if the
// server does not close the connection after it.
func TestOpenAfterTheEnd(t *testing.T) {
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 2 {
			io.WriteString(w, hello)
			return
		}
		io.WriteString(w, "data: [DONE]\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{MaxRetries: 1}), newRequest())
	if got.Err != nil || len(got.Retries) != 1 || !strings.Contains(got.Retries[0].Err.Error(), "ended without an answer") {
		t.Errorf("%v, retries %v", got.Err, got.Retries)
	}
}

// TestBadCertificate: a certificate that is not valid will not be a moment later.
func TestBadCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{}), newRequest())
	var failed *converse.ModelError
	if !errors.As(got.Err, &failed) || failed.Retryable || len(got.Retries) != 0 || !strings.Contains(failed.Message, "certificate") {
		t.Errorf("%v after %d retries", got.Err, len(got.Retries))
	}
}

// TestSent: what a request has besides its body.
func TestSent(t *testing.T) {
	var got *http.Request
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		got = r
		io.WriteString(w, hello)
	})
	options := openaimodel.Options{
		APIKey: "k-1234", Organization: "org-1", Project: "proj-1",
		Headers: map[string]string{"user-agent": "mine", "Authorization": "Basic mine", "X-Own": "own"},
	}
	for _, base := range []string{"/v1", "/v1/"} {
		if run := modeltest.Run(t.Context(), newModel(t, server.URL+base+"?b=2&a=1&a=%20", options), newRequest()); run.Err != nil {
			t.Fatal(run.Err)
		}
		if got.Method != http.MethodPost || got.RequestURI != "/v1/chat/completions?a=1&a=+&b=2" {
			t.Errorf("%s %s", got.Method, got.RequestURI)
		}
		for name, want := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "mine", "Authorization": "Basic mine",
			"OpenAI-Organization": "org-1", "OpenAI-Project": "proj-1", "X-Own": "own",
		} {
			if values := got.Header.Values(name); len(values) != 1 || values[0] != want {
				t.Errorf("%s is %q, want %q", name, values, want)
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	got := modeltest.Run(t.Context(), newModel(t, server.URL+"?key=planted-secret", openaimodel.Options{MaxRetries: 1}), newRequest())
	var failed *converse.ModelError
	if !errors.As(got.Err, &failed) || failed.Status != 0 || !failed.Retryable || len(got.Retries) != 1 {
		t.Fatalf("%v, %d retries", got.Err, len(got.Retries))
	}
	if wait := got.Retries[0].Wait; strings.Contains(got.Err.Error(), "planted") || wait < 375*time.Millisecond || wait > 500*time.Millisecond {
		t.Errorf("%v, %v", got.Err, got.Retries[0].Wait)
	}
}

// An error that quotes the request does not show the secrets that options put into it.
func TestErrorsWithoutSecretsOfOptions(t *testing.T) {
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what could not be read is not quoted
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": "Cannot use " + string(body[max(0, len(body)-250):])}})
	})
	for name, options := range map[string]openaimodel.Options{
		"hosted tool": {API: "responses", HostedTools: []map[string]any{{
			"type": "mcp", "server_url": "https://mcp.example/", "authorization": "planted-1234", "headers": map[string]string{"X-Api-Key": "planted-5678"},
		}}},
		"extra body": {API: "chat", ExtraBody: map[string]any{"zz_backend": map[string]any{"api_key": "planted-1234"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := modeltest.Run(t.Context(), newModel(t, server.URL, options), newRequest())
			if got.Err == nil || strings.Contains(got.Err.Error(), "planted") || !strings.Contains(got.Err.Error(), "[secret]") {
				t.Errorf("%v", got.Err)
			}
		})
	}
}

// TestErrors: what a failure says, without what it must not say.
func TestErrors(t *testing.T) {
	const key = "sk-planted-key-123"
	for _, test := range []struct {
		name, body    string
		status        int
		message, code string
	}{
		{
			"openai", `{"error":{"message":"Too long.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 400,
			"Too long.", "context_length_exceeded",
		},
		{"echoes the key", `{"error":{"message":"Bad key ` + key + `.","code":"invalid_api_key"}}`, 401, "Bad key [secret].", "invalid_api_key"},
		{"fastapi", `{"detail":"no such route"}`, 404, "no such route", converse.CodeAddress},
		{"text", `upstream   is` + "\n" + `down`, 502, "upstream is down", ""},
		{"string", `{"error":"model not found"}`, 404, "model not found", converse.CodeModelNotFound},
		{"list", `[{"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT"}}]`, 400, "Bad.", "400"},
		{"nothing", ``, 500, "Internal Server Error", ""},
		{"huge", strings.Repeat("x", 1<<20), 500, strings.Repeat("x", 297) + "…", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Request-Id", "req-7")
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{APIKey: key, MaxRetries: -1}), newRequest())
			var failed *converse.ModelError
			if !errors.As(got.Err, &failed) {
				t.Fatal(got.Err)
			}
			want := converse.ModelError{
				Message: test.message, Status: test.status, Code: test.code, RequestID: "req-7", Retryable: test.status >= 500, Advice: failed.Advice,
			}
			if *failed != want {
				t.Errorf("got %+v\nwant %+v", *failed, want)
			}
		})
	}
}

// Short secrets are found too in what the server says.
func TestErrorsHaveNoShortSecrets(t *testing.T) {
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"error":{"message":"Bad: %s, %s, %s"}}`, r.Header.Get("Authorization")[len("Bearer "):],
			r.Header.Get("X-Key"), r.URL.Query().Get("code"))
	})
	options := openaimodel.Options{APIKey: "k-1234", Headers: map[string]string{"X-Key": "h-12345"}, MaxRetries: -1}
	got := modeltest.Run(t.Context(), newModel(t, server.URL+"?code=q-12345", options), newRequest())
	if got.Err == nil || !strings.Contains(got.Err.Error(), "Bad: [secret], [secret], [secret]") {
		t.Error(got.Err)
	}
}

// A stream that breaks off within an event after the model has said why it stopped
// is whole, and before that it has broken off: the half of an event is no wrong one.
func TestHalfAnEvent(t *testing.T) {
	for begin, want := range map[string]string{
		hello: "", strings.Split(hello, `,"finish_reason":"stop"`)[0] + "}]}\n\n": "the stream broke off",
	} {
		begin, _, _ = strings.Cut(begin, "data: [DONE]")
		for _, half := range []string{`data: {"choices":[],"usa`, "data: {\ndata: \"choices\":[]"} {
			server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, begin+half) })
			got := modeltest.Run(t.Context(), newModel(t, server.URL, openaimodel.Options{MaxRetries: -1}), newRequest())
			if text := fmt.Sprint(got.Err); want == "" && got.Err != nil || !strings.Contains(text, want) {
				t.Errorf("%q: %v", begin+half, got.Err)
			}
		}
	}
}

// TestSecretsStay: what the environment holds for OpenAI goes nowhere else, and
// no environment variable changes where requests go.
func TestSecretsStay(t *testing.T) {
	planted := map[string]string{
		"OPENAI_API_KEY": "sk-planted", "OPENAI_ADMIN_KEY": "planted-admin", "OPENAI_ORG_ID": "planted-org",
		"OPENAI_PROJECT_ID": "planted-project", "OPENAI_CUSTOM_HEADERS": "X-Planted: planted-header",
		"OPENAI_WEBHOOK_SECRET": "planted-hook", "OPENAI_BASE_URL": "http://127.0.0.1:1/planted",
	}
	for name, value := range planted {
		t.Setenv(name, value)
	}
	var seen http.Header
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		io.WriteString(w, hello)
	})
	for _, options := range []openaimodel.Options{{}, {APIKey: "own-key"}, {Headers: map[string]string{"X-Own": "own"}}} {
		if got := modeltest.Run(t.Context(), newModel(t, server.URL, options), newRequest()); got.Err != nil {
			t.Fatal(got.Err)
		}
		if text := fmt.Sprint(seen); strings.Contains(text, "planted") {
			t.Errorf("the environment leaks: %s", text)
		}
		want := ""
		if options.APIKey != "" {
			want = "Bearer own-key"
		}
		if seen.Get("Authorization") != want || seen.Get("X-Own") != options.Headers["X-Own"] {
			t.Errorf("%+v sends %v", options, seen)
		}
	}
}

// roundTrip is a transport that answers itself.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestKeyForOpenAI: the environment's key goes to OpenAI, by https, and the
// environment's base URL does not change that.
func TestKeyForOpenAI(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-planted")
	t.Setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
	for base, want := range map[string]string{
		"":                               "Bearer sk-planted",
		"https://eu.api.openai.com/v1":   "Bearer sk-planted",
		"http://api.openai.com/v1":       "",
		"https://api.openai.com.evil/v1": "",
		"https://example.com/v1":         "",
	} {
		var host, got string
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			host, got = r.URL.Host, r.Header.Get("Authorization")
			r.Body.Close()
			answer := hello
			if strings.HasSuffix(r.URL.Path, "/responses") {
				answer = `{"object":"response","status":"completed","output":[]}`
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		})}
		if out := modeltest.Run(t.Context(), newModel(t, base, openaimodel.Options{HTTPClient: client}), newRequest()); out.Err != nil {
			t.Fatal(base, out.Err)
		}
		if got != want || host == "elsewhere.example" {
			t.Errorf("%q: sent %q to %q", base, got, host)
		}
	}
}

// TestRedirects are followed within an origin and nowhere else.
func TestRedirects(t *testing.T) {
	var stolen atomic.Bool
	thief := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		stolen.Store(true)
		io.WriteString(w, hello)
	})
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/away"):
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, "/near"):
			http.Redirect(w, r, "/v1/chat/completions", http.StatusTemporaryRedirect)
		default:
			body, _ := io.ReadAll(r.Body)
			if !json.Valid(body) || r.Header.Get("X-Own") == "" {
				w.WriteHeader(http.StatusBadRequest)
			}
			io.WriteString(w, hello)
		}
	})
	options := openaimodel.Options{APIKey: "k", Headers: map[string]string{"X-Own": "own"}}
	if got := modeltest.Run(t.Context(), newModel(t, server.URL+"/near", options), newRequest()); got.Err != nil {
		t.Error(got.Err)
	}
	got := modeltest.Run(t.Context(), newModel(t, server.URL+"/away", options), newRequest())
	var failed *converse.ModelError
	if !errors.As(got.Err, &failed) || failed.Status != http.StatusTemporaryRedirect || failed.Retryable || len(got.Retries) != 0 || stolen.Load() {
		t.Errorf("%v, stolen %v", got.Err, stolen.Load())
	}
}

// TestSilence: a server that says nothing does not hold an exchange for ever.
func TestSilence(t *testing.T) {
	done := make(chan struct{})
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/begin/chat/completions":
			io.WriteString(w, strings.Split(hello, `,"finish_reason":"stop"`)[0]+"}]}\n\n")
			w.(http.Flusher).Flush()
		}
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	defer close(done)
	for _, path := range []string{"/head", "/begin"} {
		options := openaimodel.Options{ResponseTimeout: 50 * time.Millisecond, IdleTimeout: 50 * time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		got := modeltest.Run(ctx, newModel(t, server.URL+path, options), newRequest())
		cancel()
		var failed *converse.ModelError
		if !errors.As(got.Err, &failed) || !failed.Retryable || !strings.Contains(failed.Message, "50ms") || got.Replies != 0 {
			t.Errorf("%s: %v", path, got.Err)
		}
	}
}

// TestDeltasComeAtOnce: a delta is yielded before the next is sent.
func TestDeltasComeAtOnce(t *testing.T) {
	heard := make(chan struct{})
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		for range 20 {
			io.WriteString(w, `data: {"choices":[{"delta":{"content":"word "}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-heard:
			case <-r.Context().Done():
			}
		}
		io.WriteString(w, hello)
	})
	deltas := 0
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for event, err := range newModel(t, server.URL, openaimodel.Options{}).Exchange(ctx, newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := event.(converse.Delta); ok && deltas < 20 {
			deltas++
			heard <- struct{}{}
		}
	}
}

// TestSilenceAfterTheEnd: a server that has said all, and then hangs, has
// still said all. After [DONE] that is so at once, before that after a while.
func TestSilenceAfterTheEnd(t *testing.T) {
	for path, idle := range map[string]time.Duration{"/finish": 50 * time.Millisecond, "/done": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			client := modeltest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				text := hello
				if r.URL.Path == "/finish/chat/completions" {
					text, _, _ = strings.Cut(hello, "data: [DONE]")
				}
				io.WriteString(w, text)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}))
			options := openaimodel.Options{HTTPClient: client, IdleTimeout: idle}
			got := modeltest.Run(t.Context(), newModel(t, "http://localhost"+path, options), newRequest())
			if got.Err != nil || got.Replies != 1 || got.Text != "Hello." {
				t.Errorf("%s: %+v", path, got)
			}
		})
	}
}

// A server that has said all, and then sends only signs of life, has said all after a while.
func TestSignsOfLifeAfterTheEnd(t *testing.T) {
	finished, _, _ := strings.Cut(hello, "data: [DONE]")
	for _, sign := range []string{": alive\n\n", `data: {"choices":[]}` + "\n\n"} {
		for _, idle := range []time.Duration{0, -1, 15 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				client := modeltest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					text := finished
					for {
						io.WriteString(w, text)
						w.(http.Flusher).Flush()
						text = sign
						select {
						case <-r.Context().Done():
							return
						case <-time.After(3 * time.Second):
						}
					}
				}))
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				options := openaimodel.Options{HTTPClient: client, IdleTimeout: idle}
				got := modeltest.Run(ctx, newModel(t, "http://localhost", options), newRequest())
				if took := time.Since(began); got.Err != nil || got.Replies != 1 || got.Text != "Hello." || took > 11*time.Second {
					t.Errorf("%q, %s: after %s: %+v", sign, idle, took, got)
				}
			})
		}
	}
}

// TestCancel: the end of the context, and leaving the loop, end the request.
func TestCancel(t *testing.T) {
	gone := make(chan struct{}, 2)
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, strings.Split(hello, `,"finish_reason":"stop"`)[0]+"}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	})
	model := newModel(t, server.URL, openaimodel.Options{})
	for range model.Exchange(t.Context(), newRequest()) {
		break
	}
	<-gone
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range model.Exchange(ctx, newRequest()) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Error(last)
	}
	<-gone
}

// TestLimits: an answer has a bound, and so has each of its events.
func TestLimits(t *testing.T) {
	endless := func(w http.ResponseWriter, piece string) {
		for {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	}
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/line/chat/completions":
			endless(w, "data: "+strings.Repeat("x", 1000))
		case "/event/chat/completions":
			endless(w, "data: "+strings.Repeat("x", 1000)+"\n")
		case "/comments/chat/completions":
			endless(w, ": alive\n\n")
		case "/json/chat/completions":
			endless(w, `{"choices":[`)
		case "/space/chat/completions":
			endless(w, "     ")
		case "/calls/chat/completions":
			call := `{"function":{"name":"f","arguments":"{}"}}`
			io.WriteString(w, `{"choices":[{"message":{"tool_calls":[`+strings.Repeat(call+",", 600)+call+`]}}]}`)
		}
	})
	for _, path := range []string{"/line", "/event", "/comments", "/json", "/space", "/calls"} {
		options := openaimodel.Options{MaxEventBytes: 10_000, MaxAnswerBytes: 200_000}
		got := modeltest.Run(t.Context(), newModel(t, server.URL+path, options), newRequest())
		var failed *converse.ModelError
		if !errors.As(got.Err, &failed) || failed.Retryable || got.Replies != 0 || len(got.Retries) != 0 {
			t.Errorf("%s: %v", path, got.Err)
		}
	}
}

// TestWholeEqualsStreamed: the two ways to ask give the same answers.
func TestWholeEqualsStreamed(t *testing.T) {
	call := []openaiserver.Call{{ID: "call_a", Name: "f", Arguments: `{"x":1}`}, {ID: "call_b", Name: "g", Arguments: `{"y":`}}
	for name, message := range map[string]openaiserver.Message{
		"text": {
			Text: "Hello there, this is rather long.", Usage: &openaiserver.Usage{PromptTokens: 5, CompletionTokens: 7, CachedTokens: 2, ReasoningTokens: 1},
		},
		"reasoning": {Text: "Yes.", Reasoning: "Let me think about it."},
		"refusal":   {Refusal: "I will not do that, sorry."},
		"calls":     {Calls: call},
		"both":      {Text: "One moment.", Calls: call},
		"length":    {Text: "I was sa", Finish: "length"},
		"cut call":  {Calls: call, Finish: "length"},
		"filtered":  {Text: "I", Finish: "content_filter"},
		"empty":     {Finish: "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			if message.Usage == nil {
				message.Usage = &openaiserver.Usage{PromptTokens: 3, CompletionTokens: 4}
			}
			server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: message}}}, nil)
			streamed := modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{}), newRequest())
			whole := modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{NoStream: true}), newRequest())
			if a, b := describe(t, streamed), describe(t, whole); a != b || streamed.Err != nil {
				t.Errorf("streamed: %s\nwhole:    %s", a, b)
			}
		})
	}
}

// The calls of a refused answer do not run.
func TestRefusedCalls(t *testing.T) {
	message := openaiserver.Message{Text: "I", Calls: []openaiserver.Call{{ID: "c", Name: "f", Arguments: "{}"}}, Finish: "refusal"}
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: message}}}, nil)
	for _, whole := range []bool{false, true} {
		got := modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{NoStream: whole}), newRequest())
		if got.Err != nil || got.Reply.Message.Finish != canister.FinishRefusal || len(got.Reply.Invocations) > 0 {
			t.Errorf("whole %v: %s", whole, describe(t, got))
		}
	}
}

func describe(t *testing.T, o modeltest.Outcome) string {
	t.Helper()
	reply, err := json.Marshal(o.Reply)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%q %q %q %s %v", o.Text, o.Reasoning, o.Began, reply, o.Err)
}

// TestRequestFields: each option is where the API looks for it.
func TestRequestFields(t *testing.T) {
	var body []byte
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		io.WriteString(w, hello)
	})
	tools := &converse.Toolset{Definitions: []*invoker.Definition{{Name: "f", Description: "Does.", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
	const (
		system  = `{"messages":[{"role":"user","content":"Hello?"}]`
		stream  = `,"model":"m-1","stream":true,"stream_options":{"include_usage":true}`
		offered = `,"tools":[{"type":"function","function":{"name":"f","description":"Does.","parameters":{"properties":{},"type":"object"}}}]`
	)
	yes := true
	for _, test := range []struct {
		name    string
		options openaimodel.Options
		change  func(*converse.Request)
		want    string
	}{
		{name: "nothing", want: system + stream + "}"},
		{name: "whole", options: openaimodel.Options{NoStream: true}, want: system + `,"model":"m-1"}`},
		{name: "no usage", options: openaimodel.Options{NoStreamUsage: true}, want: system + `,"model":"m-1","stream":true}`},
		{
			name: "all",
			options: openaimodel.Options{
				NoStream: true, Temperature: new(0.0), TopP: new(0.5), MaxTokens: 9, Stop: []string{"<"}, Seed: new(int64(7)), ReasoningEffort: "low",
				ResponseFormat: &openaimodel.ResponseFormat{Schema: json.RawMessage(`{"type":"object"}`), Strict: true},
				ExtraBody:      map[string]any{"top_k": 3, "top_p": nil},
			},
			want: system +
				`,"max_tokens":9,"model":"m-1","reasoning_effort":"low","response_format":{"json_schema":{"name":"answer",` +
				`"schema":{"type":"object"},"strict":true},"type":"json_schema"},"seed":7,"stop":["<"],"temperature":0,"top_k":3,"top_p":null}`,
		},
		{
			name: "json", options: openaimodel.Options{NoStream: true, ResponseFormat: &openaimodel.ResponseFormat{}},
			want: system + `,"model":"m-1","response_format":{"type":"json_object"}}`,
		},
		{name: "tools", change: func(r *converse.Request) { r.Tools = tools }, want: system + stream + offered + "}"},
		{
			name:    "tools chosen",
			options: openaimodel.Options{ToolChoice: "f", ParallelToolCalls: &yes},
			change:  func(r *converse.Request) { r.Tools = tools },
			want:    system + stream + offered + `,"parallel_tool_calls":true,"tool_choice":{"type":"function","function":{"name":"f"}}}`,
		},
		{
			name:    "no invocations",
			options: openaimodel.Options{ToolChoice: "required"},
			change:  func(r *converse.Request) { r.Tools, r.NoInvocations = tools, true },
			want:    system + stream + offered + `,"tool_choice":"none"}`,
		},
		{
			name:    "choices without tools",
			options: openaimodel.Options{ToolChoice: "required", ParallelToolCalls: &yes},
			change:  func(r *converse.Request) { r.Tools = nil },
			want:    system + stream + "}",
		},
		{
			name: "more tokens elsewhere", options: openaimodel.Options{
				NoStream: true, MaxTokens: 3, MaxTokensField: "num_predict",
			}, want: system + `,"model":"m-1","num_predict":3}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := newRequest()
			if test.change != nil {
				test.change(request)
			}
			if got := modeltest.Run(t.Context(), newModel(t, server.URL, test.options), request); got.Err != nil {
				t.Fatal(got.Err)
			}
			if string(body) != test.want {
				t.Errorf("got  %s\nwant %s", body, test.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for name, options := range map[string]openaimodel.Options{
		"BaseURL":                      {BaseURL: "localhost:8080"},
		"user, a password":             {BaseURL: "http://user:planted@host/v1"},
		"Temperature":                  {Temperature: new(-1.0)},
		"MaxTokens":                    {MaxTokens: -1},
		"ExtraBody":                    {ExtraBody: map[string]any{"messages": nil}},
		"chan":                         {ExtraBody: map[string]any{"x": make(chan int)}},
		"ResponseFormat":               {ResponseFormat: &openaimodel.ResponseFormat{Schema: json.RawMessage(`{`)}},
		"APIKey contains a line break": {APIKey: "planted\n"},
		"header":                       {Headers: map[string]string{"X Y": "z"}},
		"MaxEventBytes is -1; it ":     {MaxEventBytes: -1, TopP: new(-1.0)},
	} {
		_, err := openaimodel.New("m", &options)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := openaimodel.New("", nil); err == nil {
		t.Error("a model without a name")
	}
	model := newModel(t, "", openaimodel.Options{})
	for _, request := range []*converse.Request{nil, {}} {
		if got := modeltest.Run(t.Context(), model, request); got.Err == nil {
			t.Error("a request that cannot be was sent")
		}
	}
	broken := newRequest(canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i"})
	if got := modeltest.Run(t.Context(), model, broken); got.Err == nil || !strings.Contains(got.Err.Error(), "Repair") {
		t.Error(got.Err)
	}
}

// TestSideBySide: one model serves many conversations at the same time.
func TestSideBySide(t *testing.T) {
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Hello."}}}, Repeat: true}, nil)
	model := newModel(t, server.URL(), openaimodel.Options{})
	bound := model.Bind()
	var wait sync.WaitGroup
	for range 50 {
		for _, m := range []converse.Model{model, model.Bind(), bound} {
			wait.Go(func() {
				if got := modeltest.Run(context.Background(), m, newRequest()); got.Err != nil || got.Text != "Hello." {
					t.Error(got.Err, got.Text)
				}
			})
		}
	}
	wait.Wait()
	if faults := server.Faults(); faults != nil {
		t.Error(faults)
	}
}

// TestConnectionsAreKept: exchanges one after another need one connection, although the end of
// a stream comes a little after its last event.
func TestConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := modeltest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			io.WriteString(w, hello)
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}))
		connections := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
			if !got.Reused {
				connections++
			}
		}})
		model := newModel(t, "http://localhost", openaimodel.Options{HTTPClient: client})
		for range 20 {
			if got := modeltest.Run(ctx, model, newRequest()); got.Err != nil {
				t.Fatal(got.Err)
			}
		}
		if connections != 1 {
			t.Errorf("%d connections", connections)
		}
	})
}

// What is added to the request of an exchange is not in the next one.
func TestRequestsStayApart(t *testing.T) {
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "localhost" || r.Header.Get("X-Added") != "" {
			t.Errorf("a request to %s with %v", r.URL, r.Header)
		}
		r.URL.Host = "elsewhere"
		r.Header.Set("X-Added", "by the program's client")
		r.Body.Close()
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(hello)), Request: r}, nil
	})}
	model := newModel(t, "http://localhost/v1", openaimodel.Options{HTTPClient: client})
	for range 2 {
		if got := modeltest.Run(t.Context(), model, newRequest()); got.Err != nil {
			t.Error(got.Err)
		}
	}

	var sent []string
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Traceparent"))
		fmt.Fprint(w, hello)
	})
	seen, err := telemetry.New(&telemetry.Options{Tracers: sdktrace.NewTracerProvider()})
	if err != nil {
		t.Fatal(err)
	}
	traced, span := telemetry.StartAgent(telemetry.With(t.Context(), seen), "", telemetry.ModelInfo{})
	defer span.End(telemetry.AgentResult{})
	model = newModel(t, server.URL, openaimodel.Options{TraceHeaders: true})
	for _, ctx := range []context.Context{traced, t.Context()} {
		if got := modeltest.Run(ctx, model, newRequest()); got.Err != nil {
			t.Error(got.Err)
		}
	}
	if len(sent) != 2 || sent[0] == "" || sent[1] != "" {
		t.Errorf("the traceparents sent are %q, want one in the first request only", sent)
	}
}
