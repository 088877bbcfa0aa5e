// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"

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
