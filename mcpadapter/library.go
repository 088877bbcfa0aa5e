// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/internal/decode"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var _ ensemble.Library = (*connection)(nil)

// offers returns the server's capabilities; it is never nil.
func (c *connection) offers() *mcp.ServerCapabilities {
	if s := c.session.InitializeResult(); s != nil && s.Capabilities != nil {
		return s.Capabilities
	}
	return &mcp.ServerCapabilities{}
}

// Resources implements [ensemble.Library] (MCP 2025-11-25, server/resources). A server
// without resources is not asked.
func (c *connection) Resources(ctx context.Context) ([]ensemble.Resource, error) {
	if c.offers().Resources == nil {
		return nil, errors.Join(ctx.Err(), c.gone())
	}
	return everyOne(ctx, c, "resources", "resources", func(ctx context.Context, cursor string) error {
		_, err := c.session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		return err
	}, decode.Resource)
}

// Templates implements [ensemble.Library] (MCP 2025-11-25, server/resources §
// Resource Templates).
func (c *connection) Templates(ctx context.Context) ([]ensemble.Template, error) {
	if c.offers().Resources == nil {
		return nil, errors.Join(ctx.Err(), c.gone())
	}
	return everyOne(ctx, c, "resource templates", "resourceTemplates", func(ctx context.Context, cursor string) error {
		_, err := c.session.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
		return err
	}, decode.Template)
}

// Prompts implements [ensemble.Library] (MCP 2025-11-25, server/prompts). A server
// without prompts is not asked.
func (c *connection) Prompts(ctx context.Context) ([]ensemble.Prompt, error) {
	if c.offers().Prompts == nil {
		return nil, errors.Join(ctx.Err(), c.gone())
	}
	return everyOne(ctx, c, "prompts", "prompts", func(ctx context.Context, cursor string) error {
		_, err := c.session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
		return err
	}, decode.Prompt)
}

// Read implements [ensemble.Library].
func (c *connection) Read(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	var answer map[string]json.RawMessage
	err := c.personal(ctx, telemetry.Call{URI: uri}, &answer, `{"contents":[]}`, func(ctx context.Context) error {
		_, err := c.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		return err
	})
	if err != nil {
		return nil, c.named("reading a resource", missing(err))
	}
	var parts []json.RawMessage
	if decodeMember(answer, "contents", &parts) != nil {
		return nil, c.named("reading a resource", invoker.Failf(invoker.Protocol, "Its contents cannot be read."))
	}
	contents := []canister.ResourceContent{}
	for _, part := range parts {
		d := decode.Object{Members: map[string]json.RawMessage{"resource": part}}
		content, ok := d.Resource().(canister.ResourceContent)
		if !ok || d.Failed {
			return nil, c.named("reading a resource", invoker.Failf(invoker.Protocol, "A part of the resource is neither text nor base64."))
		}
		content.URI = cmp.Or(content.URI, uri)
		contents = append(contents, content)
	}
	if len(contents) > 0 {
		rest := decode.MetadataUnder(wire.MetadataPrefix+wire.ReadResultPrefix, answer, "contents", "resultType", "ttlMs", "cacheScope")
		contents[0].Metadata = decode.Merge(contents[0].Metadata, rest)
	}
	return contents, nil
}

// missing turns an error for an unknown resource into NOT_FOUND. The newest protocol
// and some servers answer with the code for invalid parameters instead of the one for
// unknown resources; the only parameter is the URI.
func missing(err error) error {
	failure := invoker.AsFailure(err)
	if failure.Code != invoker.InvalidArguments && failure.Code != invoker.ToolNotFound {
		return err
	}
	told := *failure
	told.Code = invoker.NotFound
	return &told
}

