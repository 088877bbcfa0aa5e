// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

// Identify lets known callers pass, with their values, and ends a stream whose token was
// withdrawn; Others answers at the other paths.
func TestIdentify(t *testing.T) {
	const ada = "the-token-of-ada"
	user := invoker.NewTrusted[string]("user_id")
	mux := http.NewServeMux()
	tokens := []server.BearerToken{{Token: ada, Name: "ada", Trusted: []invoker.Value{user.Value("ada")}}}
	srv := newServer(t, &server.Options{Tokens: tokens, Others: mux}, adder(t))
	mux.Handle("/page", srv.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := user.From(r.Context())
		fmt.Fprint(w, id)
	})))
	mux.Handle("/stream", srv.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begun\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.ServeListener(ctx, listener) }()
	send := func(path string, header ...string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	bearer := []string{"Authorization", "Bearer " + ada}
	for _, c := range []struct {
		path   string
		header []string
		status int
	}{
		{"/page", bearer, http.StatusOK},
		{"/page", nil, http.StatusUnauthorized},
		{"/page", []string{"Authorization", "Bearer wrong"}, http.StatusUnauthorized},
		{"/page", append([]string{"Origin", "https://foreign.example"}, bearer...), http.StatusForbidden},
		{"/other", bearer, http.StatusNotFound},
		{"/mcp", nil, http.StatusUnauthorized},
	} {
		response := send(c.path, c.header...)
		text, _ := io.ReadAll(response.Body)
		if response.StatusCode != c.status || c.status == http.StatusOK && string(text) != "ada" {
			t.Errorf("%s %q: %s %s", c.path, c.header, response.Status, text)
		}
	}
	stream := send("/stream", append([]string{"Accept", "text/event-stream"}, bearer...)...)
	srv.SetAccess(&server.Options{Tokens: []server.BearerToken{{Token: "another-token"}}})
	if text, err := io.ReadAll(stream.Body); err != nil || !strings.HasPrefix(string(text), "begun") {
		t.Errorf("the stream: %q, %v", text, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
