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

// library is everything that a server offers besides tools.
type library struct {
	requests *requester
	session  *mcp.ClientSession // set when the handshake is over
}

// offers returns the server's capabilities; it is never nil.
func (l *library) offers() *mcp.ServerCapabilities {
	if s := l.session.InitializeResult(); s != nil && s.Capabilities != nil {
		return s.Capabilities
	}
	return &mcp.ServerCapabilities{}
}

// Resources implements [ensemble.Library] (MCP 2025-11-25, server/resources). A server
// without resources is not asked.
func (l *library) Resources(ctx context.Context) ([]ensemble.Resource, error) {
	if l.offers().Resources == nil {
		return nil, errors.Join(ctx.Err(), l.requests.gone())
	}
	return everyOne(ctx, l.requests, "resources", "resources", func(ctx context.Context, cursor string) error {
		_, err := l.session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		return err
	}, decode.Resource)
}

// Templates implements [ensemble.Library] (MCP 2025-11-25, server/resources §
// Resource Templates).
func (l *library) Templates(ctx context.Context) ([]ensemble.Template, error) {
	if l.offers().Resources == nil {
		return nil, errors.Join(ctx.Err(), l.requests.gone())
	}
	return everyOne(ctx, l.requests, "resource templates", "resourceTemplates", func(ctx context.Context, cursor string) error {
		_, err := l.session.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
		return err
	}, decode.Template)
}

// Prompts implements [ensemble.Library] (MCP 2025-11-25, server/prompts). A server
// without prompts is not asked.
func (l *library) Prompts(ctx context.Context) ([]ensemble.Prompt, error) {
	if l.offers().Prompts == nil {
		return nil, errors.Join(ctx.Err(), l.requests.gone())
	}
	return everyOne(ctx, l.requests, "prompts", "prompts", func(ctx context.Context, cursor string) error {
		_, err := l.session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
		return err
	}, decode.Prompt)
}

// Read implements [ensemble.Library].
func (l *library) Read(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	var answer map[string]json.RawMessage
	err := l.requests.personal(ctx, telemetry.Call{URI: uri}, &answer, `{"contents":[]}`, func(ctx context.Context) error {
		_, err := l.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		return err
	})
	if err != nil {
		return nil, l.requests.named("reading a resource", missing(err))
	}
	var parts []json.RawMessage
	if decodeMember(answer, "contents", &parts) != nil {
		return nil, l.requests.named("reading a resource", invoker.Failf(invoker.Protocol, "Its contents cannot be read."))
	}
	contents := []canister.ResourceContent{}
	for _, part := range parts {
		d := decode.Object{Members: map[string]json.RawMessage{"resource": part}}
		content, ok := d.Resource().(canister.ResourceContent)
		if !ok || d.Failed {
			return nil, l.requests.named("reading a resource", invoker.Failf(invoker.Protocol, "A part of the resource is neither text nor base64."))
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
func (l *library) Get(ctx context.Context, name string, arguments map[string]string) (*ensemble.Messages, error) {
	var answer map[string]json.RawMessage
	err := l.requests.personal(ctx, telemetry.Call{Prompt: name}, &answer, `{"messages":[]}`, func(ctx context.Context) error {
		_, err := l.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: arguments})
		return err
	})
	if err != nil {
		return nil, l.requests.named("getting a prompt", err)
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(answer["messages"], &messages) != nil {
		return nil, l.requests.named("getting a prompt", invoker.Failf(invoker.Protocol, "Its messages cannot be read."))
	}
	got := &ensemble.Messages{Metadata: decode.Metadata(answer, "description", "messages", "resultType")}
	_ = json.Unmarshal(answer["description"], &got.Description) // ignored unless it is text
	for _, m := range messages {
		d := decode.Object{Members: m}
		message := ensemble.PromptMessage{Role: d.Text("role"), Content: decode.Contents(m["content"]), Metadata: decode.Metadata(m, "role", "content")}
		if d.Failed {
			return nil, l.requests.named("getting a prompt", invoker.Failf(invoker.Protocol, "The role of a message cannot be read."))
		}
		got.Messages = append(got.Messages, message)
	}
	return got, nil
}

// Complete implements [ensemble.Library] (MCP 2025-11-25, server/utilities/completion).
// A server without the capability is not asked; the oldest protocol does not have the
// capability, so those servers are always asked.
func (l *library) Complete(ctx context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	if l.offers().Completions == nil && l.session.InitializeResult().ProtocolVersion > "2024-11-05" {
		return nil, errors.Join(ctx.Err(), l.requests.gone())
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
	err := l.requests.personal(ctx, telemetry.Call{}, &answer, `{"completion":{"values":[]}}`, func(ctx context.Context) error {
		_, err := l.session.Complete(ctx, params)
		return err
	})
	if err != nil {
		return nil, l.requests.named("completing an argument", err)
	}
	return l.completion(answer)
}

// completion decodes a server's proposals.
func (l *library) completion(answer map[string]json.RawMessage) (*ensemble.Completion, error) {
	var found struct {
		Values  []string
		Total   int
		HasMore bool
	}
	var own map[string]json.RawMessage
	if err := errors.Join(decodeMember(answer, "completion", &found), decodeMember(answer, "completion", &own)); err != nil {
		return nil, l.requests.named("completing an argument", invoker.Failf(invoker.Protocol, "The answer cannot be read: %w", err))
	}
	metadata := decode.Merge(decode.Metadata(answer, "completion", "resultType"), decode.MetadataUnder(wire.MetadataPrefix+wire.CompletionPrefix, own, "values", "total", "hasMore"))
	return &ensemble.Completion{Values: found.Values, Total: max(found.Total, 0), More: found.HasMore, Metadata: metadata}, nil
}

// gone returns the failure of a request on a connection that has ended, or nil.
func (r *requester) gone() error {
	select {
	case <-r.life.lost: // shortly before the end of the context
	case <-r.life.ctx.Done():
	default:
		return nil
	}
	return r.lostCall(errClosed, false, true)
}

// named adds the server and the operation to an error.
func (r *requester) named(what string, err error) error {
	return fmt.Errorf("server %q: %s: %w", r.options.Server, what, err)
}

// personal makes a request for a particular person: it carries the trusted headers, and questions that
// the server asks meanwhile go to the call that ctx carries.
func (r *requester) personal(ctx context.Context, about telemetry.Call, value any, empty string, send func(context.Context) error) error {
	if err := r.entitled(ctx); err != nil {
		return err
	}
	x := &exchange{
		show: placeholder(empty), personal: true, origin: access.OriginFrom(ctx), call: invoker.CallFrom(ctx), roots: wire.RootsAsker(ctx), about: about,
	}
	return r.decoded(ctx, x, value, send)
}

// shared makes a request that is not made for a particular person.
func (r *requester) shared(ctx context.Context, about telemetry.Call, value any, empty string, send func(context.Context) error) error {
	return r.decoded(ctx, &exchange{show: placeholder(empty), about: about}, value, send)
}

// decoded makes one request and decodes its answer into value. The SDK is shown an
// empty result, so that it cannot fail on members that it does not know.
func (r *requester) decoded(ctx context.Context, x *exchange, value any, send func(context.Context) error) error {
	if err := r.request(ctx, x, send); err != nil {
		return x.failed(r.failure(err, x, true))
	}
	if broken := json.Unmarshal(x.result(), value); broken != nil {
		return x.failed(invoker.Failf(invoker.Protocol, "The answer cannot be read: %w", broken))
	}
	x.ended(nil, nil)
	return nil
}
