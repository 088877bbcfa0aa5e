// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"context"
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// libraryOptions makes a server of the SDK offer the resources and prompts of the suite.
func libraryOptions(instructions string) *mcp.ServerOptions {
	library := openLibrary()
	return &mcp.ServerOptions{
		Instructions:       instructions,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			asked := &ensemble.CompletionRequest{
				Prompt: req.Params.Ref.Name, Template: req.Params.Ref.URI,
				Argument: req.Params.Argument.Name, Value: req.Params.Argument.Value,
			}
			if req.Params.Context != nil {
				asked.Others = req.Params.Context.Arguments
			}
			found, err := library.Complete(ctx, asked)
			if err != nil {
				return nil, err
			}
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: append([]string{}, found.Values...)}}, nil
		},
	}
}

func openLibrary() ensemble.Library {
	c, err := ensembletest.ServerLibrary(nil).Source().Open(context.Background())
	if err != nil {
		panic(err) // is as the suite wrote it
	}
	return c.(ensemble.Library)
}

// addLibrary gives a server the resources, templates and prompts of the suite.
func addLibrary(server *mcp.Server) {
	library, offered := openLibrary(), ensembletest.ServerLibrary(nil)
	read := func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		parts, err := library.Read(ctx, req.Params.URI)
		if err != nil {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		result := &mcp.ReadResourceResult{}
		for _, p := range parts {
			result.Contents = append(result.Contents, &mcp.ResourceContents{URI: p.URI, MIMEType: p.MIME, Text: p.Text, Blob: p.Blob})
		}
		return result, nil
	}
	for _, r := range offered.Resources {
		server.AddResource(&mcp.Resource{URI: r.URI, Name: r.Name, Title: r.Title, MIMEType: r.MIME}, read)
	}
	for _, t := range offered.Templates {
		server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: t.URI, Name: t.Name}, read)
	}
	for _, p := range offered.Prompts {
		prompt := &mcp.Prompt{Name: p.Name, Description: p.Description}
		for _, a := range p.Arguments {
			prompt.Arguments = append(prompt.Arguments, &mcp.PromptArgument{Name: a.Name, Required: a.Required})
		}
		server.AddPrompt(prompt, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			got, err := library.Get(ctx, req.Params.Name, req.Params.Arguments)
			if err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: invoker.AsFailure(err).Message}
			}
			result := &mcp.GetPromptResult{}
			for _, m := range got.Messages {
				result.Messages = append(result.Messages,
					&mcp.PromptMessage{Role: mcp.Role(m.Role), Content: &mcp.TextContent{Text: canister.TextOf(m.Content)}})
			}
			return result, nil
		})
	}
}

// updateGreeting tells that the greeting was updated.
func updateGreeting(server *mcp.Server) {
	_ = server.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: "test://greeting"})
}

// addLate changes the resources as the suite expects.
func addLate(server *mcp.Server) {
	server.AddResource(&mcp.Resource{URI: "test://late", Name: "late"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://late", Text: "late"}}}, nil
	})
}

// structured is a failure in our form.
func structured(failure *invoker.Failure) json.RawMessage { return failure.Structured().JSON }
