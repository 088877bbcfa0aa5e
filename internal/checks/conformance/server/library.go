// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/stage"
	"github.com/consort-go/consort/invoker"
)

const watched = "test://watched-resource"

// library returns the resources and prompts that the suite requests.
func library(updates *local.Updates) local.Library {
	return local.Library{Resources: resources(), Templates: templates(), Prompts: prompts(), Updates: updates}
}

func resources() []local.Resource {
	return []local.Resource{
		resource("test://static-text", "Static Text Resource", canister.ResourceContent{
			MIME: "text/plain", Text: "This is the content of the static text resource.",
		}),
		resource("test://static-binary", "Static Binary Resource", canister.ResourceContent{MIME: "image/png", Blob: redDot}),
		resource(watched, "Watched Resource", canister.ResourceContent{MIME: "text/plain", Text: "Watched resource content"}),
	}
}

func resource(uri, name string, part canister.ResourceContent) local.Resource {
	return local.Resource{
		Resource: ensemble.Resource{URI: uri, Name: name, Description: describe(name), MIME: part.MIME},
		Read: func(context.Context) ([]canister.ResourceContent, error) {
			return []canister.ResourceContent{part}, nil
		},
	}
}

func templates() []local.Template {
	return []local.Template{{
		Template: ensemble.Template{
			URI: "test://template/{id}/data", Name: "Template Resource", Description: "Data for an id.", MIME: "application/json",
		},
		Read: func(_ context.Context, _ string, variables map[string]string) ([]canister.ResourceContent, error) {
			text := fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %[1]s"}`, variables["id"])
			return []canister.ResourceContent{{Text: text}}, nil
		},
	}}
}

func prompts() []local.Prompt {
	image := canister.ImageContent{Data: redDot, MIME: "image/png"}
	withArguments := prompt("test_prompt_with_arguments", func(_ context.Context, arguments map[string]string) ([]canister.Content, error) {
		return canister.Texts(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", arguments["arg1"], arguments["arg2"])), nil
	}, "arg1", "arg2")
	withArguments.Complete = func(context.Context, *ensemble.CompletionRequest) (*ensemble.Completion, error) {
		return &ensemble.Completion{Values: []string{"paris", "park", "party"}, Total: 150, More: true}, nil
	}
	return []local.Prompt{
		prompt("test_simple_prompt", func(context.Context, map[string]string) ([]canister.Content, error) {
			return canister.Texts("This is a simple prompt for testing."), nil
		}),
		withArguments,
		prompt("test_prompt_with_embedded_resource", func(_ context.Context, arguments map[string]string) ([]canister.Content, error) {
			embedded := canister.ResourceContent{
				URI: arguments["resourceUri"], MIME: "text/plain", Text: "Embedded resource content for testing.",
			}
			return []canister.Content{embedded, canister.Text("Please process the embedded resource above.")}, nil
		}, "resourceUri"),
		prompt("test_prompt_with_image", func(context.Context, map[string]string) ([]canister.Content, error) {
			return []canister.Content{image, canister.Text("Please analyze the image above.")}, nil
		}),
		prompt("test_input_required_result_prompt", func(ctx context.Context, _ map[string]string) ([]canister.Content, error) {
			answer, err := ask(ctx, "user_context", "What context should the prompt use?", contextSchema)
			if err != nil {
				return nil, err
			}
			return canister.Texts("Context: " + field(answer, "context")), nil
		}),
	}
}

// prompt returns a prompt with one message for each piece of content.
func prompt(name string, write func(context.Context, map[string]string) ([]canister.Content, error), required ...string) local.Prompt {
	p := local.Prompt{Prompt: ensemble.Prompt{Name: name, Description: describe(name)}}
	for _, argument := range required {
		p.Arguments = append(p.Arguments, ensemble.PromptArgument{Name: argument, Description: describe(argument), Required: true})
	}
	p.Get = func(ctx context.Context, arguments map[string]string) (*ensemble.Messages, error) {
		contents, err := write(ctx, arguments)
		if err != nil {
			return nil, err
		}
		messages := &ensemble.Messages{Description: p.Description}
		for _, content := range contents {
			messages.Messages = append(messages.Messages, ensemble.PromptMessage{Role: "user", Content: []canister.Content{content}})
		}
		return messages, nil
	}
	return p
}

// addChanges adds the tools that change the list of tools or prompts.
func addChanges(s *stage.Stage) {
	s.AddTool(tool("test_trigger_tool_change", func(context.Context, nothing) (string, error) {
		s.AddTool(constant(fmt.Sprintf("transient_%d", time.Now().UnixNano()), canister.Text("Here for a while.")))
		return "There is one more tool.", nil
	}))
	s.AddTool(tool("test_trigger_prompt_change", func(context.Context, nothing) (string, error) {
		s.AddPrompt(prompt("transient_prompt", func(context.Context, map[string]string) ([]canister.Content, error) {
			return canister.Texts("Here for a while."), nil
		}))
		return "There is one more prompt.", nil
	}))
}

// tellUpdates periodically reports that the watched resource was updated.
func tellUpdates(ctx context.Context, updates *local.Updates) {
	const every = time.Second
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			updates.Tell(watched)
		case <-ctx.Done():
			return
		}
	}
}

// tool turns a function into a tool.
func tool[In, Out any](name string, function func(context.Context, In) (Out, error)) invoker.Invoker {
	return must(invoker.New(name, describe(name), function, nil))
}
