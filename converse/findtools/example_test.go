// SPDX-License-Identifier: Apache-2.0

package findtools_test

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/findtools"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
)

func Example() {
	ctx := context.Background()
	weather := ensemble.Local("weather", ensembletest.Returns("report", "3 °C and rain"), ensembletest.Returns("warnings", "none"))
	tools, err := findtools.Ensemble("tools", weather)
	if err != nil {
		fmt.Println(err)
		return
	}
	roster, err := ensemble.NewRoster(weather, tools)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(ctx)

	model := conversetest.NewScript( // stands in for a language model
		conversetest.Line{Calls: []conversetest.Call{{Name: "tools__find_tools", Arguments: `{"query":"weather report"}`}}},
		conversetest.Line{Calls: []conversetest.Call{{Name: "tools__call_tool", Arguments: `{"name":"weather__report","arguments":{}}`}}},
		conversetest.Line{Text: "Take an umbrella."},
	)
	talk := converse.New(findtools.New(model, &findtools.Options{Tools: "tools"}), roster, nil)
	turn, err := talk.Ask(ctx, canister.Text("What should I wear?"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range talk.History() {
		if invocation, ok := c.(canister.Invocation); ok {
			fmt.Println(invocation.Name, invocation.Arguments)
		}
	}
	fmt.Println(turn.Text())
	// Output:
	// tools__find_tools {"query":"weather report"}
	// weather__report {}
	// Take an umbrella.
}
