// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
)

// TestRealConversation: a model asks three servers at once, two of them twice,
// recovers from what went wrong, and answers.
func TestRealConversation(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	dir := realDir(t)
	note := quoted(filepath.Join(dir, "note.txt"))
	r := newRealRoster(t,
		realEnsemble("everything", stdioSource(servers.Everything(), mcpadapter.ClientOptions{}, nil)),
		realEnsemble("files", stdioSource(servers.Filesystem(dir), mcpadapter.ClientOptions{}, nil)),
		realEnsemble("memory", stdioSource(servers.Memory(), mcpadapter.ClientOptions{},
			map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "graph.jsonl")})),
	)
	model := conversetest.NewScript(
		conversetest.Line{
			Expect: offersTools(r.offers(t, slices.Concat(everythingTools, filesystemTools, memoryTools)...)),
			Text:   "Let me see.",
			Calls: []conversetest.Call{
				{Name: "everything__trigger-long-running-operation", Arguments: `{"duration":0.3,"steps":3}`},
				{Name: "files__write_file", Arguments: `{"path":` + note + `,"content":"brass"}`},
				{Name: "memory__create_entities", Arguments: `{"entities":[{"name":"Engine","entityType":"machine","observations":["brass"]}]}`},
				{Name: "files__read_text_file", Arguments: `{"path":"/etc/passwd"}`},
				{Name: "everything__get-sum", Arguments: `{"a":1}`},
			},
		},
		conversetest.Line{
			Expect: answered("completed", "Successfully wrote", "Engine", "EXECUTION_FAILED", "INVALID_ARGUMENTS"),
			Calls: []conversetest.Call{
				{Name: "memory__search_nodes", Arguments: `{"query":"brass"}`},
				{Name: "files__read_text_file", Arguments: `{"path":` + note + `}`},
				{Name: "everything__get-sum", Arguments: `{"a":1,"b":2}`},
			},
		},
		conversetest.Line{Expect: answered("Engine", "brass", "The sum of 1 and 2 is 3."), Text: "It is of brass."},
	)
	talk := converse.New(model, r.Roster, nil)
	progress, completed := 0, make(map[string]int)
	var turn converse.Turn
	for event, err := range talk.Send(atLast(t), canister.Text("What is the engine made of?")) {
		if err != nil {
			t.Fatal(err)
		}
		switch event := event.(type) {
		case converse.InvocationProgressed:
			progress++
			if completed[event.Invocation.ID] > 0 {
				t.Error("progress came after the result")
			}
		case converse.InvocationCompleted:
			completed[event.Invocation.ID]++
		case converse.TurnCompleted:
			turn = event.Turn
		}
	}
	if err := model.Err(); err != nil {
		t.Error(err)
	}
	if turn.Reason != converse.ReasonAnswered || turn.Exchanges != 3 || turn.Invocations != 8 || len(completed) != 8 ||
		progress != 3 || turn.Text() != "It is of brass." {
		t.Errorf("%d progress, %d completed, %+v", progress, len(completed), turn)
	}
	for _, problem := range sequence.Check(talk.History()) {
		t.Error(problem)
	}
}

// offersTools expects the tools of the catalog in the request, and no others.
func offersTools(catalog *ensemble.Catalog) func(*converse.Request) error {
	return func(request *converse.Request) error {
		var want, got []string
		for _, tool := range catalog.Tools() {
			want = append(want, tool.Name())
		}
		for _, definition := range request.Tools.Definitions {
			got = append(got, definition.Name)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("the tools on offer are %q, want %q", got, want)
		}
		return nil
	}
}

// answered expects the last results of the history, in the order of the calls,
// to hold these words or codes.
func answered(want ...string) func(*converse.Request) error {
	return func(request *converse.Request) error {
		last := request.History[len(request.History)-len(want):]
		for i, word := range want {
			result, ok := last[i].(canister.Result)
			if !ok {
				return fmt.Errorf("result %d is a %T", i, last[i])
			}
			if text := canister.TextOf(result.Content); !strings.Contains(text, word) && result.Code != word {
				return fmt.Errorf("result %d is %s %q, without %q", i, result.Code, text, word)
			}
			if failed := word == string(invoker.ExecutionFailed) || word == string(invoker.InvalidArguments); failed != (result.Code != "") {
				return fmt.Errorf("result %d has the code %q", i, result.Code)
			}
		}
		return nil
	}
}
