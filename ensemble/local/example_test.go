// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
)

func ExampleLibrary() {
	ctx := context.Background()
	updates := new(local.Updates)
	notes := ensemble.New("notes", local.Library{
		Resources: []local.Resource{{
			Resource: ensemble.Resource{URI: "note://today", Name: "today", Title: "Today", MIME: "text/plain"},
			Read: func(context.Context) ([]canister.ResourceContent, error) {
				return []canister.ResourceContent{{Text: "Buy brass."}}, nil
			},
		}},
		Prompts: []local.Prompt{{
			Prompt: ensemble.Prompt{Name: "plan", Arguments: []ensemble.PromptArgument{{Name: "day", Required: true}}},
			Get: func(_ context.Context, arguments map[string]string) (*ensemble.Messages, error) {
				return &ensemble.Messages{Messages: []ensemble.PromptMessage{
					{Role: "user", Content: canister.Texts("Plan my " + arguments["day"] + ".")},
				}}, nil
			},
		}},
		Updates: updates, // updates.Tell("note://today") notifies the subscribers
	}.Source(), nil)
	roster, err := ensemble.NewRoster(notes)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(ctx)

	document, err := roster.Document(ctx, "note://today")
	fmt.Println(document.Title, document.URI, err)
	messages, err := roster.GetPrompt(ctx, "notes__plan", map[string]string{"day": "Monday"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(canister.TextOf(messages.Canisters()[0].(canister.User).Content))
	// Output:
	// Today note://today <nil>
	// Plan my Monday.
}
