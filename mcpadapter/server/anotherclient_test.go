// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sending sends a token with each request.
type sending string

func (token sending) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	bearer(string(token))(r)
	return http.DefaultTransport.RoundTrip(r)
}

// A client can neither cancel the call of another client nor answer its question, in the
// other's session, in its own or without one, whatever id it guesses.
func TestCallsOfAnotherClient(t *testing.T) {
	asks := rawTool(t, invoker.Definition{Name: "asks"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		answer, err := call.Ask(ctx, &invoker.ElicitRequest{Message: "Which?", Schema: []byte(`{"type":"object","properties":{"which":{"type":"string"}}}`)})
		if err != nil {
			return invoker.Output{}, err
		}
		return invoker.Output{Content: canister.Texts(fmt.Sprint(answer.Action, " ", answer.Content["which"]))}, ctx.Err()
	})
	names := map[string]string{ada: "ada", bob: "bob"}
	v := &victim{server: newServer(t, &server.Options{
		Authenticate: func(_ context.Context, token string, _ *http.Request) (string, []invoker.Value, error) {
			if names[token] == "" {
				return "", nil, errors.New("unknown")
			}
			return names[token], nil, nil
		},
	}, asks)}
	v.Server = httptest.NewServer(v.server.Handler())
	t.Cleanup(v.Close)
	asked, release := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	defer answer()
	client := mcp.NewClient(&mcp.Implementation{Name: "c"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(asked)
			<-release
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"which": "ada's"}}, nil
		},
	})
	session := connectClient(
		t, client,
		&mcp.StreamableClientTransport{Endpoint: v.URL, HTTPClient: &http.Client{Transport: sending(ada)}, MaxRetries: -1},
		"2025-11-25",
	)
	result := make(chan string, 1)
	go func() {
		r, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "local__asks"})
		result <- fmt.Sprint(jsonOf(t, r), err)
	}()
	mcptest.Await(t, "the question", asked)
	own := v.open(t, bob)
	for id := range 30 {
		for _, message := range []string{
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"action":"accept","content":{"which":"bob's"}}}`, id),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":"bob's"}}`, id),
		} {
			as := func(session string) int {
				status, _, _ := v.post(t, message, func(r *http.Request) { old(session)(r); bearer(bob)(r) })
				return status
			}
			if status := as(session.ID()); status != http.StatusNotFound {
				t.Errorf("in ada's session: status %d for %s", status, message)
			}
			if status := as(own); status >= http.StatusInternalServerError {
				t.Errorf("in bob's session: status %d for %s", status, message)
			}
			withoutSession := strings.Replace(message, `"requestId"`, meta+`,"requestId"`, 1)
			if status, _, _ := v.post(t, withoutSession, bearer(bob)); status >= http.StatusInternalServerError {
				t.Errorf("without a session: status %d for %s", status, message)
			}
		}
	}
	select {
	case early := <-result:
		t.Fatalf("ada's call ended: %s", early)
	default:
	}
	answer()
	if got := mcptest.Await(t, "ada's result", result); !strings.Contains(got, "accept ada's") {
		t.Errorf("ada's call: %s", got)
	}
}

// There are no tasks (MCP 2025-11-25, basic/utilities/tasks): their methods are unknown for any
// task, of whatever client, in a session and without one.
func TestTasksAreUnknown(t *testing.T) {
	v := newVictim(t, nil)
	session := v.open(t, bob)
	ask := func(method string) string {
		in := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"taskId":"1"}}`, method)
		first, _, inSession := v.post(t, in, func(r *http.Request) { old(session)(r); bearer(bob)(r) })
		without := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"taskId":"1"}}`, method, meta)
		second, _, alone := v.post(t, without, func(r *http.Request) { bearer(bob)(r); r.Header.Set("Mcp-Method", method) })
		return strings.ReplaceAll(fmt.Sprintln(first, inSession, second, alone), method, "METHOD")
	}
	unknown := ask("nothing/like")
	if !strings.Contains(unknown, "unsupported") || !strings.Contains(unknown, "-32601") {
		t.Errorf("an unknown method: %s", unknown)
	}
	for _, method := range []string{"tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update"} {
		if got := ask(method); got != unknown {
			t.Errorf("%s: %s", method, got)
		}
	}
}
