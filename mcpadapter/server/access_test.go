// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

// After SetAccess a new token works and an old one does not, a stream of a client without
// a token ends, and that of a client who keeps its token continues.
func TestSetAccess(t *testing.T) {
	const ada, ben, eve = "the-token-of-ada", "the-token-of-ben", "the-token-of-eve"
	user := invoker.NewTrusted[string]("user_id")
	tokens := func(of map[string]string) (all []server.BearerToken) {
		for token, id := range of {
			all = append(all, server.BearerToken{Token: token, Trusted: []invoker.Value{user.Value(id)}})
		}
		return all
	}
	srv := newServer(t, &server.Options{Tokens: tokens(map[string]string{ada: "ada", ben: "ben"})}, adder(t))
	web := httptest.NewServer(srv.Handler())
	t.Cleanup(web.Close)
	t.Cleanup(func() { srv.Close(context.Background()) })
	send := func(method, token, session, body string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, web.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Accept", "application/json, text/event-stream")
		request.Header.Set("Content-Type", "application/json")
		if session != "" {
			request.Header.Set("Mcp-Session-Id", session)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"t","version":"1"}}}`
	stream := func(token string) io.Reader {
		t.Helper()
		begun := send(http.MethodPost, token, "", hello)
		waiting := send(http.MethodGet, token, begun.Header.Get("Mcp-Session-Id"), "")
		if waiting.StatusCode != http.StatusOK {
			t.Fatalf("the stream of %s: %s", token, waiting.Status)
		}
		return waiting.Body
	}
	kept, ended := stream(ada), stream(ben)
	srv.SetAccess(&server.Options{Tokens: tokens(map[string]string{ada: "ada", eve: "eve"}), Rate: 1000, Hosts: []string{"127.0.0.1"}})
	if _, err := io.ReadAll(ended); err != nil {
		t.Errorf("the stream without a token: %v", err)
	}
	for token, want := range map[string]int{ada: http.StatusOK, ben: http.StatusUnauthorized, eve: http.StatusOK} {
		if got := send(http.MethodPost, token, "", hello); got.StatusCode != want {
			t.Errorf("%s: %s", token, got.Status)
		}
	}
	over := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(kept)
		over <- err
	}()
	select {
	case <-over:
		t.Error("the stream of a client who keeps its token has ended")
	case <-time.After(20 * time.Millisecond):
	}
	srv.SetAccess(&server.Options{Tokens: tokens(map[string]string{ada: "somebody else"})})
	if err := <-over; err != nil {
		t.Errorf("the stream of a token that now belongs to another: %v", err)
	}
	srv.SetAccess(&server.Options{Hosts: []string{"tools.example.com"}})
	if got := send(http.MethodPost, ada, "", hello); got.StatusCode != http.StatusForbidden {
		t.Errorf("another name: %s", got.Status)
	}
}

// A token that does not count any longer when the body of its request has arrived is
// refused, as is one that then belongs to another caller.
func TestSetAccessWhileABodyArrives(t *testing.T) {
	const token = "the-token-of-ada"
	user := invoker.NewTrusted[string]("user_id")
	is := func(id string) *server.Options {
		return &server.Options{Authenticate: func(context.Context, string, *http.Request) (string, []invoker.Value, error) {
			return "", []invoker.Value{user.Value(id)}, nil
		}}
	}
	for name, test := range map[string]struct {
		access *server.Options
		want   int
	}{
		"gone":    {&server.Options{Tokens: []server.BearerToken{{Token: "the-token-of-ben"}}}, http.StatusUnauthorized},
		"another": {is("ben"), http.StatusUnauthorized},
		"kept":    {is("ada"), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			checked := make(chan struct{}, 1)
			srv := newServer(t, &server.Options{Authenticate: func(_ context.Context, _ string, _ *http.Request) (string, []invoker.Value, error) {
				checked <- struct{}{}
				return "", []invoker.Value{user.Value("ada")}, nil
			}}, adder(t))
			web := httptest.NewServer(srv.Handler())
			defer srv.Close(context.Background())
			defer web.Close()
			body, rest := io.Pipe()
			go func() {
				<-checked
				srv.SetAccess(test.access)
				_, _ = io.WriteString(rest, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				rest.Close()
			}()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
			request.Header.Set("Accept", "application/json, text/event-stream")
			request.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != test.want {
				t.Errorf("%s", response.Status)
			}
		})
	}
}

// A stream is checked again with the request as it came: with the values that a handler around
// the server gave to its context, and with its header, whatever a handler makes of it.
func TestStreamsAreCheckedAsTheyCame(t *testing.T) {
	type key struct{}
	user, asked := invoker.NewTrusted[string]("user_id"), make(chan string, 8)
	options := &server.Options{Authenticate: func(ctx context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
		value, _ := ctx.Value(key{}).(string)
		asked <- token + " " + value
		return "", []invoker.Value{user.Value(value)}, nil
	}}
	srv := newServer(t, options, adder(t))
	for name, handler := range map[string]http.Handler{
		"MCP": srv.Handler(),
		"another": srv.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Authorization")
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})),
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handler.ServeHTTP(w, r.WithContext(context.WithValue(invoker.WithTrusted(r.Context(), user.Value("ada")), key{}, "ada")))
			}))
			defer web.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			send := func(method, session, body string) *http.Response {
				request, err := http.NewRequestWithContext(ctx, method, web.URL, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				for name, value := range map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json",
					"Authorization": "Bearer token", "Mcp-Session-Id": session} {
					request.Header.Set(name, value)
				}
				response, err := http.DefaultClient.Do(request)
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("%v, %v", response, err)
				}
				return response
			}
			session := ""
			if name == "MCP" {
				begun := send(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
					`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
				defer begun.Body.Close()
				session = begun.Header.Get("Mcp-Session-Id")
			}
			waiting := send(http.MethodGet, session, "")
			defer waiting.Body.Close()
			for len(asked) > 0 {
				<-asked
			}
			srv.SetAccess(options)
			select {
			case got := <-asked:
				if got != "token ada" {
					t.Errorf("it is checked with %q", got)
				}
			case <-time.After(mcptest.Patience):
				t.Error("it is not checked")
			}
		})
	}
}
