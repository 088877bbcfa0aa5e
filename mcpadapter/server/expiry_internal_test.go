// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// A stream ends soon after its token has expired, and not while the token cannot be checked: of
// MCP, and of a handler next to it, whatever the request accepts. The client is told why.
func TestStreamsEndWithTheirToken(t *testing.T) {
	var phase atomic.Int32 // the token is good, cannot be checked, has expired
	checked := make(chan struct{}, 1)
	authenticate := func(context.Context, string, *http.Request) (string, []invoker.Value, error) {
		switch phase.Load() {
		case 1:
			select {
			case checked <- struct{}{}:
			default:
			}
			return "", nil, invoker.Failf(invoker.Unavailable, "The issuer is away.")
		case 2:
			return "", nil, errors.New("the token of ada has expired, a secret text")
		}
		return "ada", nil, nil
	}
	roster, err := ensemble.NewRoster()
	if err != nil {
		t.Fatal(err)
	}
	srv := New(roster, &Options{Authenticate: authenticate, Stateless: true})
	t.Cleanup(func() {
		_ = srv.Close(context.WithoutCancel(t.Context()))
		_ = roster.Close(context.WithoutCancel(t.Context()))
	})
	srv.waiting.Every = time.Millisecond
	mux := http.NewServeMux()
	mux.Handle("/mcp", srv.Handler())
	mux.Handle("/events", srv.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: begun\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})))
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	listen := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	for name, open := range map[string]func() (*http.Request, error){
		"MCP": func() (*http.Request, error) {
			return http.NewRequest(http.MethodPost, web.URL+"/mcp", strings.NewReader(listen))
		},
		"events":            func() (*http.Request, error) { return http.NewRequest(http.MethodGet, web.URL+"/events", nil) },
		"events for anyone": func() (*http.Request, error) { return http.NewRequest(http.MethodGet, web.URL+"/events", nil) },
	} {
		phase.Store(0)
		request, err := open()
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer token")
		request.Header.Set("Content-Type", "application/json")
		if request.Header.Set("Accept", "application/json, text/event-stream"); name == "events for anyone" {
			request.Header.Set("Accept", "*/*")
		}
		if name == "MCP" {
			request.Header.Set("Mcp-Protocol-Version", "2026-07-28")
			request.Header.Set("Mcp-Method", "subscriptions/listen")
		}
		response, err := (&http.Client{Timeout: time.Minute}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		body := bufio.NewReader(response.Body)
		if first, err := body.ReadString('\n'); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %q, %v", name, response.Status, first, err)
		}
		phase.Store(1)
		<-checked
		<-checked
		phase.Store(2)
		rest, err := io.ReadAll(body)
		if err != nil || !strings.HasSuffix(string(rest), "\n: this stream ends: the token is not valid any longer\n\n") {
			t.Errorf("%s ends with %q, %v", name, rest, err)
		}
		select {
		case <-checked:
		default:
		}
	}
}

// Before 2026-07-28 there is no request that waits for notifications, alone or in a batch, where
// nothing would end it with its token.
func TestNoStreamsInBatches(t *testing.T) {
	srv := New(nil, &Options{Token: "token"})
	t.Cleanup(func() { _ = srv.Close(context.WithoutCancel(t.Context())) })
	web := httptest.NewServer(srv.Handler())
	t.Cleanup(web.Close)
	send := func(session, protocol, body string) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Authorization": "Bearer token", "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", sessionHeader: session, protocolHeader: protocol} {
			if value != "" {
				request.Header.Set(name, value)
			}
		}
		response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Errorf("%s: %s, %v", body, text, err)
		}
		return response, string(text)
	}
	const listen = `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`
	for _, wanted := range []string{"2025-03-26", "2026-07-28"} { // the client may ask for a version that it does not get
		begun, _ := send("", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+wanted+
			`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		for _, body := range []string{"[" + listen + "]", listen} {
			if _, text := send(begun.Header.Get(sessionHeader), "2025-03-26", body); !strings.Contains(text, "-32601") {
				t.Errorf("%s in a session of %s: %s", body, wanted, text)
			}
		}
	}
}
