// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Reader is what the connections of this package can do beside calls of tools.
// An [ensemble.Ensemble] keeps its connection to itself; who opens a source of
// this package asks with a type assertion:
//
//	connection, err := source.Open(ctx)
//	…
//	if reader, ok := connection.(mcpadapter.Reader); ok {
//
// All methods may be called concurrently; their errors are
// those of calls.
type Reader interface {
	// Resources lists the resources of the server, all pages of them
	// (MCP 2025-11-25, server/resources). A server without any has none.
	Resources(ctx context.Context) ([]canister.LinkContent, error)
	// ReadResource returns what a resource holds, which may be several parts.
	ReadResource(ctx context.Context, uri string) ([]canister.ResourceContent, error)
	// Prompts lists the names of the server's prompts, all pages of them
	// (MCP 2025-11-25, server/prompts). A server without any has none.
	Prompts(ctx context.Context) ([]string, error)
	// Prompt returns the messages of a prompt.
	Prompt(ctx context.Context, name string, arguments map[string]string) ([]invoker.SampleMessage, error)
}

var _ Reader = (*connection)(nil)

// Resources implements [Reader].
func (c *connection) Resources(ctx context.Context) ([]canister.LinkContent, error) {
	if s := c.session.InitializeResult(); s.Capabilities == nil || s.Capabilities.Resources == nil {
		return nil, nil
	}
	var links []canister.LinkContent
	err := c.everyPage(ctx, "resources", func(ctx context.Context, cursor string) (int, string, error) {
		var page struct {
			Resources  []json.RawMessage
			NextCursor string
		}
		err := c.read(ctx, &page, `{"resources":[]}`, func(ctx context.Context) error {
			_, err := c.session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			return err
		})
		for _, raw := range page.Resources {
			m, _ := members(raw) // none lacks all
			d := decoder{m: m}
			link, ok := d.link().(canister.LinkContent)
			if !ok || d.failed {
				return 0, "", invoker.Failf(invoker.Protocol, "one is described wrongly: %s", shortened(string(raw)))
			}
			links = append(links, link)
		}
		return len(page.Resources), page.NextCursor, err
	})
	if err != nil {
		return nil, err
	}
	return links, nil
}

// ReadResource implements [Reader].
func (c *connection) ReadResource(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	var answer struct{ Contents []json.RawMessage }
	err := c.read(ctx, &answer, `{"contents":[]}`, func(ctx context.Context) error {
		_, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("server %q: reading a resource: %w", c.options.Server, err)
	}
	var contents []canister.ResourceContent
	for _, part := range answer.Contents {
		d := decoder{m: map[string]json.RawMessage{"resource": part}}
		content, ok := d.resource().(canister.ResourceContent)
		if !ok || d.failed {
			return nil, fmt.Errorf("server %q: reading a resource: %w", c.options.Server, invoker.Failf(invoker.Protocol, "a part of it is neither text nor base64"))
		}
		contents = append(contents, content)
	}
	return contents, nil
}

// Prompts implements [Reader].
func (c *connection) Prompts(ctx context.Context) ([]string, error) {
	if s := c.session.InitializeResult(); s.Capabilities == nil || s.Capabilities.Prompts == nil {
		return nil, nil
	}
	var names []string
	err := c.everyPage(ctx, "prompts", func(ctx context.Context, cursor string) (int, string, error) {
		var page struct {
			Prompts    []struct{ Name string }
			NextCursor string
		}
		err := c.read(ctx, &page, `{"prompts":[]}`, func(ctx context.Context) error {
			_, err := c.session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			return err
		})
		for _, prompt := range page.Prompts {
			names = append(names, prompt.Name)
		}
		return len(page.Prompts), page.NextCursor, err
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// Prompt implements [Reader].
func (c *connection) Prompt(ctx context.Context, name string, arguments map[string]string) ([]invoker.SampleMessage, error) {
	var answer struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	err := c.read(ctx, &answer, `{"messages":[]}`, func(ctx context.Context) error {
		_, err := c.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("server %q: getting prompt %q: %w", c.options.Server, name, err)
	}
	var messages []invoker.SampleMessage
	for _, m := range answer.Messages {
		messages = append(messages, invoker.SampleMessage{Role: m.Role, Content: []canister.Content{contentOf(m.Content)}})
	}
	return messages, nil
}

// read makes one request and decodes its answer into value. The SDK is shown
// the empty answer, so that it cannot stumble over what it does not know.
func (c *connection) read(ctx context.Context, value any, empty string, send func(context.Context) error) error {
	x := &exchange{show: instead(empty)}
	if err := c.request(ctx, x, send); err != nil {
		return c.failure(err, x, true)
	}
	if broken := json.Unmarshal(x.result(), value); broken != nil {
		return invoker.Failf(invoker.Protocol, "the answer cannot be read: %w", broken)
	}
	return nil
}
