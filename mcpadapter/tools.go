// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/decode"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// List implements [ensemble.Connection].
func (c *connection) List(ctx context.Context) (ensemble.Listing, error) {
	var listing ensemble.Listing
	listed := 0
	err := c.requests.everyPage(ctx, "tools", func(ctx context.Context, cursor string) ([]json.RawMessage, string, error) {
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
	err := c.requests.request(ctx, x, func(ctx context.Context) error {
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
		return listPage{}, c.requests.failure(err, x, true)
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
		if t, err := decode.ReadTool(raw); err == nil {
			short.Tools = append(short.Tools, tool{t.Name, t.InputSchema})
		}
	}
	text, err := json.Marshal(short)
	if err != nil {
		return json.RawMessage(`{"tools":[]}`) // cannot happen: all of it was decoded
	}
	return text
}

// addTool adds a tool to the listing, or sets it aside.
func (c *connection) addTool(listing *ensemble.Listing, raw json.RawMessage, valid map[string]bool) {
	aside := func(name, format string, args ...any) {
		listing.Aside = append(listing.Aside, ensemble.Aside{Tool: name, Reason: fmt.Sprintf(format, args...)})
	}
	t, err := decode.ReadTool(raw)
	switch {
	case err != nil:
		aside(textcut.Bytes(string(raw), wire.MaxQuoted), "the server's description of it is invalid: %v", err)
		return
	case !valid[t.Name]:
		aside(t.Name, "its x-mcp-header annotations break the rules of SEP-2243")
		return
	case t.NeedsTask(c.capabilities):
		aside(t.Name, "it can only be called as a task, which this client does not support")
		return
	}
	inv, err := c.invoker(t)
	if err != nil {
		aside(t.Name, "%v", err)
		return
	}
	listing.Invokers = append(listing.Invokers, inv)
}

func (c *connection) invoker(t *decode.Tool) (invoker.Invoker, error) {
	def := t.Definition()
	def.Needs = c.requests.needs
	call := func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		return c.call(ctx, call, t.Name)
	}
	inv, err := invoker.Raw(def, call, &invoker.RawOptions{Inline: true}) // the ensemble has a goroutine for each call
	if err == nil || len(t.OutputSchema) == 0 {
		return inv, err
	}
	// A tool with an unusable output schema can still be called.
	unchecked, again := invoker.Raw(def, call, &invoker.RawOptions{UncheckedResults: true, Inline: true})
	if again != nil {
		return nil, err
	}
	c.log.Warn("the results of a tool are not checked against its output schema", logevent.SchemaRefused, zap.String("tool", t.Name), zap.Error(err))
	return unchecked, nil
}
