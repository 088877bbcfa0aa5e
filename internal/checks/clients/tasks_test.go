// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/examples/tasks/taskbook"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/server"
)

// calls is a task of calls.mjs, and what that saw.
type calls struct {
	Token     string         `json:"token"`
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

type callsSaw struct {
	Tools   []string
	Results []result
}

// Two users of the task book, each with a token, through the TypeScript SDK.
func TestTaskBook(t *testing.T) {
	servers := realservers.Need(t)
	book, err := taskbook.Open(t.Context(), filepath.Join(t.TempDir(), "tasks.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	roster, err := ensemble.NewRoster(taskbook.Ensemble(book))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(t.Context())
	srv := server.New(roster, &server.Options{OwnNames: true, Tokens: []server.BearerToken{
		{Token: "ada", Trusted: []invoker.Value{taskbook.User.Value(1)}},
		{Token: "ben", Trusted: []invoker.Value{taskbook.User.Value(2)}},
	}})
	defer srv.Close(t.Context())
	web := httptest.NewServer(srv.Handler())
	defer web.Close()

	type args = map[string]any
	steps := []struct {
		calls
		code, text string // of the failure, or in the result
	}{
		{calls{"ada", "add_task", args{"title": "  Water the plants "}}, "", `"Water the plants"`},
		{calls{"ben", "list_tasks", args{}}, "", `"tasks":[]`},
		{calls{"ben", "complete_task", args{"task_id": 1}}, "NOT_FOUND", ""},
		{calls{"ben", "add_task", args{"title": "Mine", "user_id": 1}}, "INVALID_ARGUMENTS", ""},
		{calls{"ben", "add_task", args{"title": "   "}}, "INVALID_ARGUMENTS", ""},
		{calls{"ada", "update_task", args{"task_id": 1, "title": "Water all plants"}}, "", `"Water all plants"`},
		{calls{"ada", "complete_task", args{"task_id": 1}}, "", `"completed":true`},
		{calls{"ada", "delete_task", args{"task_id": 1}}, "", ""},
		{calls{"ada", "delete_task", args{"task_id": 1}}, "NOT_FOUND", ""},
	}
	var all []calls
	for _, step := range steps {
		all = append(all, step.calls)
	}
	var s callsSaw
	decode(t, runScript(t, servers, "calls.mjs", map[string]any{
		"modules": servers.Modules(), "url": web.URL + "/mcp", "calls": all,
	}), &s)
	equal(t, "tools", strings.Join(s.Tools, " "), "add_task complete_task delete_task list_tasks update_task")
	for i, step := range steps {
		result := s.Results[i]
		told := result.text() + string(result.StructuredContent)
		if result.code() != step.code || result.IsError != (step.code != "") || !strings.Contains(told, step.text) {
			t.Errorf("%s %v: %+v", step.Name, step.Arguments, result)
		}
	}
}
