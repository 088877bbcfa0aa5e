// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// raw opens a connection and writes bytes to it that no HTTP client would send.
func (v *victim) raw(t *testing.T, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", v.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// head is the head of a request of protocol 2026-07-28.
func head(token string, more ...string) string {
	return strings.Join(append([]string{
		"POST /mcp HTTP/1.1", "Host: localhost", "Authorization: Bearer " + token, "Content-Type: application/json",
		"Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: local__whose",
	}, more...), "\r\n") + "\r\n\r\n"
}

// Requests that do not end take memory of their client's share only: no more of
// them are read at once than may be under way.
func TestBodiesAreBounded(t *testing.T) {
	v := newVictim(t, func(o *server.Options) { o.Parallel = 2 })
	half := head(ada, "Content-Length: 1000", "Expect: 100-continue")
	for i, want := range []string{"100", "100", "429"} {
		_, answer := v.raw(t, half) // the server says that it goes on to the body
		if line, err := answer.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want) {
			t.Fatalf("request %d: %q, %v", i, line, err)
		}
	}
	if status, _, answer := v.post(t, calling(`{"title":"x"}`), bearer(bob)); status != 200 {
		t.Errorf("bob was not served: status %d, %s", status, answer)
	}
}

// No header can have the name under which the handler passes on the caller, in any
// spelling.
func TestHeaderOfTheCaller(t *testing.T) {
	v := newVictim(t, nil)
	body := calling(`{"title":"x"}`)
	length := fmt.Sprintf("Content-Length: %d", len(body))
	for name, lines := range map[string][]string{
		"a space before": {length, " consort request: 1"},
		"folded":         {"X-A: 1", " consort request: 1", length},
		"a tab":          {length, "\tconsort request: 1"},
		"without":        {length, "consort request: 1"},
		"a dash":         {length, "Consort-Request: 1"},
		"an underscore":  {length, "consort_request: 1"},
	} {
		_, answer := v.raw(t, head(ada, lines...)+body)
		response, err := http.ReadResponse(answer, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if response.StatusCode == 200 {
			if text := bodyOf(response); !strings.Contains(text, "user 1: x") {
				t.Errorf("%s: %s", name, text)
			}
		} else if response.StatusCode != 400 {
			t.Errorf("%s: status %d", name, response.StatusCode)
		}
	}
	_, answer := v.raw(t, head(ada, "Transfer-Encoding: chunked", "Trailer: Authorization")+
		fmt.Sprintf("%x\r\n%s\r\n0\r\nAuthorization: Bearer %s\r\n consort request: 1\r\n\r\n", len(body), body, bob))
	response, err := http.ReadResponse(answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := bodyOf(response); response.StatusCode == 200 && !strings.Contains(text, "user 1: x") {
		t.Errorf("in the trailer: %s", text)
	}
}

func bodyOf(response *http.Response) string {
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// Raw requests that use as many resources as they can.
func TestRawRequests(t *testing.T) {
	v := newVictim(t, nil)
	large := strings.Repeat("x", 1<<20)
	for name, test := range map[string]struct{ text, want string }{
		"more than MaxBody, in chunks": {
			head(ada, "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", len(large), large, len(large), large), "413",
		},
		"a length and chunks": {head(ada, "Content-Length: 3", "Transfer-Encoding: chunked", "Connection: close") + "0\r\n\r\n", "400"},
		"two lengths":         {head(ada, "Content-Length: 3", "Content-Length: 4") + "abcd", "400"},
		"a compressed bomb":   {head(ada, "Content-Encoding: gzip", "Content-Length: 4") + "\x1f\x8b\x08\x00", "400"},
		"two hosts":           {head(ada, "Host: localhost", "Content-Length: 0"), "400"},
		"a host in the line":  {strings.Replace(head(ada, "Content-Length: 0"), "POST /mcp", "POST http://evil.example/mcp", 1), "403"},
		"no host":             {"POST /mcp HTTP/1.0\r\nAuthorization: Bearer " + ada + "\r\nContent-Length: 0\r\n\r\n", "403"},
		"an empty host":       {strings.Replace(head(ada, "Content-Length: 0"), "Host: localhost", "Host:", 1), "403"},
	} {
		conn, answer := v.raw(t, "")
		go func() { _, _ = io.WriteString(conn, test.text) }() // the server may not read all of it
		if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, " "+test.want+" ") {
			t.Errorf("%s: %q, %v; want %s", name, line, err, test.want)
		}
	}
	if v.ran.Load() != 0 {
		t.Error("the tool ran")
	}
}

// What hosts and pages may send requests.
func TestHostsAndOrigins(t *testing.T) {
	for _, test := range []struct {
		hosts, origins []string
		host, origin   string
		status         int
	}{
		{nil, nil, "localhost", "", 200},
		{nil, nil, "LOCALHOST.:80", "", 200},
		{nil, nil, "a.localhost", "", 200},
		{nil, nil, "127.0.0.9:1", "", 200},
		{nil, nil, "[::1]:80", "", 200},
		{nil, nil, "[::1]", "", 200},
		{nil, nil, "0.0.0.0", "", 403},
		{nil, nil, "127.0.0.1.evil.example", "", 403},
		{nil, nil, "tools.example", "", 403},
		{[]string{"tools.example"}, nil, "Tools.Example:8443", "", 200},
		{[]string{"tools.example:8443"}, nil, "tools.example:8443", "", 200},
		{[]string{"tools.example:8443"}, nil, "tools.example", "", 403},
		{[]string{"tools.example"}, nil, "localhost", "", 403},
		{[]string{"tools.example"}, nil, "tools.example.evil.example", "", 403},
		{[]string{"[2001:db8::1]"}, nil, "[2001:db8::1]:8080", "", 200},
		{[]string{"2001:db8::1"}, nil, "[2001:db8::1]", "", 200},
		{[]string{"*"}, nil, "any.example", "", 200},
		{nil, nil, "localhost:80", "http://localhost:80", 200},
		{nil, nil, "localhost:80", "http://localhost:81", 403},
		{nil, nil, "localhost", "null", 403},
		{nil, []string{"*"}, "localhost", "null", 200},
		{nil, []string{"https://app.example"}, "localhost", "https://app.example", 200},
		{nil, []string{"https://app.example"}, "localhost", "https://app.example.evil.example", 403},
		{nil, []string{"https://app.example"}, "localhost", "http://app.example", 403},
	} {
		v := newVictim(t, func(o *server.Options) {
			o.Hosts, o.Origins = test.hosts, test.origins
			o.Tokens, o.Authenticate = nil, nil
		})
		for _, method := range []string{http.MethodPost, http.MethodOptions} {
			status, header, answer := v.post(t, calling(`{"title":"x"}`), func(r *http.Request) {
				r.Host, r.Method = test.host, method
				if method == http.MethodOptions { // a browser asks beforehand, without the token
					r.Header.Del("Authorization")
					r.Header.Set("Access-Control-Request-Method", "POST")
					r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version")
				}
				if test.origin != "" {
					r.Header.Set("Origin", test.origin)
				}
			})
			want := test.status
			if method == http.MethodOptions && want == 200 {
				want = map[bool]int{true: http.StatusNoContent, false: http.StatusMethodNotAllowed}[test.origin != ""]
			}
			if status != want {
				t.Errorf("%s %q from %q: status %d, want %d, %s", method, test.host, test.origin, status, want, answer)
			}
			allowed := ""
			if test.origin != "" && test.status == 200 {
				allowed = test.origin
			}
			if header.Get("Access-Control-Allow-Origin") != allowed || allowed != "" && header.Get("Vary") != "Origin" {
				t.Errorf("%s %q from %q: headers %v", method, test.host, test.origin, header)
			}
			if status == http.StatusNoContent && header.Get("Access-Control-Allow-Headers") != "authorization,content-type,mcp-protocol-version" {
				t.Errorf("headers %v", header)
			}
		}
	}
}

// With tokens a server answers to every name by default: a web page has no token.
func TestAnyHostWithTokens(t *testing.T) {
	for name, change := range map[string]func(*server.Options){
		"a token":      func(o *server.Options) { o.Tokens, o.Authenticate, o.Token = nil, nil, ada },
		"tokens":       func(o *server.Options) { o.Authenticate = nil },
		"Authenticate": func(o *server.Options) { o.Tokens = nil },
	} {
		v := newVictim(t, func(o *server.Options) {
			o.Hosts = nil
			change(o)
		})
		status, _, answer := v.post(t, calling(`{"title":"x"}`), func(r *http.Request) { r.Host = "tools.example:8080" })
		if status == http.StatusForbidden {
			t.Errorf("%s: status %d, %s", name, status, answer)
		}
	}
}

// Tokens that Authenticate takes without saying whose they are belong to
// different callers.
func TestTokensWithoutValues(t *testing.T) {
	v := newVictim(t, func(o *server.Options) {
		o.Tokens = nil
		o.Authenticate = func(context.Context, string, *http.Request) (string, []invoker.Value, error) { return "", nil, nil }
	})
	session := v.open(t, "one")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`
	for token, want := range map[string]int{"one": 200, "other": 404} {
		status, _, _ := v.post(t, list, func(r *http.Request) { old(session)(r); bearer(token)(r) })
		if status != want {
			t.Errorf("%s: status %d, want %d", token, status, want)
		}
	}
}

// Of the sessions of a client that has too many, the one goes that was not used
// for longest.
func TestOldestSessionEnds(t *testing.T) {
	v := newVictim(t, func(o *server.Options) { o.MaxSessions = 32 })
	use := func(session string) int {
		status, _, _ := v.post(t, calling(`{"title":"x"}`), old(session))
		return status
	}
	var sessions []string
	for range 8 {
		sessions = append(sessions, v.open(t, ada))
	}
	if status := use(sessions[0]); status != 200 {
		t.Fatalf("status %d", status)
	}
	sessions = append(sessions, v.open(t, ada))
	for i, session := range sessions {
		if status, want := use(session), map[bool]int{true: 404, false: 200}[i == 1]; status != want {
			t.Errorf("session %d: status %d, want %d", i, status, want)
		}
	}
}

// Clients that have as many sessions as there may be keep no other one out: the
// client that has most loses the one that was not used for longest.
func TestSessionsKeepNoClientOut(t *testing.T) {
	tokens := []string{"a-0123456789abcdef", "b-0123456789abcdef", "c-0123456789abcdef", "d-0123456789abcdef", "e-0123456789abcdef", "f-0123456789abcdef"}
	v := newVictim(t, func(o *server.Options) {
		o.MaxSessions = 8
		for _, token := range tokens {
			o.Tokens = append(o.Tokens, server.BearerToken{Token: token})
		}
	})
	type opened struct{ token, session string }
	var all []opened
	open := func(token string) { all = append(all, opened{token, v.open(t, token)}) }
	for range 2 {
		for _, token := range tokens[:4] {
			open(token)
		}
	}
	open(tokens[4])
	open(tokens[5])
	for i, of := range all {
		status, _, _ := v.post(t, calling(`{"title":"x"}`), func(r *http.Request) { old(of.session)(r); bearer(of.token)(r) })
		if want := map[bool]int{true: 404, false: 200}[i < 2]; status != want {
			t.Errorf("session %d of %s: status %d, want %d", i, of.token[:1], status, want)
		}
	}
}

// No log line and no answer shows a token, and refusals do not flood the log.
func TestLogsOfRefusals(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	v := newVictim(t, func(o *server.Options) {
		o.Logger, o.Parallel = zap.New(core), 1
		o.Authenticate = func(context.Context, string, *http.Request) (string, []invoker.Value, error) {
			return "", nil, errors.New("no")
		}
	})
	for _, attack := range attacks {
		v.post(t, attack.body, attack.edit)
	}
	hold, answer := v.raw(t, head(ada, "Content-Length: 1000", "Expect: 100-continue"))
	if _, err := answer.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	before := logs.Len()
	for range 500 {
		if status, _, _ := v.post(t, calling(`{}`), nil); status != 429 {
			t.Fatalf("status %d", status)
		}
	}
	hold.Close()
	if n := logs.Len() - before; n > 100 {
		t.Errorf("%d lines", n)
	}
	if logs.FilterMessage("a request is delayed").FilterField(zap.String("reason",
		"too many requests at once")).FilterField(zap.Int("status", 429)).Len() == 0 {
		t.Errorf("the log has %v", logs.All())
	}
	for _, entry := range logs.All() {
		if line := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(line, "0123456789abcdef") {
			t.Errorf("the log has %s", line)
		}
	}
}

// Subscriptions are bounded: a template has resources without end. A client that subscribes to the
// same one again takes no further place.
func TestSubscriptionsAreBounded(t *testing.T) {
	library := local.Library{Templates: []local.Template{{
		Template: ensemble.Template{URI: "test://{id}", Name: "any"},
		Read:     func(context.Context, string, map[string]string) ([]canister.ResourceContent, error) { return nil, nil },
	}}, Updates: new(local.Updates)}.Source()
	srv := server.New(mcptest.Roster(t, ensemble.New("local", library, nil)), nil)
	defer srv.Close(context.Background())
	session := connectStdio(t, srv, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil), "2025-11-25")
	var err error
	n := 0
	for ; n < 2000 && err == nil; n++ {
		err = session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: fmt.Sprintf("test://%d", n/2)})
	}
	if n != 501 || !isRPC(err, jsonrpc.CodeInvalidParams) {
		t.Fatalf("%d, %v", n, err)
	}
	if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "test://7"}); err != nil {
		t.Fatal(err)
	}
	long := "test://" + strings.Repeat("x", 8<<10)
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: long}); !isRPC(err, jsonrpc.CodeInvalidParams) || !strings.Contains(err.Error(), "8192 bytes") {
		t.Errorf("a long URI: %v", err)
	}
	if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://new"}); err != nil {
		t.Error(err)
	}
}

// One unsubscribe ends what any number of subscriptions to a resource began.
func TestSubscribingAgain(t *testing.T) {
	library := local.Library{Templates: []local.Template{{
		Template: ensemble.Template{URI: "test://{id}", Name: "any"},
		Read:     func(context.Context, string, map[string]string) ([]canister.ResourceContent, error) { return nil, nil },
	}}, Updates: new(local.Updates)}.Source()
	srv := server.New(mcptest.Roster(t, ensemble.New("local", library, &ensemble.Options{MaxSubscriptions: 1})), nil)
	defer srv.Close(context.Background())
	session := connectStdio(t, srv, mcp.NewClient(&mcp.Implementation{Name: "c"}, nil), "2025-11-25")
	for range 300 {
		if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://1"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "test://1"}); err != nil {
		t.Fatal(err)
	}
	var err error // the ensemble has one place, which becomes free in the background
	for end := time.Now().Add(mcptest.Patience); time.Now().Before(end); {
		if err = session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://2"}); err == nil {
			return
		}
	}
	t.Error(err)
}

// All sessions of a client together have no more subscriptions than one may have, and other
// clients may still subscribe.
func TestSubscriptionsOfAClient(t *testing.T) {
	library := local.Library{Templates: []local.Template{{
		Template: ensemble.Template{URI: "test://{id}", Name: "any"},
		Read:     func(context.Context, string, map[string]string) ([]canister.ResourceContent, error) { return nil, nil },
	}}, Updates: new(local.Updates)}.Source()
	srv := server.New(mcptest.Roster(t, ensemble.New("local", library, nil)), nil)
	defer srv.Close(context.Background())
	one, two, other := connectStream(t, srv, "ada"), connectStream(t, srv, "ada"), connectStream(t, srv, "ben")
	subscribe := func(session *mcp.ClientSession, uri int) error {
		return session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: fmt.Sprintf("test://%d", uri)})
	}
	for i := range 250 {
		if err := subscribe([]*mcp.ClientSession{one, two}[i%2], i); err != nil {
			t.Fatal(err)
		}
	}
	if err := subscribe(two, 250); !isRPC(err, jsonrpc.CodeInvalidParams) {
		t.Errorf("one too many: %v", err)
	}
	if err := subscribe(other, 250); err != nil {
		t.Errorf("another client: %v", err)
	}
}

// Pages may read the document of the resource, wherever the handler is mounted.
func TestMetadataForPages(t *testing.T) {
	v := newVictim(t, nil)
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", v.server.Handler()))
	mux.Handle("/.well-known/", v.server.Handler())
	v.Config.Handler = mux
	for _, method := range []string{http.MethodOptions, http.MethodGet, http.MethodHead} {
		r, _ := http.NewRequestWithContext(t.Context(), method, v.URL+"/.well-known/oauth-protected-resource/mcp", nil)
		r.Header.Set("Origin", "https://anywhere.example")
		r.Header.Set("Access-Control-Request-Headers", "mcp-protocol-version")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		bodyOf(response)
		if response.StatusCode >= 300 || response.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %s %v", method, response.Status, response.Header)
		}
		if method == http.MethodOptions && response.Header.Get("Access-Control-Allow-Headers") != "mcp-protocol-version" {
			t.Errorf("headers %v", response.Header)
		}
	}
	v.URL += "/api/mcp"
	if status, _, answer := v.post(t, calling(`{"title":"x"}`), nil); status != 200 || !strings.Contains(answer, "user 1: x") {
		t.Errorf("status %d, %s", status, answer)
	}
}

// A batch does not evade the limits: its messages count individually.
func TestBatchesCount(t *testing.T) {
	batch := func(v *victim, n int) (status int, answer string) {
		var calls []string
		for i := range n {
			calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"hold"}}`, i))
		}
		session := v.open(t, ada)
		status, _, answer = v.post(t, "["+strings.Join(calls, ",")+"]", func(r *http.Request) {
			old(session)(r)
			r.Header.Set("Mcp-Protocol-Version", "2025-03-26")
		})
		return status, answer
	}
	t.Run("at once", func(t *testing.T) {
		refused := make(keeps, 30)
		release := make(chan bool)
		hold := rawTool(t, invoker.Definition{Name: "hold"}, func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			<-release
			return invoker.Output{Content: canister.Texts("held")}, nil
		})
		v := newVictim(t, func(o *server.Options) {
			o.Parallel, o.Tools, o.Audit = 4, []invoker.Invoker{hold}, audit.New(refused, nil)
		})
		done := make(chan string, 1)
		go func() {
			_, answer := batch(v, 20)
			done <- answer
		}()
		for range 17 { // the batch itself has one place of four
			if record := <-refused; record.Code != string(invoker.Unavailable) {
				t.Errorf("code %s", record.Code)
			}
		}
		close(release)
		if answer := <-done; strings.Count(answer, `"held"`) != 3 {
			t.Errorf("got %s", answer)
		}
	})
	t.Run("a second", func(t *testing.T) {
		v := newVictim(t, func(o *server.Options) { o.Rate, o.Burst = 0.001, 10 })
		if status, answer := batch(v, 20); status != 400 { // it could never pass
			t.Errorf("status %d, %s", status, answer)
		}
		if status, answer := batch(v, 8); status != 429 { // after two requests of each session
			t.Errorf("status %d, %s", status, answer)
		}
	})
}
