// SPDX-License-Identifier: Apache-2.0

package anthropicmodel_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/anthropicmodel"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// A conversation with a model behind the Messages API. Here a local server stands in for
// Anthropic's, which needs no BaseURL, and a key in ANTHROPIC_API_KEY.
func Example() {
	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Rain, as always."}}}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	model, err := anthropicmodel.New("claude-sonnet-4-5", &anthropicmodel.Options{BaseURL: strings.TrimSuffix(server.URL(), "/v1")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	talk := converse.New(model, nil, &converse.Options{Instructions: "Be brief."})
	defer talk.Close(context.Background())
	for event, err := range talk.Send(context.Background(), canister.Text("How is the weather in Bergen?")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if done, ok := event.(converse.TurnCompleted); ok {
			fmt.Println(canister.TextOf(done.Turn.Answer.Content))
		}
	}
	// Output: Rain, as always.
}
