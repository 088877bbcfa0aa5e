// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var user = invoker.NewTrusted[string]("user")

// trusting opens a connection to s that sends the trusted values of its calls.
func trusting(t *testing.T, s *mcptest.Scripted) ensemble.Connection {
	t.Helper()
	return mcptest.Open(t, mcpadapter.HTTP(s.URL, &mcpadapter.HTTPOptions{
		ClientOptions:  mcpadapter.ClientOptions{Protocol: "2025-11-25"},
		BearerToken:    "of-the-program",
		TrustedHeaders: map[string]string{"X-User": "user"},
	}))
}

// mirror answers calls with the header that came with them, once two are there.
func mirror(t *testing.T) (s *mcptest.Scripted, both *sync.WaitGroup) {
	both = new(sync.WaitGroup)
	s = mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/call" {
			return false
		}
		both.Done()
		both.Wait()
		mcptest.Reply(w, m, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, r.Header.Get("X-User")))
		return true
	})
	return s, both
}

// TestTrustedHeaders: calls of two users at the same time, over one connection,
// carry each their own header, and nothing else carries any.
func TestTrustedHeaders(t *testing.T) {
	s, both := mirror(t)
	both.Add(2)
	c := trusting(t, s)
	read := mcptest.Tool(t, c, "read")
	var all sync.WaitGroup
	for _, name := range []string{"ada", "bob"} {
		all.Go(func() {
			out, err := read.Invoke(invoker.WithTrusted(mcptest.Within(t), user.Value(name)), &invoker.Call{})
			if err != nil || len(out.Content) != 1 || !strings.Contains(fmt.Sprint(out.Content[0]), name) {
				t.Errorf("the call of %s: %v, %v", name, out.Content, err)
			}
		})
	}
	all.Wait()
	for _, m := range s.Received("") {
		if has := m.Header.Get("X-User") != ""; has != (m.Method == "tools/call") {
			t.Errorf("%s has the header: %v", m.Method, has)
		}
	}
}

// TestTrustedHeaderMissing: without the value, or with an invalid one, nothing is sent.
func TestTrustedHeaderMissing(t *testing.T) {
	s, both := mirror(t)
	both.Add(1)
	c := trusting(t, s)
	read := mcptest.Tool(t, c, "read")
	if needs := read.Definition().Needs; len(needs) != 1 || needs[0] != "user" {
		t.Errorf("the tool needs %q", needs)
	}
	for _, value := range []string{"", "ada\r\nX-Admin: yes", " ada"} {
		ctx := mcptest.Within(t)
		if value != "" {
			ctx = invoker.WithTrusted(ctx, user.Value(value))
		}
		_, err := read.Invoke(ctx, &invoker.Call{})
		if mcptest.CodeOf(err) != invoker.Unauthorized || value != "" && strings.Contains(err.Error(), value) {
			t.Errorf("the value %q: %v", value, err)
		}
	}
	if n := len(s.Received("tools/call")); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
	if _, err := read.Invoke(invoker.WithTrusted(mcptest.Within(t), user.Value("ada")), &invoker.Call{}); err != nil {
		t.Errorf("a call afterwards: %v", err)
	}
}

// TestTrustedHeaderOfRead: reads carry it, lists do not.
func TestTrustedHeaderOfRead(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, _ *http.Request, m mcptest.Message) bool {
		switch m.Method {
		case "initialize":
			mcptest.Reply(w, m,
				`{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"scripted","version":"1"}}`)
		case "resources/list":
			mcptest.Reply(w, m, `{"resources":[{"uri":"file:///a","name":"a"}]}`)
		case "resources/read":
			mcptest.Reply(w, m, `{"contents":[{"uri":"file:///a","text":"A"}]}`)
		case "resources/subscribe":
			mcptest.Reply(w, m, `{}`)
		default:
			return false
		}
		return true
	})
	c := trusting(t, s).(ensemble.Library)
	ctx := invoker.WithTrusted(mcptest.Within(t), user.Value("ada"))
	_, err1 := c.Resources(ctx)
	_, err2 := c.Read(ctx, "file:///a")
	if err3 := c.Subscribe(ctx, "file:///a"); err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	for method, want := range map[string]string{"resources/list": "", "resources/read": "ada", "resources/subscribe": ""} {
		if got := s.Received(method)[0].Header.Get("X-User"); got != want {
			t.Errorf("%s has the header %q, want %q", method, got, want)
		}
	}
	if _, err := c.Read(mcptest.Within(t), "file:///a"); mcptest.CodeOf(err) != invoker.Unauthorized ||
		!strings.Contains(err.Error(), `needs the trusted value "user"`) {
		t.Errorf("a read without the user: %v", err)
	}
}

