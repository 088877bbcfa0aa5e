// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// library returns a server with tools, resources and prompts. Its tool wait meets the test
// in a folder.
func library(folder string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
	addTools(server, folder)
	server.AddResource(&mcp.Resource{URI: "note:///welcome", Name: "welcome", Title: "A welcome", MIMEType: "text/plain"}, readNote)
	server.AddResource(&mcp.Resource{URI: "note:///secret", Name: "secret"}, readNote)
	server.AddResource(&mcp.Resource{URI: "note:///picture", Name: "picture", MIMEType: "image/png"}, readNote)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "note:///by/{name}", Name: "notes by name"}, readNote)
	server.AddPrompt(&mcp.Prompt{
		Name: "greet", Title: "A greeting",
		Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}, {Name: "tone"}},
	}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "Greet " + r.Params.Arguments["name"] + ", " + r.Params.Arguments["tone"] + "."}},
		}}, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: "over"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "assistant", Content: &mcp.TextContent{Text: "Your turn."}}}}, nil
	})
	return server
}

func readNote(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	contents := &mcp.ResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: "You are welcome at " + r.Params.URI + "."}
	switch r.Params.URI {
	case "note:///secret":
		contents.Text = "The password is " + os.Getenv("PASSWORD") + "."
	case "note:///picture":
		contents.Text, contents.Blob, contents.MIMEType = "", []byte{1, 2, 3}, "image/png"
	case "note:///by/sloth":
		<-ctx.Done()
	case "note:///by/nobody":
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// addTools adds echo, which returns its arguments; wait, which reports itself to the test
// and waits for it; and leak, which returns the password.
func addTools(server *mcp.Server, folder string) {
	add := func(name, schema string, run func(json.RawMessage) (string, bool)) {
		server.AddTool(&mcp.Tool{Name: name, Description: "The tool " + name + ". It has more to say.", InputSchema: json.RawMessage(schema)},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				text, failed := run(r.Params.Arguments)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}, nil
			})
	}
	add("echo", `{"type": "object", "properties": {"text": {"type": "string"}, "user_id": {"type": "string"}}}`,
		func(arguments json.RawMessage) (string, bool) { return string(arguments), false })
	add("wait", `{"type": "object"}`, func(json.RawMessage) (string, bool) {
		if err := os.WriteFile(filepath.Join(folder, "waiting"), nil, 0o600); err != nil {
			return err.Error(), true
		}
		for !exists(filepath.Join(folder, "go")) {
			time.Sleep(5 * time.Millisecond)
		}
		return "done", false
	})
	add("leak", `{"type": "object"}`, func(json.RawMessage) (string, bool) { return "it is " + os.Getenv("PASSWORD"), true })
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
