// SPDX-License-Identifier: Apache-2.0

package taskbook

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// kit is the tools over a book, by name.
type kit map[string]invoker.Invoker

func newKit(t testing.TB, book *Book) kit {
	t.Helper()
	byName := kit{}
	for _, tool := range Tools(book) {
		byName[tool.Definition().Name] = tool
	}
	return byName
}

// call calls a tool as a user, and returns its structured content.
func (k kit) call(t testing.TB, user int64, tool, arguments string) (string, error) {
	t.Helper()
	output, err := k[tool].Invoke(as(t, user), &invoker.Call{Arguments: json.RawMessage(arguments)})
	if err != nil {
		return "", err
	}
	if len(output.Content) != 1 {
		t.Fatalf("%s returned %+v", tool, output)
	}
	return string(output.Content[0].(canister.StructuredContent).JSON), nil
}

func TestTheFiveTools(t *testing.T) {
	book, _ := open(t)
	tools := newKit(t, book)
	const (
		reading, harmless = "reads", "adds"
		repeatable        = "adds, repeatable"
		destroying        = "destroys, repeatable"
	)
	behaviour := func(h invoker.Hints) string {
		text := map[bool]string{true: "destroys", false: "adds"}[h.MayDestroy()]
		if h.ReadOnly {
			return reading
		}
		if h.Idempotent {
			text += ", repeatable"
		}
		if h.OpenWorld == nil || *h.OpenWorld {
			text += ", outside"
		}
		return text
	}
	want := map[string]struct {
		behaviour, arguments, result string
	}{
		"add_task":      {harmless, "title!", "task!"},
		"list_tasks":    {reading, "after completed", "more tasks!"},
		"update_task":   {destroying, "task_id! title!", "task!"},
		"complete_task": {repeatable, "task_id!", "task!"},
		"delete_task":   {destroying, "task_id!", "task!"},
	}
	if len(tools) != len(want) {
		t.Errorf("there are %d tools", len(tools))
	}
	for name, want := range want {
		def := tools[name].Definition()
		if got := behaviour(def.Hints); got != want.behaviour {
			t.Errorf("%s: %s, want %s", name, got, want.behaviour)
		}
		if got := properties(t, def.InputSchema); got != want.arguments {
			t.Errorf("%s takes %q, want %q", name, got, want.arguments)
		}
		if got := properties(t, def.OutputSchema); got != want.result {
			t.Errorf("%s returns %q, want %q", name, got, want.result)
		}
		if !slices.Equal(def.Needs, []string{"user_id"}) || def.Description == "" || strings.Contains(string(def.InputSchema), "user") {
			t.Errorf("%s: %+v, %s", name, def, def.InputSchema)
		}
	}
}

