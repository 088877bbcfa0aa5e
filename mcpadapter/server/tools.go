// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/findcall"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/servedcall"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// offers caches what the server offers.
type offers struct {
	mu    sync.Mutex // held while a new toolset replaces the old one
	tools atomic.Pointer[toolset]
}

// toolset is the tools of one catalog, converted for MCP.
type toolset struct {
	catalog *ensemble.Catalog
	whole   *toolset         // that this one is a part of; nil if it has all tools
	own     []*ensemble.Tool // of the server itself
	tools   []*offeredTool   // sorted by name
	byName  map[string]*offeredTool
	headed  []string  // names of the tools with arguments that are also sent in headers; complete before others see the set
	finding sync.Once // makes found
	found   *toolset  // for callers that find these tools; see finding.found
	log     *zap.Logger
}

// offeredTool is a tool under the name that clients use.
type offeredTool struct {
	*ensemble.Tool
	name string
	def  *invoker.Definition
	// The tool as it is listed. Before 2026-07-28 an output schema must be of type
	// object (SEP-2106), and clients refuse the whole list if one is not.
	listed, listedBefore json.RawMessage
	structuredBefore     bool            // listedBefore has the output schema, or the tool has none
	offer                *findcall.Offer // searched by find_tools; nil for tools of the roster
}

// toolset returns the tools on offer. As long as nothing has changed, the catalog is
// the same and toolset returns the same value.
func (s *Server) toolset(ctx context.Context) (*toolset, error) {
	catalog, err := s.roster.Catalog(ctx)
	if err != nil {
		logevent.Log(ctx, s.log, zapcore.WarnLevel, "a list is not available", logevent.ServeListFailed, zap.String("list", "tools"), zap.Error(err))
		return nil, refusal(jsonrpc.CodeInternalError, "the tools are not available now")
	}
	if set := s.offers.tools.Load(); set != nil && set.catalog == catalog {
		return set, nil
	}
	var own []*ensemble.Tool
	if len(s.options.Tools) > 0 { // without any, this ensemble would only show up in logs and metrics
		if own, err = s.own.Tools(ctx); err != nil {
			return nil, refusal(jsonrpc.CodeInternalError, "the tools are not available now")
		}
	}
	s.offers.mu.Lock()
	defer s.offers.mu.Unlock()
	before := s.offers.tools.Load()
	if before != nil && before.catalog == catalog {
		return before, nil
	}
	set := &toolset{catalog: catalog, own: own, byName: make(map[string]*offeredTool), log: s.log}
	set.fill(catalog.Tools(), s.options.OwnNames)
	s.offers.tools.Store(set)
	s.notifyIfToolsChanged(before, set)
	s.registerHeaders(before, set)
	return set, nil
}

// registerHeaders registers with the SDK the tools with arguments that are also sent in
// headers (SEP-2243): the SDK compares the two.
func (s *Server) registerHeaders(before, after *toolset) {
	if before != nil {
		s.sdk.RemoveTools(before.headed...)
	}
	for _, name := range after.headed {
		s.sdk.AddTool(headedTool(after.byName[name]), nil) // does not panic: add has checked the tool
	}
}

// headedTool returns the tool that the SDK registers.
func headedTool(t *offeredTool) *mcp.Tool {
	return &mcp.Tool{Name: t.name, InputSchema: objectSchema(t.def.InputSchema)}
}

// checkHeaders returns the reason why the SDK does not register a tool: AddTool panics.
func checkHeaders(t *offeredTool) (refused error) {
	defer func() {
		if p := recover(); p != nil {
			refused = fmt.Errorf("%v", p)
		}
	}()
	mcp.NewServer(&mcp.Implementation{}, nil).AddTool(headedTool(t), nil)
	return nil
}

