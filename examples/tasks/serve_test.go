// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newRoster returns the tools over a new database, and its path.
func newRoster(t *testing.T) (*ensemble.Roster, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasks.db")
	book, err := taskbook.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(taskbook.Ensemble(book))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{roster.Close(t.Context()), book.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	for _, who := range []person{ada, ben} {
		ctx := invoker.WithTrusted(t.Context(), taskbook.User.Value(who.id))
		if _, err := book.AddTask(ctx, taskbook.NewTask{Title: "of " + who.name}); err != nil {
			t.Fatal(err)
		}
	}
	return roster, path
}

// liar sends requests by which a client might pass for another user.
type liar struct{ http.RoundTripper }

func (l liar) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	for _, name := range []string{"User-Id", "User_id", "X-User-Id", "X-Forwarded-User", "Mcp-Param-User_id"} {
		request.Header[name] = []string{"1"}
	}
	return l.RoundTripper.RoundTrip(request)
}

func TestServedTools(t *testing.T) {
	roster, _ := newRoster(t)
	server := newServer(roster, nil)
	web := httptest.NewServer(server.Handler())
	defer web.Close()
	defer server.Close(t.Context())

	for _, authorization := range []string{"", "Bearer made-up", "Bearer ", "Basic " + ben.token, "Bearer " + ben.token + "x", "Bearer " + ada.token[:5]} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", authorization)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q: status %d", authorization, response.StatusCode)
		}
	}

	client := mcp.NewClient(&mcp.Implementation{Name: "liar"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: web.URL, HTTPClient: &http.Client{Transport: liar{bearer(ben.token)}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil || len(listed.Tools) != 5 {
		t.Fatalf("%+v, %v", listed, err)
	}
	for _, tool := range listed.Tools {
		if schema, err := json.Marshal(tool.InputSchema); err != nil || strings.Contains(string(schema), "user") || tool.OutputSchema == nil {
			t.Errorf("%s: %s, %v", tool.Name, schema, err)
		}
	}
	for _, test := range []struct {
		tool, arguments string
		code            invoker.Code
		text            string
	}{
		{"list_tasks", `{}`, "", "of Ben"},
		{"list_tasks", `{"user_id":1}`, invoker.InvalidArguments, "user_id"},
		{"add_task", `{"title":"planted","USER_ID":1}`, invoker.InvalidArguments, "USER_ID"},
		{"add_task", `{"title":" "}`, invoker.InvalidArguments, "empty"},
		{"update_task", `{"task_id":1,"title":"taken"}`, invoker.NotFound, "no task 1"},
		{"complete_task", `{"task_id":1}`, invoker.NotFound, "no task 1"},
		{"delete_task", `{"task_id":1}`, invoker.NotFound, "no task 1"},
	} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{
			Meta: mcp.Meta{"user_id": 1, "io.github.consort-go/user_id": 1},
			Name: test.tool, Arguments: json.RawMessage(test.arguments),
		})
		if err != nil {
			t.Errorf("%s: %v", test.tool, err)
			continue
		}
		if text := textOfResult(result); codeOf(t, result) != test.code || !strings.Contains(text, test.text) || strings.Contains(text, "of Ada") {
			t.Errorf("%s %s: %s %s", test.tool, test.arguments, codeOf(t, result), text)
		}
	}
}

// codeOf returns the code of a failure as a program reads it, "" for none.
func codeOf(t *testing.T, result *mcp.CallToolResult) invoker.Code {
	t.Helper()
	if !result.IsError {
		return ""
	}
	text, err := json.Marshal(result.Meta["io.github.consort-go/failure"])
	if err != nil {
		t.Fatal(err)
	}
	failure, ok := invoker.FailureFrom(text)
	if !ok {
		t.Fatalf("not structured: %s", text)
	}
	return failure.Code
}
