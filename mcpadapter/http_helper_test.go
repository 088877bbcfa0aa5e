// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/mcpadapter"
)

// switcher is a handler that can be changed while it serves.
type switcher struct {
	mu      sync.Mutex
	current http.Handler
}

func newSwitch(h http.Handler) *switcher { return &switcher{current: h} }

func (s *switcher) set(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = h
}

func (s *switcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.current
	s.mu.Unlock()
	h.ServeHTTP(w, r)
}

// openScripted opens a connection to s.
func openScripted(t *testing.T, s *mcptest.Scripted) ensemble.Connection {
	t.Helper()
	return mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}}))
}

// newSSE starts a server over HTTP with SSE whose only tool is "write". A call of it may send
// its answer, or another message, to out, or whole events, which have a blank line.
func newSSE(t *testing.T, call func(w http.ResponseWriter, m mcptest.Message, out chan<- string)) *httptest.Server {
	out := make(chan string, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: endpoint\ndata: /messages\n\n")
			for {
				w.(http.Flusher).Flush()
				select {
				case text := <-out:
					if strings.HasSuffix(text, "\n\n") {
						fmt.Fprint(w, text)
						continue
					}
					fmt.Fprintf(w, "event: message\ndata: %s\n\n", text)
				case <-r.Context().Done():
					return
				}
			}
		}
		m := mcptest.Message{Header: r.Header}
		_ = json.NewDecoder(r.Body).Decode(&m)
		switch m.Method {
		case "initialize":
			out <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},`+
				`"serverInfo":{"name":"s","version":"1"}}}`, m.ID)
		case "tools/list":
			out <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"write"}]}}`, m.ID)
		case "tools/call", "ping":
			call(w, m, out)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}