// hasHeaders reports whether a schema has a member or a text "x-mcp-header", also one that is written with escapes.
func hasHeaders(schema json.RawMessage) bool {
	if bytes.Contains(schema, []byte(`"x-mcp-header"`)) {
		return true
	}
	if !bytes.Contains(schema, []byte(`\u`)) {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	for {
		switch token, err := decoder.Token(); {
		case err != nil:
			return false
		case token == "x-mcp-header":
			return true
		}
	}
}

// find returns the tool that a caller sees under the name; nil if no tool has it. It looks
// in the cached toolset first.
func (s *Server) find(ctx context.Context, name string, from *caller) (*offeredTool, error) {
	if set := s.offers.tools.Load(); set != nil {
		if tool, ok := s.selects.seen(from, set).byName[name]; ok {
			return tool, nil
		}
	}
	set, err := s.toolset(ctx)
	if err != nil {
		return nil, err
	}
	return s.selects.seen(from, set).byName[name], nil
}

// fill assigns names to the tools of the server and of the roster.
func (set *toolset) fill(tools []*ensemble.Tool, ownNames bool) {
	servedcall.Names(set.own, tools, func(name string) bool {
		return ownNames && legalName.MatchString(name) && set.byName[name] == nil
	}, set.add)
	slices.SortFunc(set.tools, func(a, b *offeredTool) int { return strings.Compare(a.name, b.name) })
}

// legalName matches the names that MCP allows (MCP 2025-11-25, server/tools § Tool
// Names).
var legalName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

func (set *toolset) add(t *ensemble.Tool, name string) {
	if _, taken := set.byName[name]; taken {
		set.log.Warn("a tool is not offered: another one has the same name", logevent.ServeToolRefused, zap.String("tool", name), zap.String("ensemble", t.Ensemble().Name()))
		return
	}
	if set.whole != nil && set.whole.byName[name] != nil && set.whole.byName[name].Tool == t {
		set.byName[name] = set.whole.byName[name]
		set.tools = append(set.tools, set.byName[name])
		return
	}
	tool := &offeredTool{Tool: t, name: name, def: t.Definition()}
	if hasHeaders(tool.def.InputSchema) {
		if err := checkHeaders(tool); err != nil {
			set.log.Warn("a tool is not offered: its x-mcp-header annotations break the rules of SEP-2243", logevent.ServeToolRefused, zap.String("tool", name), zap.String("ensemble", t.Ensemble().Name()),
				zap.String("error", textcut.Bytes(err.Error(), wire.MaxQuoted))) // it quotes names of the schema
			return
		}
		set.headed = append(set.headed, name)
	}
	tool.structuredBefore = len(tool.def.OutputSchema) == 0 || isObjectSchema(tool.def.OutputSchema)
	tool.listed = listedTool(tool, true)
	tool.listedBefore = tool.listed
	if !tool.structuredBefore {
		tool.listedBefore = listedTool(tool, false)
	}
	set.byName[name] = tool
	set.tools = append(set.tools, tool)
}

// listedTool returns the list entry of a tool (MCP 2025-11-25, schema § Tool). Schemas
// stay as their authors wrote them.
func listedTool(t *offeredTool, withOutput bool) json.RawMessage {
	w := jsonobject.New()
	w.Text("name", t.name)
	if hasOwnTitle(t.def) {
		w.TextIf("title", t.def.Title)
	}
	w.TextIf("description", t.def.Description)
	w.Raw("inputSchema", objectSchema(t.def.InputSchema))
	if withOutput && len(t.def.OutputSchema) > 0 {
		w.Raw("outputSchema", t.def.OutputSchema)
	}
	if annotations := annotationsOf(t.def); annotations != nil {
		w.Raw("annotations", annotations)
	}
	w.Fields(t.def.Metadata, wire.MetadataPrefix, "annotations", "execution", "title")
	return w.End()
}

// hasOwnTitle is false for a remote tool whose title comes from its annotations,
// because clients find it there.
func hasOwnTitle(def *invoker.Definition) bool {
	annotated, _ := wire.Members(def.Metadata[wire.MetadataPrefix+"annotations"]) // a struct would take "Title" for "title"
	title, _ := wire.String(annotated["title"])
	return title == "" || def.Metadata[wire.MetadataPrefix+"title"] != nil
}

// annotationsOf returns the hints, and the other annotations of a remote tool; nil if
// there are none. A hint that is not set is omitted.
func annotationsOf(def *invoker.Definition) json.RawMessage {
	said, _ := wire.Members(def.Metadata[wire.MetadataPrefix+"annotations"]) // other values than objects are ignored
	w := jsonobject.New()
	hint := func(name string, given bool, value bool) {
		if raw := string(said[name]); given || raw == "false" {
			w.Bool(name, value)
		}
	}
	hints := &def.Hints
	hint("readOnlyHint", hints.ReadOnly, hints.ReadOnly)
	hint("idempotentHint", hints.Idempotent, hints.Idempotent)
	hint("destructiveHint", hints.Destructive != nil, hints.Destructive != nil && *hints.Destructive)
	hint("openWorldHint", hints.OpenWorld != nil, hints.OpenWorld != nil && *hints.OpenWorld)
	w.Fields(canister.Fields(said), "", "readOnlyHint", "idempotentHint", "destructiveHint", "openWorldHint")
	if w.IsEmpty() {
		return nil
	}
	return w.End()
}

// isObjectSchema reports whether the root of a schema has type object.
func isObjectSchema(schema json.RawMessage) bool {
	root, _ := wire.Members(schema) // a struct would take "Type" for "type"
	kind, err := wire.String(root["type"])
	return err == nil && kind == "object"
}

// objectSchema returns a schema whose root has type object, as MCP requires (MCP
// 2025-11-25, schema § Tool). The rest of the schema is unchanged.
func objectSchema(schema json.RawMessage) json.RawMessage {
	if isObjectSchema(schema) {
		return schema
	}
	w := jsonobject.New()
	w.Text("type", "object")
	decoder := json.NewDecoder(bytes.NewReader(schema))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return w.End() // true or empty: accepts anything
	}
	for decoder.More() {
		var value json.RawMessage
		name, _ := decoder.Token()
		if decoder.Decode(&value) != nil {
			break // cannot happen: the schema has been parsed before
		}
		if name != "type" {
			w.Raw(name.(string), value)
		}
	}
	return w.End()
}

