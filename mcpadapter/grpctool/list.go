// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"go.uber.org/zap"
)

// List implements [ensemble.Connection].
func (c *connection) List(ctx context.Context) (ensemble.Listing, error) {
	response, err := c.listed(ctx)
	if err != nil {
		return ensemble.Listing{}, err
	}
	var listing ensemble.Listing
	for _, tool := range response.GetTools() {
		inv, err := c.invoker(tool)
		if err != nil {
			listing.Aside = append(listing.Aside, ensemble.Aside{Tool: tool.GetName(), Reason: err.Error()})
			continue
		}
		listing.Invokers = append(listing.Invokers, inv)
	}
	return listing, nil
}

// listed returns the tools that were listed while connecting when it is called for the
// first time, and requests them afterwards.
func (c *connection) listed(ctx context.Context) (*toolspb.ListToolsResponse, error) {
	c.mu.Lock()
	first := c.first
	c.first = nil
	c.mu.Unlock()
	if first != nil && ctx.Err() == nil {
		return first, nil
	}
	return c.list(ctx)
}

// list requests the tools.
func (c *connection) list(ctx context.Context) (*toolspb.ListToolsResponse, error) {
	ctx, seen := telemetry.StartRequest(ctx, telemetry.Call{Method: "tools/list", RPC: c.service + "/ListTools"}, c.peer)
	response := new(toolspb.ListToolsResponse)
	if err := c.ask(ctx, "ListTools", &toolspb.ListToolsRequest{Category: c.source.options.Category}, response, harmless); err != nil {
		seen.End(nil, failedRequest(seen, err))
		return nil, err
	}
	seen.Listed(len(response.GetTools()), 0)
	seen.End(nil, nil)
	return response, nil
}

func (c *connection) invoker(tool *toolspb.ToolDefinition) (invoker.Invoker, error) {
	hints := tool.GetHints()
	def := invoker.Definition{
		Name:         tool.GetName(),
		Title:        tool.GetTitle(),
		Description:  tool.GetDescription(),
		InputSchema:  json.RawMessage(tool.GetInputSchemaJson()),
		OutputSchema: json.RawMessage(tool.GetOutputSchemaJson()),
		Hints: invoker.Hints{
			ReadOnly:   hints.GetReadOnly(),
			Idempotent: hints.GetIdempotent(),
		},
		Needs: c.source.needs(),
	}
	if hints != nil {
		def.Hints.Destructive, def.Hints.OpenWorld = hints.Destructive, hints.OpenWorld
	}
	if category := tool.GetCategory(); category != "" {
		def.Metadata = canister.Fields{invoker.CategoryKey: quoted(category)}
	}
	name := tool.GetName()
	call := func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		return c.call(ctx, name, call)
	}
	inv, err := invoker.Raw(def, call, &invoker.RawOptions{Inline: true})
	if err == nil || len(def.OutputSchema) == 0 {
		return inv, err
	}
	// A tool whose output schema is unusable can still be called.
	unchecked, again := invoker.Raw(def, call, &invoker.RawOptions{UncheckedResults: true, Inline: true})
	if again != nil {
		return nil, err
	}
	c.source.options.Logger.Warn("the results of a tool are not checked against its output schema", logevent.SchemaRefused, zap.String("tool", name), zap.Error(err))
	return unchecked, nil
}

// needs returns the names of the trusted values that are sent as metadata, sorted.
func (s *source) needs() []string {
	return slices.Compact(slices.Sorted(maps.Values(s.options.TrustedMetadata)))
}
