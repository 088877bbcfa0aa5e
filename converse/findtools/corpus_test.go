// SPDX-License-Identifier: Apache-2.0

package findtools_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/findtools"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// corpus returns ensembles with the collected tools of internal/toolsearch.
func corpus(t *testing.T) (ensembles []*ensemble.Ensemble) {
	t.Helper()
	file, err := os.Open("../../internal/toolsearch/testdata/tools.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := json.NewDecoder(unzipped); decoder.More(); {
		var server struct {
			Server string
			Tools  []struct {
				Name, Title, Description string
				InputSchema              json.RawMessage
			}
		}
		if err := decoder.Decode(&server); err != nil {
			t.Fatal(err)
		}
		var tools []invoker.Invoker
		for _, tool := range server.Tools {
			definition := invoker.Definition{Name: tool.Name, Title: tool.Title, Description: tool.Description, InputSchema: tool.InputSchema}
			tools = append(tools, collectedTool{definition})
		}
		ensembles = append(ensembles, ensemble.Local(server.Server, tools...))
	}
	return ensembles
}

type collectedTool struct{ definition invoker.Definition }

func (c collectedTool) Definition() *invoker.Definition { return &c.definition }

func (c collectedTool) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	return invoker.Output{Content: canister.Texts("done")}, nil
}

// size returns the bytes of the definitions that a request shows.
func size(definitions []*invoker.Definition) (bytes int) {
	for _, d := range definitions {
		bytes += len(d.Name) + len(d.Description) + len(d.InputSchema)
	}
	return bytes
}

// The first request of a conversation with more than a thousand real tools has at most 3 % of
// the bytes of their definitions, and a tool is found and called.
func TestFirstRequestIsSmall(t *testing.T) {
	ensembles := corpus(t)
	tools, err := findtools.Ensemble("tools", ensembles...)
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(append(ensembles, tools)...)
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	var first, all int
	ask := says(find, `{"query":"github create issue"}`)
	ask.Expect = func(r *converse.Request) error { first = size(r.Tools.Definitions); return nil }
	script := conversetest.NewScript(ask, says(call, `{"name":"github__create_issue","arguments":{"owner":"o","repo":"r",`+
		`"title":"t"}}`), conversetest.Line{Text: "Done."})
	talk := converse.New(findtools.New(script, &findtools.Options{Tools: "tools"}), roster, nil)
	turn, err := talk.Ask(t.Context(), canister.Text("Go."))
	if err != nil || turn.Text() != "Done." {
		t.Fatalf("%v %v", turn, err)
	}
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var definitions []*invoker.Definition
	for _, tool := range catalog.Tools() {
		definitions = append(definitions, tool.Definition())
	}
	all = size(definitions)
	t.Logf("%d bytes of %d tools, %d in the first request", all, len(definitions), first)
	if first == 0 || first*100 > all*3 || len(definitions) < 1000 {
		t.Errorf("the first request has %d of %d bytes, of %d tools", first, all, len(definitions))
	}
	var names []string
	for _, c := range talk.History() {
		if invocation, ok := c.(canister.Invocation); ok {
			names = append(names, invocation.Name)
		}
	}
	if got := strings.Join(names, " "); got != find+" github__create_issue" {
		t.Errorf("it calls %s", got)
	}
}
