// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/findcall"
	"github.com/consort-go/consort/internal/glob"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
)

// finding makes the tools of callers that find tools by words.
type finding struct {
	tools  func() []*ensemble.Tool // find_tools and call_tool; makes them once
	close  func(context.Context) error
	pinned []string // Options.Pinned
}

func newFinding(o *Options) *finding {
	find, _ := findcall.NewFind(findcall.CallName, nil, func(ctx context.Context, query findcall.Query) (string, error) {
		return ctx.Value(searchKey{}).(*search).find(ctx, query)
	}) // cannot fail: the type of the arguments is constant
	both := ensemble.New(o.Name, ensemble.LocalSource(find, findcall.Call{Find: findcall.FindName}), &ensemble.Options{Logger: zap.NewNop()})
	return &finding{
		tools: sync.OnceValue(func() []*ensemble.Tool {
			tools, _ := both.Tools(context.Background()) // of a local ensemble: at once
			return tools
		}),
		close: both.Close, pinned: o.Pinned,
	}
}

// searchKey is the key of the search of a caller in the context of find_tools.
type searchKey struct{}

// search is what one call of find_tools searches.
type search struct {
	server    *Server
	selection *ensemble.Selection // of the caller
	offer     *findcall.Offer
}

// find returns the definitions of the tools that fit a query best, and the resources and
// prompts that do.
func (s *search) find(ctx context.Context, query findcall.Query) (string, error) {
	tools, err := s.offer.Find(query)
	if err != nil {
		return "", err
	}
	resources, err := s.selection.Resources(ctx)
	if err != nil {
		return "", err // the call has ended
	}
	items := findcall.ItemsOf(resources, "resources/read")
	prompts, err := s.server.promptsByName(ctx, s.selection)
	if err != nil {
		return "", err
	}
	for _, name := range sortedKeys(prompts) {
		items = append(items, findcall.PromptItem(name, prompts[name], "prompts/get"))
	}
	return tools + findcall.FindItems(query, items), nil
}

// found returns the toolset of a caller that finds the tools of the set: it lists find_tools,
// call_tool and the pinned tools, and contains all tools.
func (f *finding) found(set *toolset) *toolset {
	set.finding.Do(func() {
		all := &toolset{catalog: set.catalog, byName: make(map[string]*offeredTool, len(set.byName)+2), log: zap.NewNop()}
		var tools []findcall.Tool
		for _, t := range set.tools {
			tools = append(tools, findcall.Tool{Name: t.name, Server: t.Ensemble().Name(), Definition: t.def})
			all.byName[t.name] = t
			if slices.ContainsFunc(f.pinned, func(pattern string) bool { return glob.Match(pattern, t.name) }) {
				all.tools = append(all.tools, t)
			}
		}
		offer := findcall.NewOffer(tools)
		for _, t := range f.tools() {
			def := *t.Definition()
			if def.Name == findcall.FindName {
				def.Description = findcall.FindDescription(findcall.CallName, offer.Servers())
			}
			tool := &offeredTool{Tool: t, name: def.Name, def: &def, offer: offer, structuredBefore: true}
			tool.listed = listedTool(tool, true)
			tool.listedBefore = tool.listed
			all.tools = slices.DeleteFunc(all.tools, func(t *offeredTool) bool { return t.name == tool.name })
			all.byName[tool.name], all.tools = tool, append(all.tools, tool)
		}
		slices.SortFunc(all.tools, func(a, b *offeredTool) int { return strings.Compare(a.name, b.name) })
		set.found = all
	})
	return set.found
}

// seen returns the tools of a toolset that a caller sees.
func (s *selections) seen(from *caller, set *toolset) *toolset {
	part := s.seenBy(s.of(from), set)
	if s.finds(from) {
		return s.finding.found(part)
	}
	return part
}

// finds reports whether a caller finds tools by words.
func (s *selections) finds(from *caller) bool {
	finds := s.auth.Load().finds
	return finds != nil && finds(from.ctx, from.profile)
}

// unwrapped returns the request, or the call of a tool instead of the call of call_tool that
// names it, so that rules, audit, access log and telemetry see the tool itself.
func (s *selections) unwrapped(from *caller, req mcp.Request) mcp.Request {
	call, ok := req.(*mcp.CallToolRequest)
	if !ok || call.Params.Name != findcall.CallName || !s.finds(from) {
		return req
	}
	name, arguments, ok := findcall.Unwrap(string(call.Params.Arguments))
	if !ok || name == findcall.CallName || arguments != "" && !json.Valid([]byte(arguments)) {
		return req
	}
	inner, params := *call, *call.Params
	params.Name, params.Arguments = name, nil
	if arguments != "" {
		params.Arguments = json.RawMessage(arguments)
	}
	inner.Params = &params
	return &inner
}
