// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// wireTool is a tool as sent by the server. The SDK decodes schemas into maps, which
// loses the order of members and the precision of numbers.
type wireTool struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  struct {
		Title           string `json:"title"`
		ReadOnlyHint    bool   `json:"readOnlyHint"`
		IdempotentHint  bool   `json:"idempotentHint"`
		DestructiveHint *bool  `json:"destructiveHint"`
		OpenWorldHint   *bool  `json:"openWorldHint"`
	}
	Execution struct {
		TaskSupport string `json:"taskSupport"`
	}
	metadata canister.Fields
}

// List implements [ensemble.Connection].
func (c *connection) List(ctx context.Context) (ensemble.Listing, error) {
	var listing ensemble.Listing
	listed := 0
	err := c.everyPage(ctx, "tools", func(ctx context.Context, cursor string) ([]json.RawMessage, string, error) {
		x := new(exchange)
		page, err := c.page(ctx, x, cursor)
		if listed += len(page.Tools); listed > maxListed {
			err = invoker.Failf(invoker.Protocol, "there are more than %d of them", maxListed)
		}
		if err != nil {
			x.failed(invoker.AsFailure(err))
			return nil, "", err
		}
		aside := len(listing.Aside)
		for _, raw := range page.Tools {
			c.addTool(&listing, raw, page.valid)
		}
		x.listed(len(page.Tools), len(listing.Aside)-aside)
		return page.Tools, page.NextCursor, nil
	})
	if err != nil {
		return ensemble.Listing{}, err
	}
	return listing, nil
}

// listPage is one page of tools/list.
type listPage struct {
	Tools      []json.RawMessage `json:"tools"`
	NextCursor string            `json:"nextCursor"`
	valid      map[string]bool   // names of the tools whose header annotations the SDK accepts
}

func (c *connection) page(ctx context.Context, x *exchange, cursor string) (listPage, error) {
	page := listPage{valid: make(map[string]bool)}
	var broken error
	x.show = func(result json.RawMessage) json.RawMessage {
		broken = json.Unmarshal(result, &page)
		return abridged(&page)
	}
	err := c.request(ctx, x, func(ctx context.Context) error {
		result, err := c.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return err
		}
		for _, tool := range result.Tools {
			page.valid[tool.Name] = true
		}
		return nil
	})
	if err != nil {
		return listPage{}, c.failure(err, x, true)
	}
	if broken != nil {
		return listPage{}, invoker.Failf(invoker.Protocol, "the list of tools cannot be read: %w", broken)
	}
	return page, nil
}

// abridged returns a page with only what the SDK needs: the input schemas for its
// Mcp-Param headers (SEP-2243). Anything else could make it fail, and one odd tool must
// not cost the others. Without ttlMs the SDK caches nothing, so that each listing asks
// the server.
func abridged(page *listPage) json.RawMessage {
	type tool struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	}
	short := struct {
		Tools      []tool `json:"tools"`
		NextCursor string `json:"nextCursor,omitempty"`
	}{Tools: []tool{}, NextCursor: page.NextCursor}
	for _, raw := range page.Tools {
		if t, err := decodeTool(raw); err == nil {
			short.Tools = append(short.Tools, tool{t.Name, t.InputSchema})
		}
	}
	text, err := json.Marshal(short)
	if err != nil {
		return json.RawMessage(`{"tools":[]}`) // cannot happen: all of it was decoded
	}
	return text
}

// decodeTool decodes a tool; members without a field go into its metadata.
func decodeTool(raw json.RawMessage) (*wireTool, error) {
	rest, err := wire.Members(raw)
	if err != nil {
		return nil, fmt.Errorf("it is not a JSON object")
	}
	t := &wireTool{InputSchema: rest["inputSchema"], OutputSchema: rest["outputSchema"]}
	if json.Unmarshal(rest["name"], &t.Name) != nil {
		return nil, fmt.Errorf("its name is not a string")
	}
	// Fields of the wrong type are ignored.
	_ = json.Unmarshal(rest["title"], &t.Title)
	_ = json.Unmarshal(rest["description"], &t.Description)
	_ = json.Unmarshal(rest["annotations"], &t.Annotations)
	_ = json.Unmarshal(rest["execution"], &t.Execution)
	t.metadata = metadataOf(rest, "name", "description", "inputSchema", "outputSchema")
	return t, nil
}

// addTool adds a tool to the listing, or sets it aside.
func (c *connection) addTool(listing *ensemble.Listing, raw json.RawMessage, valid map[string]bool) {
	aside := func(name, format string, args ...any) {
		listing.Aside = append(listing.Aside, ensemble.Aside{Tool: name, Reason: fmt.Sprintf(format, args...)})
	}
	t, err := decodeTool(raw)
	switch {
	case err != nil:
		aside(textcut.Bytes(string(raw), wire.MaxQuoted), "the server describes it wrongly: %v", err)
		return
	case !valid[t.Name]:
		aside(t.Name, "its x-mcp-header annotations break the rules of SEP-2243")
		return
	case t.Execution.TaskSupport == "required":
		aside(t.Name, "it can only be called as a task, which this client does not do")
		return
	}
	inv, err := c.invoker(t)
	if err != nil {
		aside(t.Name, "%v", err)
		return
	}
	listing.Invokers = append(listing.Invokers, inv)
}

// definition returns the tool as its server describes it.
func (t *wireTool) definition() invoker.Definition {
	def := invoker.Definition{
		Name:         t.Name,
		Title:        t.Title,
		Description:  t.Description,
		InputSchema:  t.InputSchema,
		OutputSchema: t.OutputSchema,
		Hints: invoker.Hints{
			ReadOnly:    t.Annotations.ReadOnlyHint,
			Idempotent:  t.Annotations.IdempotentHint,
			Destructive: t.Annotations.DestructiveHint,
			OpenWorld:   t.Annotations.OpenWorldHint,
		},
		Metadata: t.metadata,
	}
	if def.Title == "" {
		def.Title = t.Annotations.Title
	}
	return def
}

func (c *connection) invoker(t *wireTool) (invoker.Invoker, error) {
	def := t.definition()
	def.Needs = c.needs
	call := func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		return c.call(ctx, call, t.Name)
	}
	inv, err := invoker.Raw(def, call, nil)
	if err == nil || len(t.OutputSchema) == 0 {
		return inv, err
	}
	// A tool with an unusable output schema can still be called.
	unchecked, again := invoker.Raw(def, call, &invoker.RawOptions{UncheckedResults: true})
	if again != nil {
		return nil, err
	}
	c.log.Warn("results of a tool are not checked", event.SchemaRefused, zap.String("tool", t.Name), zap.Error(err))
	return unchecked, nil
}

// metadataOf returns the members that have no field, or nil if there are none.
func metadataOf(m map[string]json.RawMessage, known ...string) canister.Fields {
	return metadataUnder(wire.MetadataPrefix, m, known...)
}

// merged returns all fields of both; either may be nil.
func merged(fields, more canister.Fields) canister.Fields {
	if fields == nil {
		return more
	}
	maps.Copy(fields, more)
	return fields
}

func metadataUnder(prefix string, m map[string]json.RawMessage, known ...string) canister.Fields {
	var fields canister.Fields
	for name, value := range m {
		if slices.Contains(known, name) {
			continue
		}
		if fields == nil {
			fields = make(canister.Fields)
		}
		fields[prefix+name] = compact(value)
	}
	return fields
}

func compact(value json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return value // cannot happen: it was decoded
	}
	return b.Bytes()
}
