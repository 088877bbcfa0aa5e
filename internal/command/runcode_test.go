// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// A model that is shown no tools of servers writes a program that calls one. The call is
// approved by the name of the tool, and the model sees only the program and its value.
func TestAProgramCallsATool(t *testing.T) {
	t.Parallel()
	program := calls("code__run_code", `{"program":"texts = [library__echo(text=t) for t in [\"in\", \"ner\"]]\nreturn len(texts)"}`)
	script := openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{
		says("", program),
		{Reply: openaiserver.Message{Text: "Done."}},
	}}
	model, err := openaiserver.Start(script, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	table, _ := library(t, "")
	path := file(t, fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\nmax_retries = 0\n[tools]\nmode = \"search\"\ncode = true\n", model.URL()), table)

	o := consort(t, "--config", path, "run", "--json", "Go.").expect(t, exit.Done)
	contains(t, "without an approval", o.stdout, "Line 1, column 23: library__echo failed: DENIED", `"name":"library__echo"`)
	o = consort(t, "--config", path, "run", "--approve", "library__echo", "--json", "Go.").expect(t, exit.Done)
	contains(t, "with an approval", o.stdout, `"name":"library__echo"`, `"parent":`, `"text":"2"`)
	lacks(t, "with an approval", o.stdout, "DENIED")
	requests := model.Requests()
	for _, request := range requests {
		if got := strings.Join(offeredIn(t, request.Body), " "); got != "code__run_code tools__call_tool tools__find_tools" {
			t.Errorf("a request offers %q", got)
		}
	}
	last := string(requests[len(requests)-1].Body)
	contains(t, "the last request", last, `"name":"code__run_code"`)
	lacks(t, "the last request", last, `"name":"library__echo"`, `{\"text\":\"in\"}`)
}

// The results of programs without calls, and of the tools of servers with the same names, are in
// the history.
func TestHistoryShowsTheResultsOfPrograms(t *testing.T) {
	t.Parallel()
	path := file(t, historyTable)
	talk := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Go.")},
		canister.Assistant{Head: canister.Head{ID: "m"}},
	}
	for _, one := range []struct{ id, name, code, result string }{
		{"a", "code__run_code", "", "forty-two"},
		{"b", "code__run_code", "INVALID_ARGUMENTS", "got end of file"},
		{"c", "others__run_code", "", "a result of another server"},
		{"d", "others__find_tools", "", "a hammer and a saw"},
		{"e", "tools__find_tools", "", "No tool has one of these words. There are no tools."},
	} {
		talk = append(talk, canister.Invocation{Head: canister.Head{ID: one.id}, Message: "m", CallID: one.id, Name: one.name, Arguments: "{}"},
			canister.Result{Head: canister.Head{ID: "r" + one.id}, Invocation: one.id, Code: one.code, Content: canister.Texts(one.result)})
	}
	if err := open(t, path).Append(t.Context(), "talk", 0, talk...); err != nil {
		t.Fatal(err)
	}
	shown := consort(t, "history", "show", "talk", "--config", path).expect(t, exit.Done).stdout
	contains(t, "the conversation", shown, "forty-two", "got end of file", "a result of another server", "a hammer and a saw", "nothing found (--full")
	lacks(t, "the conversation", shown, "no calls", "There are no tools.")
}
