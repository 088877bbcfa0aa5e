// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// The same history gives the same bytes, over a thousand reconnects to servers
// that list their tools, and the members of their schemas, in any order.
func TestSameHistorySameBytes(t *testing.T) {
	var bodies [][]byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, body)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	model, err := openaimodel.New("m", &openaimodel.Options{BaseURL: server.URL, APIKey: "k", NoStream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	sources := []*ensembletest.Source{ensembletest.NewSource(), ensembletest.NewSource()}
	roster, err := ensemble.NewRoster(ensemble.New("b.dotted", sources[0], nil), ensemble.New("a", sources[1], nil))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	history := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u1"}, Content: canister.Texts("Look.")},
		canister.Assistant{Head: canister.Head{ID: "m1"}, Finish: canister.FinishInvocations},
		canister.Invocation{Head: canister.Head{ID: "i1"}, Message: "m1", CallID: "c1", Name: "a__one", Arguments: `{ "b":1, "a":2 }`},
		canister.Result{
			Head: canister.Head{ID: "r1"}, Invocation: "i1", Content: []canister.Content{canister.StructuredContent{JSON: json.RawMessage(`{"z":1,"a":2}`)}},
		},
	}
	for range 1000 {
		for _, source := range sources {
			source.SetTools(shuffledTools()...)
			source.Lose(errors.New("gone"))
		}
		talk := converse.New(model, roster, &converse.Options{History: history})
		for _, err := range talk.Continue(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, body := range bodies {
		if !bytes.Equal(body, bodies[0]) {
			t.Fatalf("request %d differs:\n%s\n%s", i, body, bodies[0])
		}
	}
	if len(bodies) != 1000 || bytes.Count(bodies[0], []byte(`"parameters"`)) != 6 {
		t.Errorf("%d requests, the first is %s", len(bodies), bodies[0])
	}
}

// shuffledTools are three tools in an order of chance.
func shuffledTools() []invoker.Invoker {
	var tools []invoker.Invoker
	for _, name := range []string{"one", "two/three", "four"} {
		members := []string{`"x":{"type":"string"}`, `"y":{"type":"integer"}`}
		rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		tool := ensembletest.NewTool(name, func(context.Context, *invoker.Call) (invoker.Output, error) {
			return invoker.Output{}, nil
		})
		tool.Def.InputSchema = json.RawMessage(`{"type":"object","properties":{` + members[0] + `,` + members[1] + `}}`)
		tools = append(tools, tool)
	}
	rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	return tools
}
