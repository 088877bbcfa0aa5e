// SPDX-License-Identifier: Apache-2.0

package runcode_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/runcode"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// replay runs programs as a conversation does: again after each round of calls.
type replay struct {
	offered []*invoker.Definition
	do      func(name, arguments string) canister.Result
	made    map[string]canister.Result // by key
	names   map[string]string          // what was called, by key
	wanted  []string                   // the keys of this run
	log     []string                   // what was called, in order; rounds are separated by bars
	runs    int
}

func (r *replay) Offered() []*invoker.Definition { return r.offered }

func (r *replay) Result(key, name string, arguments json.RawMessage) (canister.Result, bool, error) {
	result, ok := r.made[key]
	if ok && r.names[key] != name+" "+string(arguments) {
		return result, false, fmt.Errorf("call %s differs", key)
	}
	return result, ok, nil
}

func (r *replay) Request(key, name string, arguments json.RawMessage) error {
	if _, taken := r.names[key]; taken {
		return errors.New("the key is taken")
	}
	r.names[key] = name + " " + string(arguments)
	r.wanted = append(r.wanted, key)
	return nil
}

// run runs a program to its end.
func (r *replay) run(t testing.TB, options *runcode.Options, program string) (string, *invoker.Failure) {
	t.Helper()
	tool := toolOf(t, options)
	arguments, err := json.Marshal(map[string]string{"program": program})
	if err != nil {
		t.Fatal(err)
	}
	r.made, r.names = map[string]canister.Result{}, map[string]string{}
	for {
		r.runs++
		output, err := tool.Invoke(t.Context(), &invoker.Call{Arguments: arguments, Tools: r})
		if len(r.wanted) == 0 {
			var texts []string
			for _, c := range output.Content {
				texts = append(texts, c.(canister.TextContent).Text)
			}
			return strings.Join(texts, "\n"), invoker.AsFailure(err)
		}
		if len(r.log) > 0 {
			r.log = append(r.log, "|")
		}
		for _, key := range r.wanted {
			name, arguments, _ := strings.Cut(r.names[key], " ")
			r.log = append(r.log, key+" "+r.names[key])
			r.made[key] = r.do(name, arguments)
		}
		r.wanted = nil
	}
}

// toolOf returns the tool run_code.
func toolOf(t testing.TB, options *runcode.Options) *ensemble.Tool {
	t.Helper()
	roster, err := ensemble.NewRoster(runcode.Ensemble("code", options))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roster.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Tools()[0]
}

// shop is a server with prices, stocks and orders.
func shop() *replay {
	define := func(name, schema string) *invoker.Definition {
		return &invoker.Definition{Name: name, InputSchema: json.RawMessage(schema)}
	}
	item := `{"type":"object","properties":{"item":{"type":"string"},"currency":{"type":"string"}},"required":["item"],"additionalProperties":false}`
	return &replay{
		offered: []*invoker.Definition{
			define("shop__price", item), define("shop__stock", item), define("shop__order-now", item), define("shop__list", `{"type":"object"}`),
		},
		do: func(name, arguments string) canister.Result {
			var asked struct{ Item string }
			_ = json.Unmarshal([]byte(arguments), &asked)
			switch {
			case asked.Item == "ghost":
				return canister.Result{Code: "NOT_FOUND", Content: canister.Texts("There is no ghost.")}
			case name == "shop__list":
				return canister.Result{Content: []canister.Content{
					canister.Text("tea and milk"),
					canister.StructuredContent{JSON: json.RawMessage(`{"items":["tea","milk"],"total":2,"share":0.5,"more":null,"ok":true}`)},
				}}
			case name == "shop__price":
				return canister.Result{Content: []canister.Content{canister.StructuredContent{JSON: json.RawMessage(fmt.Sprint(len(asked.Item)))}}}
			}
			return canister.Result{Content: canister.Texts(name + " of " + asked.Item)}
		},
	}
}
