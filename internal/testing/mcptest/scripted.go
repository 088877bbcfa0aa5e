// SPDX-License-Identifier: Apache-2.0

package mcptest

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
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Patience bounds each wait of these tests; none waits for it to pass.
const Patience = time.Minute

// Message is a message that a scripted server received.
type Message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *jsonrpc.Error
	Header http.Header `json:"-"`
}

// Scripted is an MCP server of the protocol 2025-11-25 over HTTP whose answers
// a test writes by hand. It offers the tools "read" (read-only) and "write"
// unless on says otherwise.
type Scripted struct {
	*httptest.Server
	// on answers a method: it returns false to leave it to the script below.
	on func(w http.ResponseWriter, r *http.Request, m Message) bool

	mu  sync.Mutex
	got []Message
}

// NewScripted starts a server that runs until the test ends. on answers a request; it
// returns false to leave the answer to the script. It may be nil.
func NewScripted(t *testing.T, on func(w http.ResponseWriter, r *http.Request, m Message) bool) *Scripted {
	s := &Scripted{on: on}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m := Message{Method: r.Method, Header: r.Header}
	_ = json.Unmarshal(body, &m)
	s.mu.Lock()
	s.got = append(s.got, m)
	s.mu.Unlock()
	if s.on != nil && s.on(w, r, m) {
		return
	}
	switch m.Method {
	case "initialize":
		Reply(w, m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
	case "tools/list":
		Reply(w, m, `{"tools":[{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"write","inputSchema":{"type":"object"}}]}`)
	case "GET", "DELETE":
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// Received returns the messages of a method that have arrived, or all if method is
// empty.
func (s *Scripted) Received(method string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	for _, m := range s.got {
		if method == "" || m.Method == method {
			list = append(list, m)
		}
	}
	return list
}

// Reply answers a request with a result.
func Reply(w http.ResponseWriter, m Message, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// ReplyError answers a request with an error.
func ReplyError(w http.ResponseWriter, m Message, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}

// StartStream begins an answer that is a stream of events.
func StartStream(w http.ResponseWriter) (send func(text string)) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return func(text string) {
		fmt.Fprintf(w, "data: %s\n\n", text)
		w.(http.Flusher).Flush()
	}
}

// Open opens a source and closes the connection after the test.
func Open(t *testing.T, source ensemble.Source) ensemble.Connection {
	t.Helper()
	c, err := source.Open(Within(t))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(Within(t)) })
	return c
}

// Within returns a context that ends after Patience.
func Within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Tool returns the tool of a name.
func Tool(t *testing.T, c ensemble.Connection, name string) invoker.Invoker {
	t.Helper()
	listing, err := c.List(Within(t))
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

// CodeOf returns the failure code of an error, or "" for none.
func CodeOf(err error) invoker.Code {
	if err == nil {
		return ""
	}
	return invoker.AsFailure(err).Code
}

// Await returns the next value of a channel.
func Await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("%s: nothing within %s", what, Patience)
		panic("unreachable")
	}
}

// RawCall returns a call with JSON arguments.
func RawCall(arguments string) *invoker.Call {
	return &invoker.Call{Arguments: json.RawMessage(arguments)}
}

// Returns fails the test if do does not return within a minute.
func Returns(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not return", what)
	}
}
