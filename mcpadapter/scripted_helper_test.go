// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// patience bounds each wait of these tests; none waits for it to pass.
const patience = 20 * time.Second

// message is a message that a scripted server received.
type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *jsonrpc.Error
	Header http.Header `json:"-"`
}

// scripted is an MCP server of the protocol 2025-11-25 over HTTP whose answers
// a test writes by hand. It offers the tools "read" (read-only) and "write"
// unless on says otherwise.
type scripted struct {
	*httptest.Server
	// on answers a method: it returns false to leave it to the script below.
	on func(w http.ResponseWriter, r *http.Request, m message) bool

	mu  sync.Mutex
	got []message
}

func newScripted(t *testing.T, on func(w http.ResponseWriter, r *http.Request, m message) bool) *scripted {
	s := &scripted{on: on}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m := message{Method: r.Method, Header: r.Header}
	_ = json.Unmarshal(body, &m)
	s.mu.Lock()
	s.got = append(s.got, m)
	s.mu.Unlock()
	if s.on != nil && s.on(w, r, m) {
		return
	}
	switch m.Method {
	case "initialize":
		reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
	case "tools/list":
		reply(w, m, `{"tools":[{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"write","inputSchema":{"type":"object"}}]}`)
	case "GET", "DELETE":
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// received lists the messages of a method.
func (s *scripted) received(method string) []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []message
	for _, m := range s.got {
		if m.Method == method {
			list = append(list, m)
		}
	}
	return list
}

func reply(w http.ResponseWriter, m message, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func replyError(w http.ResponseWriter, m message, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}

// stream begins an answer that is a stream of events.
func stream(w http.ResponseWriter) (send func(text string)) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return func(text string) {
		fmt.Fprintf(w, "data: %s\n\n", text)
		w.(http.Flusher).Flush()
	}
}

// open opens a source and closes the connection after the test.
func open(t *testing.T, source ensemble.Source) ensemble.Connection {
	t.Helper()
	c, err := source.Open(within(t))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(within(t)) })
	return c
}

// openScripted opens a connection to s.
func openScripted(t *testing.T, s *scripted) ensemble.Connection {
	t.Helper()
	return open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{ClientOptions: mcpadapter.ClientOptions{Protocol: "2025-11-25"}}))
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func tool(t *testing.T, c ensemble.Connection, name string) invoker.Invoker {
	t.Helper()
	listing, err := c.List(within(t))
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for _, i := range listing.Invokers {
		if i.Definition().Name == name {
			return i
		}
	}
	t.Fatalf("no tool %q; aside: %v", name, listing.Aside)
	return nil
}

// code is the failure code of an error, or "" for none.
func code(err error) invoker.Code {
	if err == nil {
		return ""
	}
	return invoker.AsFailure(err).Code
}

// await waits for a channel.
func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing within %s", what, patience)
		panic("unreachable")
	}
}