// Get implements [ensemble.Library].
func (c *connection) Get(ctx context.Context, name string, arguments map[string]string) (*ensemble.Messages, error) {
	var answer map[string]json.RawMessage
	err := c.personal(ctx, telemetry.Call{Prompt: name}, &answer, `{"messages":[]}`, func(ctx context.Context) error {
		_, err := c.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
		return err
	})
	if err != nil {
		return nil, c.named("getting a prompt", err)
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(answer["messages"], &messages) != nil {
		return nil, c.named("getting a prompt", invoker.Failf(invoker.Protocol, "Its messages cannot be read."))
	}
	got := &ensemble.Messages{Metadata: decode.Metadata(answer, "description", "messages", "resultType")}
	_ = json.Unmarshal(answer["description"], &got.Description) // ignored unless it is text
	for _, m := range messages {
		d := decode.Object{Members: m}
		message := ensemble.PromptMessage{Role: d.Text("role"), Content: decode.Contents(m["content"]), Metadata: decode.Metadata(m, "role", "content")}
		if d.Failed {
			return nil, c.named("getting a prompt", invoker.Failf(invoker.Protocol, "The role of a message cannot be read."))
		}
		got.Messages = append(got.Messages, message)
	}
	return got, nil
}

// Complete implements [ensemble.Library] (MCP 2025-11-25, server/utilities/completion).
// A server without the capability is not asked; the oldest protocol does not have the
// capability, so those servers are always asked.
func (c *connection) Complete(ctx context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	if c.offers().Completions == nil && c.session.InitializeResult().ProtocolVersion > "2024-11-05" {
		return nil, errors.Join(ctx.Err(), c.gone())
	}
	params := &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: request.Prompt},
		Argument: mcp.CompleteParamsArgument{Name: request.Argument, Value: request.Value},
	}
	if request.Template != "" {
		params.Ref = &mcp.CompleteReference{Type: "ref/resource", URI: request.Template}
	}
	if len(request.Others) > 0 {
		params.Context = &mcp.CompleteContext{Arguments: request.Others}
	}
	var answer map[string]json.RawMessage
	err := c.personal(ctx, telemetry.Call{}, &answer, `{"completion":{"values":[]}}`, func(ctx context.Context) error {
		_, err := c.session.Complete(ctx, params)
		return err
	})
	if err != nil {
		return nil, c.named("completing an argument", err)
	}
	return c.completion(answer)
}

// completion decodes a server's proposals.
func (c *connection) completion(answer map[string]json.RawMessage) (*ensemble.Completion, error) {
	var found struct {
		Values  []string
		Total   int
		HasMore bool
	}
	var own map[string]json.RawMessage
	if err := errors.Join(decodeMember(answer, "completion", &found), decodeMember(answer, "completion", &own)); err != nil {
		return nil, c.named("completing an argument", invoker.Failf(invoker.Protocol, "The answer cannot be read: %w", err))
	}
	metadata := decode.Merge(decode.Metadata(answer, "completion", "resultType"), decode.MetadataUnder(wire.MetadataPrefix+wire.CompletionPrefix, own, "values", "total", "hasMore"))
	return &ensemble.Completion{Values: found.Values, Total: max(found.Total, 0), More: found.HasMore, Metadata: metadata}, nil
}

// gone returns the failure of a request on a connection that has ended, or nil.
func (c *connection) gone() error {
	select {
	case <-c.life.Done():
		return c.lostCall(errClosed, false, true)
	default:
		return nil
	}
}

// named adds the server and the operation to an error.
func (c *connection) named(what string, err error) error {
	return fmt.Errorf("server %q: %s: %w", c.options.Server, what, err)
}

// ofPerson makes a personal request: it carries the trusted headers, and questions that
// the server asks meanwhile go to the call that ctx carries.
func (c *connection) personal(ctx context.Context, about telemetry.Call, value any, empty string, send func(context.Context) error) error {
	if err := c.entitled(ctx); err != nil {
		return err
	}
	x := &exchange{
		show: placeholder(empty), personal: true, origin: access.OriginFrom(ctx), call: invoker.CallFrom(ctx), roots: wire.RootsAsker(ctx), about: about,
	}
	return c.decoded(ctx, x, value, send)
}

// look makes a request that is not made for a particular person.
func (c *connection) shared(ctx context.Context, about telemetry.Call, value any, empty string, send func(context.Context) error) error {
	return c.decoded(ctx, &exchange{show: placeholder(empty), about: about}, value, send)
}

// decoded makes one request and decodes its answer into value. The SDK is shown an
// empty result, so that it cannot fail on members that it does not know.
func (c *connection) decoded(ctx context.Context, x *exchange, value any, send func(context.Context) error) error {
	if err := c.request(ctx, x, send); err != nil {
		return x.failed(c.failure(err, x, true))
	}
	if broken := json.Unmarshal(x.result(), value); broken != nil {
		return x.failed(invoker.Failf(invoker.Protocol, "The answer cannot be read: %w", broken))
	}
	x.ended(nil, nil)
	return nil
}
