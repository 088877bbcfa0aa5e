// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
)

// A model is asked, here at a server that plays one; most programs leave that
// to a conversation.
func Example() {
	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Text: "A coat, and an umbrella."}},
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer server.Close()

	model, err := openaimodel.New("demo", &openaimodel.Options{BaseURL: server.URL(), Temperature: new(0.2)})
	if err != nil {
		panic(err)
	}
	defer model.Close()

	request := &converse.Request{
		History: []canister.Canister{canister.User{
			Head:    canister.Head{ID: "1"},
			Content: canister.Texts("What should I wear in Oslo?"),
		}},
		NewID: func() string { return "2" },
	}
	for event, err := range model.Exchange(context.Background(), request) {
		if err != nil {
			panic(err)
		}
		switch event := event.(type) {
		case converse.Delta:
			fmt.Print(event.Text)
		case converse.Reply:
			fmt.Printf("\n%s, finish %s\n", event.Message.Model, event.Message.Finish)
		}
	}
	// Output:
	// A coat, and an umbrella.
	// demo, finish stop
}

// Screen tells why a tool cannot be offered.
func ExampleModel_Screen() {
	model, err := openaimodel.New("demo", &openaimodel.Options{BaseURL: "http://localhost:8080/v1"})
	if err != nil {
		panic(err)
	}
	for _, schema := range []string{`{"type":"object"}`, `{"type":"string"}`} {
		fmt.Println(model.Screen(&invoker.Definition{Name: "tool", InputSchema: json.RawMessage(schema)}))
	}
	// Output:
	// <nil>
	// its arguments are not an object: the root of its input schema has the type "string"
}
