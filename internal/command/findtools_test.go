// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// A model that is shown no tools of servers finds one and calls it. The call is asked about,
// logged and shown under the name of the tool.
func TestAToolIsFoundAndCalled(t *testing.T) {
	t.Parallel()
	echo := calls("tools__call_tool", `{"name":"library__echo","arguments":{"text":"found"}}`)
	script := openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{
		says("", calls("tools__find_tools", `{"query":"echo a text"}`)),
		{Expect: openaiserver.Expect{Contains: []string{`library__echo`, `input_schema`}}, Reply: openaiserver.Message{Calls: []openaiserver.Call{echo}}},
		{Reply: openaiserver.Message{Text: "Done."}},
	}}
	model, err := openaiserver.Start(script, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	table, _ := library(t, "")
	path := file(t, fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\nmax_retries = 0\n[tools]\nmode = \"search\"\n", model.URL()), table)

	o := consort(t, "--config", path, "run", "--json", "Go.").expect(t, exit.Done)
	contains(t, "without an approval", o.stdout, `"name":"library__echo"`, "DENIED")
	o = consort(t, "--config", path, "run", "--approve", "library__echo", "--json", "Go.").expect(t, exit.Done)
	contains(t, "with an approval", o.stdout, `"name":"library__echo"`, `{\"text\":\"found\"}"}]`)
	lacks(t, "with an approval", o.stdout, "DENIED")
	requests := model.Requests()
	for _, request := range requests {
		if got := strings.Join(offeredIn(t, request.Body), " "); got != "tools__call_tool tools__find_tools" {
			t.Errorf("a request offers %q", got)
		}
	}
	contains(t, "the last request", string(requests[len(requests)-1].Body), `"name":"tools__call_tool"`, `\"name\":\"library__echo\"`)

	const rules = "[[approval.rules]]\ntools = [\"tools__*\"]\naction = \"allow\"\n[[approval.rules]]\ntools = [\"library__*\"]\naction = \"ask\"\n"
	asking := file(t, fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\nmax_retries = 0\n[tools]\nmode = \"search\"\n%s", model.URL(), rules), table)
	o = consort(t, "--config", asking, "run", "--json", "Go.").expect(t, exit.Done)
	contains(t, "a rule that asks, without a person", o.stdout, `"name":"library__echo"`, "DENIED")

	o = consort(t, "tools", "--tokens", "--config", path).expect(t, exit.Done)
	contains(t, "the cost", o.stdout, "2 tools: about ", " that the model has to find: about ")
}