// listTools answers tools/list (MCP 2025-11-25, server/tools § Listing Tools).
func (s *Server) listTools(ctx context.Context, req *mcp.ListToolsRequest, from *caller) (mcp.Result, error) {
	set, err := s.toolset(ctx)
	if err != nil {
		return nil, err
	}
	set = s.selects.seen(from, set)
	s.listeners.noteTold(ctx, s.selects.of(from), toolList)
	isModern := speaksModern(req.ProtocolVersion())
	return page(s.options.PageSize, "tools", set.tools, cursorOf(req.Params), isModern,
		func(t *offeredTool) string { return t.name },
		func(t *offeredTool) json.RawMessage {
			if isModern {
				return t.listed
			}
			return t.listedBefore
		})
}

// page returns one page of a list that is sorted by key (MCP 2025-11-25,
// server/utilities/pagination). The cursor is the last key of the previous page, so
// that a list that changes in between neither repeats nor skips entries that stay.
func page[T any](size int, member string, all []T, cursor string, isModern bool, key func(T) string, write func(T) json.RawMessage) (mcp.Result, error) {
	if cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			return nil, refusal(jsonrpc.CodeInvalidParams, "the cursor is unknown to this server")
		}
		from, found := slices.BinarySearchFunc(all, string(last), func(t T, k string) int { return strings.Compare(key(t), k) })
		if found {
			from++
		}
		all = all[from:]
	}
	w := jsonobject.New()
	if len(all) > size {
		all = all[:size]
		w.Text("nextCursor", base64.RawURLEncoding.EncodeToString([]byte(key(all[size-1]))))
	}
	w.List(member, len(all), func(i int) []byte { return write(all[i]) })
	finish(w, isModern, true)
	return &rawResult{text: w.Open()}, nil
}