// properties returns the properties of an object's schema, sorted, with a mark on the
// required ones.
func properties(t testing.TB, schema json.RawMessage) string {
	t.Helper()
	var object struct {
		Properties           map[string]any
		Required             []string
		AdditionalProperties any
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		t.Fatal(err)
	}
	if object.AdditionalProperties != false {
		t.Errorf("other properties are allowed: %s", schema)
	}
	var names []string
	for name := range object.Properties {
		if slices.Contains(object.Required, name) {
			name += "!"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestWhatToolsReturn(t *testing.T) {
	book, _ := open(t)
	tools := newKit(t, book)
	added, err := tools.call(t, 1, "add_task", `{"title":" Buy milk "}`)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Task struct {
			CreatedAt string `json:"created_at"`
		}
	}
	if err := json.Unmarshal([]byte(added), &result); err != nil {
		t.Fatal(err)
	}
	task := `{"id":1,"title":"Buy milk","completed":false,"created_at":"` + result.Task.CreatedAt + `"}`
	done := strings.Replace(task, "false", "true", 1)
	for _, test := range []struct{ tool, arguments, want string }{
		{"list_tasks", `{}`, `{"tasks":[` + task + `]}`},
		{"list_tasks", ``, `{"tasks":[` + task + `]}`},
		{"list_tasks", `{"completed":null}`, `{"tasks":[` + task + `]}`},
		{"complete_task", `{"task_id":1}`, `{"task":` + done + `}`},
		{"list_tasks", `{"completed":false}`, `{"tasks":[]}`},
		{"list_tasks", `{"completed":true}`, `{"tasks":[` + done + `]}`},
		{"delete_task", `{"task_id":1.0}`, `{"task":` + done + `}`},
	} {
		if got, err := tools.call(t, 1, test.tool, test.arguments); err != nil || got != test.want {
			t.Errorf("%s %s: %s, %v, want %s", test.tool, test.arguments, got, err, test.want)
		}
	}
	if !strings.HasSuffix(result.Task.CreatedAt, "Z") || len(result.Task.CreatedAt) != len("2026-02-08T14:30:00Z") {
		t.Errorf("created_at is %q", result.Task.CreatedAt)
	}
}

// However a caller writes the name of the trusted value, it does not count, and
// the attempt is known.
func TestForgedUsers(t *testing.T) {
	book, _ := open(t)
	tools := newKit(t, book)
	mine, theirs := add(t, book, 1, "mine"), add(t, book, 2, "theirs")
	base := map[string]string{
		"add_task":      `"title":"planted"`,
		"list_tasks":    `"completed":false`,
		"update_task":   fmt.Sprintf(`"task_id":%d,"title":"changed"`, theirs.ID),
		"complete_task": fmt.Sprintf(`"task_id":%d`, theirs.ID),
		"delete_task":   fmt.Sprintf(`"task_id":%d`, theirs.ID),
	}
	forged := []string{
		`"user_id":2`, `"USER_ID":2`, `"User_Id":2`, `"user_\u0069d":2`, `"u\u017fer_id":2`,
		`"user_id":1`, `"user_id":null`, `"user_id":"2"`, `"user_id":[2]`, `"user_id":1,"user_id":2`, `"user_id":1,"USER_ID":2`,
		`"user_id\u0000":2`, `"user_id\ud800":2`,
	}
	merely := []string{ // other names, which no tool takes
		`"userId":2`, `"user-id":2`, `" user_id":2`, `"user\u200b_id":2`, `"user":{"user_id":2}`,
		`"_meta":{"user_id":2}`, `"arguments":{"user_id":2}`, `"__proto__":{"user_id":2}`, `"constructor":{"prototype":{"user_id":2}}`,
	}
	for tool, arguments := range base {
		for i, extra := range append(forged, merely...) {
			for _, text := range []string{"{" + arguments + "," + extra + "}", "{" + extra + "," + arguments + "}"} {
				got, err := tools.call(t, 1, tool, text)
				attempt, known := errors.AsType[*invoker.Forged](err)
				if code(err) != invoker.InvalidArguments || known != (i < len(forged)) || known && !slices.Equal(attempt.Names, []string{"user_id"}) {
					t.Errorf("%s %s: %s, %v, known %v", tool, text, got, err, known)
				}
			}
		}
	}
	if a, b := list(t, book, 1), list(t, book, 2); !slices.Equal(a, []Task{mine}) || !slices.Equal(b, []Task{theirs}) {
		t.Errorf("the tasks became %+v and %+v", a, b)
	}
}

func TestArgumentsThatAreNone(t *testing.T) {
	book, _ := open(t)
	tools := newKit(t, book)
	add(t, book, 1, "mine")
	for _, arguments := range []string{
		`[]`, `"x"`, `7`, `{`, `{}`, `{"title":7,"task_id":"1"}`, `{"title":null,"task_id":null}`, `{"title":["x"],"task_id":1.5}`,
		`{"title":"x","title":"y","task_id":1,"task_id":2}`, `{"title":"x","task_id":` + strings.Repeat("9", 400) + `}`,
		`{"title":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `,"task_id":1}`,
		`{"TITLE":"x","Task_ID":1}`, `{"title":"x","task_id":9223372036854775808}`,
	} {
		for _, tool := range []string{"update_task", "complete_task", "delete_task"} {
			if got, err := tools.call(t, 1, tool, arguments); code(err) != invoker.InvalidArguments {
				t.Errorf("%s %.60s: %s, %v", tool, arguments, got, err)
			}
		}
	}
	if got := list(t, book, 1); len(got) != 1 || got[0].Title != "mine" {
		t.Errorf("the tasks became %+v", got)
	}
}

// A tool without its trusted value is refused before it runs.
func TestToolsWithoutAUser(t *testing.T) {
	book, _ := open(t)
	for name, tool := range newKit(t, book) {
		_, err := tool.Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(`{"what is this":`)})
		if code(err) != invoker.Unauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEnsemble(t *testing.T) {
	book, _ := open(t)
	tasks := Ensemble(book)
	defer tasks.Close(t.Context())
	tools, err := tasks.Tools(t.Context())
	if err != nil || len(tools) != 5 || tools[0].Name() != "tasks__add_task" {
		t.Errorf("%v, %v", tools, err)
	}
}
