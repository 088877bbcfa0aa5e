// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/internal/accesslog"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/servedcall"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// toolset is the tools of one catalog, converted to protobuf.
type toolset struct {
	catalog *ensemble.Catalog
	whole   *toolset         // that this one is a part of; nil if it has all tools
	own     []*ensemble.Tool // of the server itself
	tools   []*offered       // sorted by name
	byName  map[string]*offered
	omitted atomic.Bool // that tools do not fit into a list is logged
}

// offered is a tool under the name that clients use.
type offered struct {
	*ensemble.Tool
	listed *toolspb.ToolDefinition
	size   int // in a list, in bytes
}

// toolset returns the tools on offer. As long as nothing has changed, the catalog is
// the same and toolset returns the same value.
func (s *Server) toolset(ctx context.Context) (*toolset, error) {
	for {
		before := s.tools.Load()
		catalog, err := s.roster.Catalog(ctx)
		if err != nil {
			logevent.Log(ctx, s.log, zapcore.WarnLevel, "the tools cannot be listed", logevent.ServeListFailed, zap.Error(err))
			return nil, err
		}
		if before != nil && before.catalog == catalog {
			return before, nil
		}
		own, err := s.own.Tools(ctx)
		if err != nil {
			return nil, err
		}
		set := &toolset{catalog: catalog, own: own}
		s.fill(set, catalog.Tools(), s.log)
		if s.tools.CompareAndSwap(before, set) { // otherwise the other one may have an older catalog
			return set, nil
		}
	}
}

// renew builds the toolset again when the tools of the roster change, if it was built before.
func (s *Server) renew(ctx context.Context, news iter.Seq[ensemble.News]) {
	for n := range news {
		if n.Kind == ensemble.ToolsChanged && s.tools.Load() != nil {
			_, _ = s.toolset(ctx)
		}
	}
}

// find returns the tool that a caller sees under the name; nil if no tool has it. It looks
// in the cached toolset first.
func (s *Server) find(ctx context.Context, name string) (*offered, error) {
	g := s.guard.Load()
	selection := g.selectionOf(ctx)
	if set := s.tools.Load(); set != nil {
		if tool := s.seenBy(g, selection, set).byName[name]; tool != nil {
			return tool, nil
		}
	}
	set, err := s.toolset(ctx)
	if err != nil {
		return nil, err
	}
	return s.seenBy(g, selection, set).byName[name], nil
}

// selectionOf returns the part of the roster that a caller may use now; nil for everything.
func (g *guard) selectionOf(ctx context.Context) *ensemble.Selection {
	if g.choose == nil {
		return nil
	}
	return g.choose(ctx)
}

// maxParts bounds the selections whose tools are cached.
const maxParts = 1 << 10

// seenBy returns the tools of a toolset that callers with a selection see. Their names are
// the same as without the others.
func (s *Server) seenBy(g *guard, selection *ensemble.Selection, set *toolset) *toolset {
	if selection == nil {
		return set
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.parts[selection]; known != nil && known.whole == set {
		return known
	}
	if g.parts == nil || len(g.parts) >= maxParts {
		g.parts = make(map[*ensemble.Selection]*toolset)
	}
	some := &toolset{catalog: set.catalog, whole: set}
	for _, t := range set.own {
		if selection.Contains(servedcall.Item(t, t.Ensemble())) {
			some.own = append(some.own, t)
		}
	}
	tools := slices.DeleteFunc(slices.Clone(set.catalog.Tools()), func(t *ensemble.Tool) bool { return !selection.ContainsTool(t) })
	s.fill(some, tools, zap.NewNop())
	g.parts[selection] = some
	return some
}

// fill assigns names to the tools of the server and of the roster. The category of a roster's
// tool is its ensemble, unless its definition has another.
func (s *Server) fill(set *toolset, tools []*ensemble.Tool, log *zap.Logger) {
	set.byName = make(map[string]*offered)
	servedcall.Names(set.own, tools, func(name string) bool { return s.options.OwnNames && set.byName[name] == nil }, func(t *ensemble.Tool, name string) {
		category := ""
		if t.Ensemble() != s.own {
			category = t.Ensemble().Name()
		}
		set.add(t, name, category, log)
	})
	slices.SortFunc(set.tools, func(a, b *offered) int { return strings.Compare(a.listed.Name, b.listed.Name) })
}

func (set *toolset) add(t *ensemble.Tool, name, category string, log *zap.Logger) {
	name = clean(name)
	if set.byName[name] != nil {
		log.Warn("a tool is not offered: another one has the same name", logevent.ServeToolRefused, zap.String("tool", name), zap.String("ensemble", t.Ensemble().Name()))
		return
	}
	if !t.Definition().IsForModels() {
		log.Info("a tool is not offered: it is only for its app, which a definition cannot express", logevent.ServeToolRefused, zap.String("tool", name), zap.String("ensemble", t.Ensemble().Name()))
		return
	}
	tool := &offered{Tool: t, listed: definitionOf(t.Definition(), name, category)}
	tool.size = proto.Size(&toolspb.ListToolsResponse{Tools: []*toolspb.ToolDefinition{tool.listed}})
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
	g := s.guard.Load()
	set = s.seenBy(g, g.selectionOf(ctx), set)
	return set.list(request.GetCategory(), max(s.options.MaxMessage, defaultMaxMessage), s.log), nil
}

// list returns the tools of a category, or all if it is empty. The response has at most most
// bytes: tools that no longer fit are omitted. They can still be called.
func (set *toolset) list(category string, most int, log *zap.Logger) *toolspb.ListToolsResponse {
	response, size := new(toolspb.ListToolsResponse), 0
	var omitted []*offered
	for _, t := range set.tools {
		switch {
		case category != "" && t.listed.Category != category:
		case size+t.size <= most:
			response.Tools = append(response.Tools, t.listed)
			size += t.size
		default:
			omitted = append(omitted, t)
		}
	}
	if len(omitted) > 0 && set.omitted.CompareAndSwap(false, true) {
		log.Warn("tools are not listed: the list would be too large; raise MaxMessage, which is serve.max_body of a gateway", logevent.ServeToolRefused,
			zap.String("tool", omitted[0].listed.Name), zap.String("ensemble", omitted[0].Ensemble().Name()), zap.Int("tools", len(omitted)))
	}
	return response
}