// TestTrustedHeaderRedirected: a redirect within the origin, which other
// requests follow, is refused.
func TestTrustedHeaderRedirected(t *testing.T) {
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		if m.Method != "tools/call" || r.URL.Path != "/" {
			return false
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		return true
	})
	read := mcptest.Tool(t, trusting(t, s), "read")
	_, err := read.Invoke(invoker.WithTrusted(mcptest.Within(t), user.Value("ada")), &invoker.Call{})
	if mcptest.CodeOf(err) != invoker.Protocol || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("a call that is redirected: %v", err)
	}
	if calls := s.Received("tools/call"); len(calls) != 1 {
		t.Errorf("%d requests were sent", len(calls))
	}
}

// TestTrustedHeaderBesideACall: the interrupted stream of a call is resumed with the same
// person's header; the answer to a question and the common stream have no such header.
func TestTrustedHeaderBesideACall(t *testing.T) {
	asked, answered := make(chan mcptest.Message, 1), make(chan mcptest.Message, 1)
	s := mcptest.NewScripted(t, func(w http.ResponseWriter, r *http.Request, m mcptest.Message) bool {
		switch {
		case m.Method == "tools/call":
			asked <- m
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w,
				"id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\","+
					"\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}\n\n")
			w.(http.Flusher).Flush()
			mcptest.Await(t, "the answer", answered) // then the stream is cut
		case m.Method == "GET" && r.Header.Get("Last-Event-ID") == "1":
			mcptest.StartStream(w)(`{"jsonrpc":"2.0","id":` + string((<-asked).ID) + `,"result":{"content":[]}}`)
		case m.Method == "GET":
			mcptest.StartStream(w)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case m.Method == "POST" && m.ID != nil:
			w.WriteHeader(http.StatusAccepted)
			answered <- m
		default:
			return false
		}
		return true
	})
	read := mcptest.Tool(t, trusting(t, s), "read")
	ctx := invoker.WithTrusted(mcptest.Within(t), user.Value("ada"))
	asks := func(context.Context, *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
		return &invoker.ElicitResult{Action: invoker.Accept}, nil
	}
	if _, err := read.Invoke(ctx, &invoker.Call{Person: asks}); err != nil {
		t.Fatal(err)
	}
	streams := s.Received("GET")
	if len(streams) != 2 {
		t.Fatalf("%d streams were asked for", len(streams))
	}
	for _, m := range append(streams, s.Received("POST")...) {
		want := ""
		if m.Header.Get("Last-Event-ID") != "" {
			want = "ada"
		}
		if got := m.Header.Get("X-User"); got != want {
			t.Errorf("%s %s has the header %q, want %q", m.Method, m.Header.Get("Last-Event-ID"), got, want)
		}
	}
}

// TestTrustedHeaderOverSSE: it goes with the message of the call, and not with
// the stream.
func TestTrustedHeaderOverSSE(t *testing.T) {
	seen := make(map[string][]string)
	var mu sync.Mutex
	handler := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return curious(nil) }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var m mcptest.Message
		_ = json.Unmarshal(body, &m)
		mu.Lock()
		seen[r.Method+" "+m.Method] = append(seen[r.Method+" "+m.Method], r.Header.Get("X-User"))
		mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	c := mcptest.Open(t, mcpadapter.SSE(s.URL, &mcpadapter.HTTPOptions{TrustedHeaders: map[string]string{"X-User": "user"}}))
	ask := mcptest.Tool(t, c, "ask")
	if _, err := ask.Invoke(invoker.WithTrusted(mcptest.Within(t), user.Value("ada")), &invoker.Call{}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for request, users := range seen {
		for _, got := range users {
			if (got == "ada") != (request == "POST tools/call") || got != "" && got != "ada" {
				t.Errorf("%s has the header %q", request, got)
			}
		}
	}
	if len(seen["POST tools/call"]) != 1 || len(seen["POST "]) == 0 { // the call and an answer
		t.Errorf("the server saw %v", seen)
	}
}
