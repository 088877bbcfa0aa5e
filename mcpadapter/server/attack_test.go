// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	"github.com/consort-go/consort/mcpadapter"
	"github.com/consort-go/consort/mcpadapter/server"
)

// The attacks that a server has to withstand, each with its refusal. The server has a
// tool that acts for a user and returns the user's name; ada and bob have one token each.

var userID = invoker.NewTrusted[int]("user_id")

const (
	ada, bob = "ada-0123456789abcdef", "bob-0123456789abcdef"
	late     = "late-0123456789abcdef"

	carol, dave = "carol-0123456789abcdef", "dave-0123456789abcdef" // without trusted values
)

// victim is the server under attack.
type victim struct {
	*httptest.Server
	server *server.Server
	ran    atomic.Int64 // times that a tool ran
	ids    sync.Map     // of the calls
	kept   records
}

// records is a sink of audit records.
type records struct {
	mu   sync.Mutex
	kept []audit.Record
}

func (r *records) Record(_ context.Context, record *audit.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, *record)
	return nil
}

func (r *records) all() []audit.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]audit.Record(nil), r.kept...)
}

func newVictim(t *testing.T, change func(*server.Options)) *victim {
	v := &victim{}
	type note struct {
		Title string  `json:"title"`
		Size  float64 `json:"size,omitempty"`
		More  any     `json:"more,omitempty"`
	}
	whose, err := invoker.New("whose", "Say for whom this is.", func(ctx context.Context, in note) (string, error) {
		v.ran.Add(1)
		v.ids.Store(invoker.CallFrom(ctx).ID, true)
		id, _ := userID.From(ctx)
		return fmt.Sprintf("user %d: %s", id, in.Title), nil
	}, &invoker.Options{Needs: []invoker.Need{userID}})
	if err != nil {
		t.Fatal(err)
	}
	options := &server.Options{
		Tokens: []server.BearerToken{
			{Token: ada, Trusted: []invoker.Value{userID.Value(1)}},
			{Token: bob, Trusted: []invoker.Value{userID.Value(2)}},
			{Token: carol}, {Token: dave},
			{Token: late, Trusted: []invoker.Value{userID.Value(3)}, Expires: time.Now().Add(-time.Second)},
		},
		Authenticate: func(_ context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
			switch token {
			case "away":
				return "", nil, &invoker.Failure{Code: invoker.Unavailable, Message: "no issuer", RetryAfter: 7 * time.Second}
			case "narrow":
				return "", nil, &server.ScopeError{Scopes: []string{"tools"}}
			case "panic":
				panic("no")
			}
			return "", nil, errors.New("the database of tokens says: no such row")
		},
		ResourceMetadata: &server.ResourceMetadata{Resource: "https://tools.example/mcp", AuthorizationServers: []string{"https://login.example"}},
		Hosts:            []string{"localhost", "127.0.0.1"},
		MaxBody:          1 << 20,
		Audit:            audit.New(&v.kept, &audit.Options{Identity: []string{"user_id"}}),
	}
	if change != nil {
		change(options)
	}
	v.server = newServer(t, options, whose)
	v.Server = httptest.NewServer(v.server.Handler())
	t.Cleanup(v.Close)
	return v
}

