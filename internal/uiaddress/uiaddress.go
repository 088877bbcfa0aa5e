// SPDX-License-Identifier: Apache-2.0

// Package uiaddress gives the pages of servers (MCP Apps, SEP-1865) addresses that differ
// from those of other servers, so that a host shows the page of the server whose tool it
// called.
//
// A server named NAME that has the page ui://ADDRESS offers it as ui://NAME/ADDRESS. Other
// addresses stay as they are.
package uiaddress

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/serverconn"
	"github.com/consort-go/consort/internal/urirules"
	"github.com/consort-go/consort/invoker"
)

const scheme = "ui://"

// Source returns a source whose connections have the addresses for a server with a name.
// Connections without [ensemble.Pinger] or [ensemble.Library] stay as they are.
func Source(name string, inner ensemble.Source) ensemble.Source {
	return &source{inner, scheme + url.PathEscape(name) + "/"}
}

type source struct {
	ensemble.Source
	prefix string
}

// Spawns implements [ensemble.Spawner].
func (s *source) Spawns() bool {
	spawner, ok := s.Source.(ensemble.Spawner)
	return ok && spawner.Spawns()
}

// Open implements [ensemble.Source].
func (s *source) Open(ctx context.Context) (ensemble.Connection, error) {
	opened, err := s.Source.Open(ctx)
	if err != nil {
		return nil, err
	}
	if full, ok := opened.(serverconn.Server); ok {
		return &connection{serverconn.Wrapper{Server: full}, s.prefix}, nil
	}
	return opened, nil
}

type connection struct {
	serverconn.Wrapper
	prefix string
}

// outside returns the address of a page for hosts.
func (c *connection) outside(uri string) string {
	if rest, isPage := strings.CutPrefix(uri, scheme); isPage {
		return c.prefix + rest
	}
	return uri
}

// inside returns the address of a page for the server. An address without the prefix, however
// it is spelled, is none of this server for hosts, but could be one for the server.
func (c *connection) inside(uri string) (string, error) {
	if rest, own := strings.CutPrefix(uri, c.prefix); own {
		return scheme + rest, nil
	}
	if urirules.HasScheme(uri, "ui") {
		return "", invoker.Failf(invoker.NotFound, "There is no page with this address.")
	}
	return uri, nil
}

// List implements [ensemble.Connection].
func (c *connection) List(ctx context.Context) (ensemble.Listing, error) {
	listing, err := c.Server.List(ctx)
	for i, listed := range listing.Invokers {
		if listed != nil {
			listing.Invokers[i] = c.tool(listed)
		}
	}
	return listing, err
}

// Resources implements [ensemble.Library].
func (c *connection) Resources(ctx context.Context) ([]ensemble.Resource, error) {
	all, err := c.Server.Resources(ctx)
	for i := range all {
		all[i].URI = c.outside(all[i].URI)
	}
	return all, err
}

// Templates implements [ensemble.Library].
func (c *connection) Templates(ctx context.Context) ([]ensemble.Template, error) {
	all, err := c.Server.Templates(ctx)
	for i := range all {
		all[i].URI = c.outside(all[i].URI)
	}
	return all, err
}

// Read implements [ensemble.Library].
func (c *connection) Read(ctx context.Context, uri string) ([]canister.ResourceContent, error) {
	own, err := c.inside(uri)
	if err != nil {
		return nil, err
	}
	parts, err := c.Server.Read(ctx, own)
	for i := range parts {
		parts[i].URI = c.outside(parts[i].URI)
	}
	return parts, err
}

// Complete implements [ensemble.Library].
func (c *connection) Complete(ctx context.Context, request *ensemble.CompletionRequest) (*ensemble.Completion, error) {
	own := *request
	var err error
	if own.Template, err = c.inside(own.Template); err != nil {
		return nil, err
	}
	return c.Server.Complete(ctx, &own)
}

// Subscribe implements [ensemble.Library].
func (c *connection) Subscribe(ctx context.Context, uri string) error {
	own, err := c.inside(uri)
	if err != nil {
		return err
	}
	return c.Server.Subscribe(ctx, own)
}

// Unsubscribe implements [ensemble.Library].
func (c *connection) Unsubscribe(ctx context.Context, uri string) error {
	own, err := c.inside(uri)
	if err != nil {
		return err
	}
	return c.Server.Unsubscribe(ctx, own)
}

// Listen implements [ensemble.Library].
func (c *connection) Listen(heard func(ensemble.News)) {
	c.Server.Listen(func(news ensemble.News) {
		news.URI = c.outside(news.URI)
		heard(news)
	})
}

// tool is a tool whose page and results have addresses for hosts.
type tool struct {
	invoker.Invoker
	definition *invoker.Definition
	of         *connection
}

// tool returns a tool with the address of its page for hosts.
func (c *connection) tool(inner invoker.Invoker) invoker.Invoker {
	return &tool{inner, c.definition(inner.Definition()), c}
}

// definition returns a definition with the address of its page for hosts: in _meta, as
// ui.resourceUri, or as ui/resourceUri in older servers.
func (c *connection) definition(def *invoker.Definition) *invoker.Definition {
	const key = "mcp/_meta"
	var meta map[string]json.RawMessage
	if json.Unmarshal(def.Metadata[key], &meta) != nil || meta == nil {
		return def
	}
	changed := c.rename(meta, "ui/resourceUri")
	var ui map[string]json.RawMessage
	if json.Unmarshal(meta["ui"], &ui) == nil && c.rename(ui, "resourceUri") {
		if text, err := json.Marshal(ui); err == nil {
			meta["ui"], changed = text, true
		}
	}
	text, err := json.Marshal(meta)
	if !changed || err != nil {
		return def
	}
	own := *def
	own.Metadata = canister.Fields{}
	for name, value := range def.Metadata {
		own.Metadata[name] = value
	}
	own.Metadata[key] = text
	return &own
}

// rename changes the address in a member of an object.
func (c *connection) rename(object map[string]json.RawMessage, member string) bool {
	var uri string
	if json.Unmarshal(object[member], &uri) != nil || !strings.HasPrefix(uri, scheme) {
		return false
	}
	object[member], _ = json.Marshal(c.outside(uri)) // strings can always be encoded
	return true
}

// Definition implements [invoker.Invoker].
func (t *tool) Definition() *invoker.Definition { return t.definition }

// Invoke implements [invoker.Invoker].
func (t *tool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	output, err := t.Invoker.Invoke(ctx, call)
	output.Content = slices.Clone(output.Content)
	for i, part := range output.Content {
		switch part := part.(type) {
		case canister.LinkContent:
			part.URI = t.of.outside(part.URI)
			output.Content[i] = part
		case canister.ResourceContent:
			part.URI = t.of.outside(part.URI)
			output.Content[i] = part
		default: // has no address
		}
	}
	return output, err
}
