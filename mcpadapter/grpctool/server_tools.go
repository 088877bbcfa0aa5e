// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// toolset is the tools of one catalog, converted to protobuf.
type toolset struct {
	catalog *ensemble.Catalog
	tools   []*offered // sorted by name
	byName  map[string]*offered
}

// offered is a tool under the name that clients use.
type offered struct {
	*ensemble.Tool
	listed *toolspb.ToolDefinition
}

// toolset returns the tools on offer. As long as nothing has changed, the catalog is
// the same and toolset returns the same value.
func (s *Server) toolset(ctx context.Context) (*toolset, error) {
	catalog, err := s.roster.Catalog(ctx)
	if err != nil {
		event.Log(ctx, s.log, zapcore.WarnLevel, "the tools cannot be listed", event.ServeListFailed, zap.Error(err))
		return nil, err
	}
	if set := s.tools.Load(); set != nil && set.catalog == catalog {
		return set, nil
	}
	own, err := s.own.Tools(ctx)
	if err != nil {
		return nil, err
	}
	set := s.newToolset(catalog, own)
	s.tools.Store(set)
	return set, nil
}

// find returns the tool with the name, nil if there is none. It looks in the cached
// toolset first.
func (s *Server) find(ctx context.Context, name string) (*offered, error) {
	if set := s.tools.Load(); set != nil && set.byName[name] != nil {
		return set.byName[name], nil
	}
	set, err := s.toolset(ctx)
	if err != nil {
		return nil, err
	}
	return set.byName[name], nil
}

// newToolset assigns names to the tools: first the server's own tools, which have only
// one name; then, with OwnNames, roster tools whose own name is unique in the roster;
// and the rest by the names that models see.
func (s *Server) newToolset(catalog *ensemble.Catalog, own []*ensemble.Tool) *toolset {
	set := &toolset{catalog: catalog, byName: make(map[string]*offered)}
	for _, t := range own {
		s.add(set, t, t.Definition().Name, "")
	}
	named := make(map[string]int)
	for _, t := range catalog.Tools() {
		named[t.Definition().Name]++
	}
	for _, t := range catalog.Tools() {
		name := t.Name()
		if short := t.Definition().Name; s.options.OwnNames && named[short] == 1 && set.byName[short] == nil {
			name = short
		}
		s.add(set, t, name, t.Ensemble().Name())
	}
	slices.SortFunc(set.tools, func(a, b *offered) int { return strings.Compare(a.listed.Name, b.listed.Name) })
	return set
}

func (s *Server) add(set *toolset, t *ensemble.Tool, name, category string) {
	name = clean(name)
	if set.byName[name] != nil {
		s.log.Warn("a tool is not offered: another one has the same name", event.ServeToolRefused, zap.String("tool", name), zap.String("ensemble", t.Ensemble().Name()))
		return
	}
	if !t.Definition().IsForModels() {
		s.log.Info("a tool is not offered: it is only for its app, which a definition cannot express", event.ServeToolRefused, zap.String("tool", name), zap.String("ensemble", t.Ensemble().Name()))
		return
	}
	tool := &offered{Tool: t, listed: definitionOf(t.Definition(), name, category)}
	set.byName[name] = tool
	set.tools = append(set.tools, tool)
}

// definitionOf converts a definition to protobuf.
func definitionOf(def *invoker.Definition, name, category string) *toolspb.ToolDefinition {
	category = cmp.Or(def.Category(), category)
	return &toolspb.ToolDefinition{
		Name:             name,
		Title:            clean(def.Title),
		Description:      clean(def.Description),
		Category:         clean(category),
		InputSchemaJson:  clean(string(def.InputSchema)),
		OutputSchemaJson: clean(string(def.OutputSchema)),
		Hints: &toolspb.ToolHints{
			ReadOnly: def.Hints.ReadOnly, Idempotent: def.Hints.Idempotent,
			Destructive: def.Hints.Destructive, OpenWorld: def.Hints.OpenWorld,
		},
	}
}

// listTools implements ListTools.
func (s *Server) listTools(from *caller, request *toolspb.ListToolsRequest) (response *toolspb.ListToolsResponse, err error) {
	ctx, seen := s.options.Telemetry.StartServing(from.ctx, telemetry.Call{Method: "tools/list", RPC: rpcOf(from.ctx)}, clientOf(from.ctx))
	accesslog.From(ctx).Method("tools/list")
	accesslog.From(ctx).Traced(ctx)
	defer func() { listed(seen, response, err) }()
	leave, refused := s.enter(from.client, access.Request)
	if refused != nil {
		return nil, refusal(refused)
	}
	defer leave()
	set, err := s.toolset(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		return nil, status.Error(codes.Unavailable, "the tools are not available now")
	}
	response = new(toolspb.ListToolsResponse)
	for _, t := range set.tools {
		if request.GetCategory() == "" || t.listed.Category == request.GetCategory() {
			response.Tools = append(response.Tools, t.listed)
		}
	}
	return response, nil
}