// post is a well-formed request in protocol 2026-07-28, except for the changes of edit.
func (v *victim) post(t *testing.T, body string, edit func(*http.Request)) (status int, header http.Header, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var message struct {
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal([]byte(body), &message)
	for name, value := range map[string]string{
		"Authorization": "Bearer " + ada, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": message.Method, "Mcp-Name": message.Params.Name,
	} {
		r.Header.Set(name, value)
	}
	if edit != nil {
		edit(r)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(answer)
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// calling is a call of the tool with these arguments.
func calling(arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"local__whose","arguments":` + arguments + `,` + meta + `}}`
}

func nested(open, close string, n int) string {
	return strings.Repeat(open, n) + strings.Repeat(close, n)
}

var attacks = []struct {
	name   string
	body   string // of a request in protocol 2026-07-28
	edit   func(*http.Request)
	status int
	want   string // in the answer
	runs   bool   // the tool runs, and only for the caller
}{
	{"none", calling(`{"title":"x"}`), nil, 200, `user 1: x`, true},

	// The user, chosen by the caller.
	{"user in the arguments", calling(`{"title":"x","user_id":2}`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"user in another case", calling(`{"title":"x","User_ID":2}`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"user in the arguments, escaped", calling(`{"title":"x","user\u005fid":2}`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"user twice in the arguments", calling(`{"title":"x","user_id":1,"user_id":2}`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"user deep in the arguments", calling(`{"title":"x","more":{"user_id":2}}`), nil, 200, `user 1: x`, true},
	{
		"user in _meta", strings.Replace(calling(`{"title":"x"}`), `"_meta":{`,
			`"_meta":{"user_id":2,"io.github.consort-go/trusted":{"user_id":2},`, 1), nil, 200, `user 1: x`, true,
	},
	{"user in params", strings.Replace(calling(`{"title":"x"}`), `"_meta":{`, `"user_id":2,"trusted":{"user_id":2},"_meta":{`, 1), nil, 200, `user 1: x`, true},
	{"user in headers", calling(`{"title":"x"}`), func(r *http.Request) {
		for _, name := range []string{"User_id", "User-Id", "X-User-Id", "Mcp-Param-User_id", "X-Forwarded-User", "Consort-Request"} {
			r.Header.Set(name, "2")
		}
	}, 200, `user 1: x`, true},
	{"user in the query", calling(`{"title":"x"}`), func(r *http.Request) { r.URL.RawQuery = "user_id=2&access_token=" + bob }, 200, `user 1: x`, true},
	{"user in a cookie", calling(`{"title":"x"}`), func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "user_id", Value: "2"}) }, 200, `user 1: x`, true},

	// Invalid arguments.
	{"an array for arguments", calling(`["x"]`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"null for arguments", calling(`null`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"a string for arguments", calling(`"{\"title\":\"x\"}"`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"a number of 400 digits", calling(`{"title":"x","size":` + strings.Repeat("9", 400) + `}`), nil, 400, `-32020`, false},
	// the SDK cannot hold it against the headers
	{"a number for the title", calling(`{"title":1}`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"an argument twice", calling(`{"title":"x","title":"y"}`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"an argument in another case", calling(`{"Title":"x"}`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"names of prototypes", calling(`{"title":"x","__proto__":{"user_id":2},"constructor":{}}`), nil, 200, `INVALID_ARGUMENTS`, false},
	{"100,000 brackets", calling(`{"title":"x","more":` + nested("[", "]", 100_000) + `}`), nil, 400, `nests deeper`, false},
	{
		"100,000 braces that do not close",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + strings.Repeat(`{"a":`, 100_000), nil, 400, `nests deeper`, false,
	},
	{"more than the body may have", calling(`{"title":"` + strings.Repeat("x", 1<<20) + `"}`), nil, 413, `more than 1048576 bytes`, false},

	// What two parsers read in two ways.
	{"arguments twice", strings.Replace(calling(`{"title":"x"}`), `"_meta"`, `"arguments":{"title":"y"},"_meta"`, 1), nil, 400, `twice`, false},
	{
		"arguments twice, once escaped", strings.Replace(calling(`{"title":"x"}`), `"_meta"`,
			`"\u0061rguments":{"title":"y"},"_meta"`, 1), nil, 400, `twice`, false,
	},
	{"Arguments beside arguments", strings.Replace(calling(`{"title":"x"}`), `"_meta"`, `"Arguments":{"title":"y"},"_meta"`, 1), nil, 400, `twice`, false},
	{"Arguments alone", strings.Replace(calling(`{"title":"x"}`), `"arguments"`, `"Arguments"`, 1), nil, 400, `is written as`, false},
	{"argumentſ with a long s", strings.Replace(calling(`{"title":"x"}`), `"arguments"`, `"argumentſ"`, 1), nil, 400, `is written as`, false},
	{"params twice", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":1,"params":{"name":"other"}`, 1), nil, 400, `twice`, false},
	{"METHOD beside method", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":1,"METHOD":"tools/list"`, 1), nil, 400, `is written as`, false},
	{"another tool in the header", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Set("Mcp-Name", "local__other") }, 400, `-32020`, false},
	{"another method in the header", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Set("Mcp-Method", "tools/list") }, 400, `-32020`, false},
	{
		"a protocol that the header does not name", calling(`{"title":"x"}`),
		func(r *http.Request) { r.Header.Del("Mcp-Protocol-Version") }, 400, `-32020`, false,
	},

	// Invalid requests.
	{"no JSON", `{"jsonrpc":`, nil, 400, ``, false},
	{"nothing", ``, nil, 400, ``, false},
	{"two messages", calling(`{"title":"x"}`) + calling(`{"title":"x"}`), nil, 400, `followed by something`, false},
	{"words behind the message", calling(`{"title":"x"}`) + ` and so on`, nil, 400, `followed by something`, false},
	{"a fraction for the id", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":1.5`, 1), nil, 400, `neither a string nor an integer`, false},
	{
		"an id too large for a number", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":99999999999999999999`, 1),
		nil, 400, `neither a string nor an integer`, false,
	},
	{
		"an id that floating point rounds", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":9007199254740993`, 1),
		nil, 400, `neither a string nor an integer`, false,
	},
	{"null for the id", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":null`, 1), nil, 400, `neither a string nor an integer`, false},
	{"an object for the id", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":{"a":1}`, 1), nil, 400, `neither a string nor an integer`, false},
	{"a batch", `[` + calling(`{"title":"x"}`) + `]`, nil, 400, ``, false},
	{"an unknown tool", strings.Replace(calling(`{"title":"x"}`), `local__whose`, `local__who`, 1), nil, 400, `-32602`, false},
	{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"tools/steal","params":{` + meta + `}}`, nil, 404, `-32601`, false},
	{"no content type", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415, ``, false},
	{"a form", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415, ``, false},
	{"an answer that cannot be taken", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Set("Accept", "text/html") }, 400, ``, false},
	{"PUT", ``, func(r *http.Request) { r.Method = http.MethodPut }, 405, ``, false},

	// Tokens.
	{"no token", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Del("Authorization") }, 401, `a bearer token is required`, false},
	{"a wrong token", calling(`{"title":"x"}`), bearer("eve"), 401, `the token is not valid`, false},
	{"the beginning of a token", calling(`{"title":"x"}`), bearer(ada[:len(ada)-1]), 401, `the token is not valid`, false},
	{"an expired token", calling(`{"title":"x"}`), bearer(late), 401, `the token is not valid`, false},
	{"a token without the scope", calling(`{"title":"x"}`), bearer("narrow"), 403, `does not permit this`, false},
	{"a token that breaks the check", calling(`{"title":"x"}`), bearer("panic"), 401, `the token is not valid`, false},
	{
		"a token of another scheme", calling(`{"title":"x"}`),
		func(r *http.Request) { r.Header.Set("Authorization", "Basic "+ada) }, 401, `a bearer token is required`, false,
	},
	{"two tokens", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+bob) }, 401, `a bearer token is required`, false},
	{"a token in the query alone", calling(`{"title":"x"}`), func(r *http.Request) {
		r.Header.Del("Authorization")
		r.URL.RawQuery = "access_token=" + ada
	}, 401, `a bearer token is required`, false},
	{"bob's token", calling(`{"title":"x"}`), bearer(bob), 200, `user 2: x`, true},

	// Foreign pages.
	{"a foreign Host", calling(`{"title":"x"}`), func(r *http.Request) { r.Host = "evil.example" }, 403, `name`, false},
	{"a foreign Host that looks like ours", calling(`{"title":"x"}`), func(r *http.Request) { r.Host = "localhost.evil.example" }, 403, `name`, false},
	{"a foreign Origin", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, `origin`, false},
	{"no Origin to speak of", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Set("Origin", "null") }, 403, `origin`, false},
	{
		"an Origin with a user before our host", calling(`{"title":"x"}`),
		func(r *http.Request) { r.Header.Set("Origin", "https://evil.example@"+r.Host) }, 403, `origin`, false,
	},
	{
		"an Origin with a path behind our host", calling(`{"title":"x"}`),
		func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host+"/a") }, 403, `origin`, false,
	},
	{"our own Origin", calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) }, 200, `user 1: x`, true},

	// Sessions.
	{"a forged session", calling(`{"title":"x"}`), old("0123456789"), 404, `session not found`, false},
	{"no session", calling(`{"title":"x"}`), old(""), 400, `Mcp-Session-Id`, false},
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// old makes a request one of protocol 2025-11-25.
func old(session string) func(*http.Request) {
	return func(r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		body = bytes.Replace(body, []byte(meta), []byte(`"_meta":{}`), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
	}
}

func TestAttacks(t *testing.T) {
	v := newVictim(t, nil)
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			before := v.ran.Load()
			status, _, answer := v.post(t, attack.body, attack.edit)
			if status != attack.status || !strings.Contains(answer, attack.want) {
				t.Errorf("status %d, %.300s; want status %d with %q", status, answer, attack.status, attack.want)
			}
			if ran := v.ran.Load() > before; ran != attack.runs {
				t.Errorf("ran %v, want %v", ran, attack.runs)
			}
			if strings.Contains(answer, "database of tokens") || strings.Contains(answer, ada) {
				t.Errorf("the answer tells too much: %s", answer)
			}
		})
	}
}

// What a caller forges is in the audit trail, and so is every other call that
// found its way to the server.
func TestAttacksAreRecorded(t *testing.T) {
	for _, test := range []struct {
		name, arguments, want string
	}{
		{"forged", `{"title":"x","user_id":2}`, `INVALID_ARGUMENTS [user_id] {"user_id":1}`},
		{"good", `{"title":"x"}`, `OK [] {"user_id":1}`},
		{"wrong", `{"title":1}`, `INVALID_ARGUMENTS [] {"user_id":1}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newVictim(t, nil)
			v.post(t, calling(test.arguments), nil)
			kept := v.kept.all()
			if len(kept) != 1 {
				t.Fatalf("%d records", len(kept))
			}
			r := kept[0]
			if got := fmt.Sprintf("%s %v %s", r.Code, r.Forged, jsonOf(t, r.Identity)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if r.Asker != "mcp" || r.Ensemble != "local" || r.Tool != "whose" || r.Bytes == 0 || r.Invocation == "" {
				t.Errorf("got %+v", r)
			}
		})
	}
	t.Run("unknown tool", func(t *testing.T) {
		v := newVictim(t, nil)
		v.post(t, strings.Replace(calling(`{}`), "local__whose", "nobody", 1), nil)
		if kept := v.kept.all(); len(kept) != 1 || kept[0].Code != "TOOL_NOT_FOUND" || kept[0].Tool != "nobody" || kept[0].Ensemble != "" {
			t.Errorf("got %+v", kept)
		}
	})
}

// A client chooses the ID of its calls among its own only.
func TestReplayedRequests(t *testing.T) {
	v := newVictim(t, nil)
	keyed := strings.Replace(calling(`{"title":"x"}`), `"_meta":{`, `"_meta":{"`+mcpadapter.IdempotencyKey+`":"k",`, 1)
	count := func() (n int) {
		v.ids.Range(func(any, any) bool { n++; return true })
		return n
	}
	for i, step := range []struct {
		body  string
		token string
		ids   int // that there are then
	}{
		{calling(`{"title":"x"}`), ada, 1},
		{calling(`{"title":"x"}`), ada, 2}, // the same JSON-RPC id is another call
		{keyed, ada, 3},
		{keyed, ada, 3}, // the same key is the same call
		{keyed, bob, 4}, // bob's is not ada's
	} {
		if status, _, answer := v.post(t, step.body, bearer(step.token)); status != 200 {
			t.Fatalf("status %d, %s", status, answer)
		}
		if got := count(); got != step.ids {
			t.Errorf("step %d: %d identities, want %d", i, got, step.ids)
		}
	}
}

func TestChallenges(t *testing.T) {
	v := newVictim(t, nil)
	const document = `resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp"`
	for token, want := range map[string]string{
		"":       `Bearer ` + document,
		"eve":    `Bearer ` + document + `, error="invalid_token"`,
		"narrow": `Bearer ` + document + `, error="insufficient_scope", scope="tools"`,
	} {
		_, header, _ := v.post(t, calling(`{}`), func(r *http.Request) {
			if r.Header.Del("Authorization"); token != "" {
				bearer(token)(r)
			}
		})
		if got := header.Get("WWW-Authenticate"); got != want {
			t.Errorf("%q: got %s, want %s", token, got, want)
		}
	}
	status, header, text := v.post(t, calling(`{}`), bearer("away"))
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") != "7" || header.Get("WWW-Authenticate") != "" || strings.Contains(text, "issuer") {
		t.Errorf("a token that cannot be checked: status %d, %v, %s", status, header, text)
	}
	for path, want := range map[string]int{
		"/.well-known/oauth-protected-resource/mcp": 200, "/.well-known/oauth-protected-resource": 200, "/.well-known/oauth-protected-resource/x": 404,
	} {
		response, err := http.Get(v.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want || want == 200 &&
			string(text) != `{"resource":"https://tools.example/mcp","authorization_servers":["https://login.example"],"bearer_methods_supported":["header"]}` {
			t.Errorf("%s: status %d, %s", path, response.StatusCode, text)
		}
	}
}

// Metadata without an authorization server, which MCP forbids, is neither announced nor served.
func TestMetadataWithoutAuthorizationServer(t *testing.T) {
	v := newVictim(t, func(o *server.Options) {
		o.ResourceMetadata = &server.ResourceMetadata{Resource: "https://tools.example/mcp"}
	})
	_, header, _ := v.post(t, calling(`{}`), func(r *http.Request) { r.Header.Del("Authorization") })
	if got := header.Get("WWW-Authenticate"); got != "Bearer" {
		t.Errorf("the challenge is %s", got)
	}
	response, err := http.Get(v.URL + "/.well-known/oauth-protected-resource/mcp")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode == http.StatusOK {
		t.Error("the document is served")
	}
}

// open begins a session of protocol 2025-11-25 and returns its name.
func (v *victim) open(t *testing.T, token string) string {
	t.Helper()
	status, header, answer := v.post(t,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		func(r *http.Request) {
			old("")(r)
			bearer(token)(r)
		})
	if status != 200 || header.Get("Mcp-Session-Id") == "" || !strings.Contains(answer, `"result"`) {
		t.Fatalf("status %d, %s", status, answer)
	}
	return header.Get("Mcp-Session-Id")
}

// A session belongs to the identity that opened it, whatever is done with it.
func TestStolenSession(t *testing.T) {
	v := newVictim(t, nil)
	session := v.open(t, ada)
	use := func(method, token string) int {
		status, _, _ := v.post(t, calling(`{"title":"x"}`), func(r *http.Request) {
			old(session)(r)
			bearer(token)(r)
			r.Method = method
			if method != http.MethodPost {
				r.Body, r.ContentLength = nil, 0
			}
		})
		return status
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		if status := use(method, bob); status != http.StatusNotFound {
			t.Errorf("%s: status %d", method, status)
		}
	}
	if v.ran.Load() != 0 {
		t.Error("the tool ran")
	}
	if status := use(http.MethodPost, carol); status != http.StatusNotFound {
		t.Errorf("status %d for a token without values", status)
	}
	if session := v.open(t, carol); session != "" {
		status, _, _ := v.post(t, calling(`{"title":"x"}`), func(r *http.Request) { old(session)(r); bearer(dave)(r) })
		if status != http.StatusNotFound {
			t.Errorf("status %d for dave in carol's session", status)
		}
	}
	if status := use(http.MethodPost, ada); status != 200 || v.ran.Load() != 1 {
		t.Errorf("status %d for the owner", status)
	}
	if status := use(http.MethodDelete, ada); status != http.StatusNoContent {
		t.Errorf("status %d for the owner's end", status)
	}
	if status := use(http.MethodPost, ada); status != http.StatusNotFound {
		t.Errorf("status %d after the end", status)
	}
}

// A client has no more sessions than it may; the oldest that is idle goes.
func TestSessionsAreBounded(t *testing.T) {
	v := newVictim(t, func(o *server.Options) { o.MaxSessions = 8 })
	bobs := v.open(t, bob)
	for range 20 {
		v.open(t, ada)
	}
	if status, _, answer := v.post(t, calling(`{"title":"x"}`), func(r *http.Request) { old(bobs)(r); bearer(bob)(r) }); status != 200 {
		t.Errorf("ada's sessions cost bob his: status %d, %s", status, answer)
	}
}

// Ten thousand requests of one client at once do no more than Parallel at a
// time; the rest is refused, and another client is served meanwhile.
func TestTenThousandRequests(t *testing.T) {
	const parallel = 8
	release := make(chan struct{})
	var running, most atomic.Int64
	full := make(chan struct{})
	hold := rawTool(t, invoker.Definition{Name: "hold"}, func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if n == parallel {
			close(full)
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return invoker.Output{Content: canister.Texts("held")}, nil
	})
	v := newVictim(t, func(o *server.Options) { o.Parallel, o.Tools = parallel, []invoker.Invoker{hold} })
	body := strings.Replace(calling(`{}`), "local__whose", "hold", 1)
	var held, refused sync.WaitGroup
	statuses := make(chan int, 10_000)
	for range parallel {
		held.Go(func() {
			status, _, _ := v.post(t, body, nil)
			statuses <- status
		})
	}
	<-full
	for range 64 { // sockets
		refused.Go(func() {
			for range (10_000 - parallel) / 64 {
				status, header, _ := v.post(t, body, nil)
				if status != 429 || header.Get("Retry-After") == "" {
					t.Errorf("status %d", status)
				}
				statuses <- status
			}
		})
	}
	if status, _, answer := v.post(t, calling(`{"title":"x"}`), bearer(bob)); status != 200 {
		t.Errorf("bob was not served: status %d, %s", status, answer)
	}
	refused.Wait()
	close(release)
	held.Wait()
	close(statuses)
	count := make(map[int]int)
	for status := range statuses {
		count[status]++
	}
	if most.Load() != parallel || count[200] != parallel {
		t.Errorf("%d at once, statuses %v", most.Load(), count)
	}
}

func TestRate(t *testing.T) {
	v := newVictim(t, func(o *server.Options) { o.Rate, o.Burst = 0.001, 3 })
	for i := range 5 {
		status, header, _ := v.post(t, calling(`{"title":"x"}`), nil)
		if want := map[bool]int{true: 200, false: 429}[i < 3]; status != want {
			t.Errorf("request %d: status %d", i, status)
		} else if status == 429 && header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if status, _, _ := v.post(t, calling(`{"title":"x"}`), bearer(bob)); status != 200 {
		t.Errorf("bob pays for ada: status %d", status)
	}
}

// An open server has only the values that the embedder trusts: a tool that needs more is
// refused before it runs.
func TestNeedsAreRefused(t *testing.T) {
	v := newVictim(t, func(o *server.Options) { o.Tokens, o.Authenticate = nil, nil })
	status, _, answer := v.post(t, calling(`{"title":"x"}`), func(r *http.Request) { r.Header.Del("Authorization") })
	if status != 200 || !strings.Contains(answer, "UNAUTHORIZED") || v.ran.Load() != 0 {
		t.Errorf("status %d, %s", status, answer)
	}
	if kept := v.kept.all(); len(kept) != 1 || kept[0].Code != "UNAUTHORIZED" {
		t.Errorf("kept %+v", kept)
	}
}

// An invoker that checks nothing itself is not called either.
func TestNeedsOfCarelessTools(t *testing.T) {
	careless := ensembletest.Returns("careless", "ran")
	careless.Def.Needs = []string{"user_id"}
	v := newVictim(t, func(o *server.Options) { o.Tools = []invoker.Invoker{careless} })
	body := strings.Replace(calling(`{}`), "local__whose", "careless", 1)
	if status, _, answer := v.post(t, body, bearer(carol)); status != 200 || !strings.Contains(answer, "UNAUTHORIZED") {
		t.Errorf("status %d, %s", status, answer)
	}
	if status, _, answer := v.post(t, body, nil); status != 200 || !strings.Contains(answer, `"ran"`) {
		t.Errorf("status %d, %s", status, answer)
	}
}

// What was trusted of the request that opened a session is not trusted of the
// next one.
func TestTrustIsOfTheRequest(t *testing.T) {
	token := invoker.NewTrusted[string]("token").Secret()
	spend, err := invoker.New("spend", "Say which token this has.", func(ctx context.Context, _ struct{}) (string, error) {
		had, ok := token.From(ctx)
		return fmt.Sprintf("%v %d", ok, len(had)), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := newServer(t, nil, spend)
	handler := srv.Handler()
	v := &victim{server: srv, Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := invoker.WithTrusted(r.Context(), userID.Value(1))
		if r.Header.Get("Mcp-Session-Id") == "" {
			ctx = invoker.WithTrusted(ctx, token.Value("of the first request"))
		}
		handler.ServeHTTP(w, r.WithContext(ctx))
	}))}
	t.Cleanup(v.Close)
	session := v.open(t, "")
	status, _, answer := v.post(t, strings.Replace(calling(`{}`), "local__whose", "local__spend", 1), old(session))
	if status != 200 || !strings.Contains(answer, "false 0") {
		t.Errorf("status %d, %s", status, answer)
	}
}

// The lines of attackers over stdio are answered, and the next one works.
func TestAttacksOverStdio(t *testing.T) {
	v := newVictim(t, func(o *server.Options) { o.Trusted = []invoker.Value{userID.Value(7)} })
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- v.server.Serve(t.Context(), toServer, fromServer) }()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for _, attack := range []struct{ name, line, want string }{
		{"no JSON", `hello`, `-32700`},
		{"half of it", `{"jsonrpc":"2.0","id":1`, `-32700`},
		{"not JSON-RPC", `{"a":1}`, `-32700`},
		{"too large", calling(`{"title":"` + strings.Repeat("x", 1<<20) + `"}`), `too large`},
		{"too deep", calling(nested("[", "]", 100_000)), `nests deeper`},
		{"two messages", calling(`{"title":"x"}`) + calling(`{"title":"x"}`), `followed by something`},
		{"words behind the message", calling(`{"title":"x"}`) + ` and so on`, `followed by something`},
		{"a fraction for the id", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":1.5`, 1), `neither a string nor an integer`},
		{
			"an id too large for a number", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":99999999999999999999`, 1),
			`neither a string nor an integer`,
		},
		{
			"an id that floating point rounds", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":9007199254740993`, 1),
			`neither a string nor an integer`,
		},
		{"null for the id", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":null`, 1), `neither a string nor an integer`},
		{"an object for the id", strings.Replace(calling(`{"title":"x"}`), `"id":1`, `"id":{"a":1}`, 1), `neither a string nor an integer`},
		{"a batch", `[` + calling(`{"title":"x"}`) + `]`, `batches are not accepted`},
		{"twice", strings.Replace(calling(`{"title":"x"}`), `"_meta"`, `"arguments":{},"_meta"`, 1), `twice`},
		{"a number of 400 digits", calling(`{"title":"x","size":` + strings.Repeat("9", 400) + `}`), `INVALID_ARGUMENTS`},
		{"good", calling(`{"title":"x"}`), `user 7: x`},
	} {
		if _, err := io.WriteString(in, "\n\r\n"+attack.line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), attack.want) {
			t.Errorf("%s: got %s, want %s", attack.name, lines.Text(), attack.want)
		}
	}
	in.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
