// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/findtools"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/findcall"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/internal/tokenestimate"
	"github.com/consort-go/consort/internal/toolsearch"
	"github.com/consort-go/consort/invoker"
)

// ToolList is the JSON output of consort tools.
type ToolList struct {
	Tools   []toolJSON `json:"tools"`
	Servers []peerJSON `json:"servers"`
	Aside   []Aside    `json:"aside"`
	Away    []Away     `json:"away"`
	// Items are the resources and prompts that a search has found.
	Items []findcall.Item `json:"items,omitempty"`
}

// peerJSON is a server's description of itself.
type peerJSON struct {
	Ensemble     string          `json:"ensemble"`
	Protocol     string          `json:"protocol,omitempty"`
	Server       string          `json:"server,omitempty"`
	Title        string          `json:"title,omitempty"`
	Version      string          `json:"version,omitempty"`
	Description  string          `json:"description,omitempty"`
	Website      string          `json:"website,omitempty"`
	Instructions string          `json:"instructions,omitempty"`
	Metadata     canister.Fields `json:"metadata,omitempty"`
}

// newPeerList lists the connected and the idle servers in the order of the roster.
func newPeerList(roster *ensemble.Roster) []peerJSON {
	peers := []peerJSON{}
	for _, e := range roster.Ensembles() {
		s := e.Snapshot()
		if p := s.Peer; (s.State == ensemble.Ready || s.State == ensemble.Idle) && p.Protocol != "" { // functions of this program have no protocol
			peers = append(peers, peerJSON{s.Name, p.Protocol, p.Name, p.Title, p.Version, p.Description, p.Website, p.Instructions, p.Metadata})
		}
	}
	return peers
}

type toolJSON struct {
	Name         string          `json:"name"` // for the model
	Ensemble     string          `json:"ensemble"`
	Tool         string          `json:"tool"` // its own name
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Needs        []string        `json:"needs,omitempty"`
	Hints        hintsJSON       `json:"hints"`
	Tokens       int64           `json:"tokens"`             // of the definition, as estimated
	Shown        bool            `json:"shown"`              // whether it is in each request; otherwise the model finds it
	Metadata     canister.Fields `json:"metadata,omitempty"` // data without a field of its own, by name: mcp/icons, mcp/_meta
}

// hintsJSON are the hints of a tool, with defaults applied.
type hintsJSON struct {
	ReadOnly    bool `json:"read_only"`
	Idempotent  bool `json:"idempotent"`
	Destructive bool `json:"destructive"`
	OpenWorld   bool `json:"open_world"`
}

// NewToolList lists the tools that a conversation offers its model; see [converse.Offer].
func NewToolList(assembly *config.Assembly, catalog *ensemble.Catalog) *ToolList {
	tools, aside := converse.Offer(catalog, assembly.Model, assembly.Options.Limits.Tools)
	list := &ToolList{Tools: []toolJSON{}, Servers: newPeerList(assembly.Roster), Aside: asides(aside), Away: aways(catalog.Away())}
	shown, finds := shownOf(tools, assembly.Models)
	for _, tool := range tools {
		one := newToolJSON(tool)
		one.Shown = shown == nil || shown[one.Name]
		if one.Shown || finds {
			list.Tools = append(list.Tools, one)
		}
	}
	return list
}

// shownOf returns the tools that the first of the models is shown from the start, by name, and
// whether it finds the others. Shown is nil if it is shown all.
func shownOf(tools []*ensemble.Tool, models []converse.Model) (shown map[string]bool, finds bool) {
	if len(models) == 0 {
		return nil, false
	}
	finder, ok := models[0].(*findtools.Model)
	if !ok {
		return nil, false
	}
	set := &converse.Toolset{}
	for _, tool := range tools {
		definition := *tool.Definition()
		definition.Name = tool.Name()
		set.Definitions = append(set.Definitions, &definition)
	}
	return finder.Shown(set)
}

func newToolJSON(tool *ensemble.Tool) toolJSON {
	d := tool.Definition()
	return toolJSON{
		Name: tool.Name(), Ensemble: tool.Ensemble().Name(), Tool: d.Name,
		Title: d.Title, Description: d.Description,
		InputSchema: d.InputSchema, OutputSchema: d.OutputSchema, Needs: d.Needs,
		Hints: newHintsJSON(d.Hints), Tokens: tokenestimate.InTool(tool.Name(), d.Description, d.InputSchema), Metadata: d.Metadata,
	}
}

func newHintsJSON(h invoker.Hints) hintsJSON {
	return hintsJSON{h.ReadOnly, h.Idempotent, h.MayDestroy(), h.OpenWorld == nil || *h.OpenWorld}
}

// Text renders the list for people, grouped by ensemble.
func (l *ToolList) Text(paint terminal.Palette, roster *ensemble.Roster) string {
	listed := listing{paint: paint}
	for _, e := range roster.Ensembles() {
		var rows [][]string
		for _, t := range l.Tools {
			if t.Ensemble == e.Name() {
				rows = append(rows, t.row("  "))
			}
		}
		listed.add(e.Name(), rows, l.Aside)
	}
	return listed.or("no tools\n")
}

// Search keeps the tools that have a word of the query, at most n, best first.
func (l *ToolList) Search(query string, n int) {
	entries := make([]toolsearch.Entry, len(l.Tools))
	for i, t := range l.Tools {
		entries[i] = toolsearch.Entry{Name: t.Tool, Title: t.Title, Description: t.Description, Schema: t.InputSchema, Server: t.Ensemble}
	}
	found := []toolJSON{}
	for _, one := range toolsearch.New(entries).Search(query, n) {
		found = append(found, l.Tools[one.Entry])
	}
	l.Tools = found
}

// SearchItems adds the resources and prompts that have a word of the query, at most n. The
// error is that of ctx.
func (l *ToolList) SearchItems(ctx context.Context, roster *ensemble.Roster, query string, n int) error {
	resources, err := roster.Resources(ctx)
	if err != nil {
		return err
	}
	prompts, err := roster.Prompts(ctx)
	if err != nil {
		return err
	}
	items := findcall.ItemsOf(resources, "")
	for _, p := range prompts.Prompts {
		items = append(items, findcall.PromptItem(p.FullName(), p, ""))
	}
	l.Items = findcall.SearchItems(query, n, items)
	return nil
}

// Found renders the tools, and what else was found, for people, in their order. It is empty
// if there is nothing.
func (l *ToolList) Found(paint terminal.Palette) string {
	var rows [][]string
	for _, t := range l.Tools {
		rows = append(rows, t.row(""))
	}
	for _, item := range l.Items {
		kind := "resource"
		if item.Prompt != "" {
			kind = "prompt"
		}
		said := cmp.Or(display.Line(item.Description), display.Line(item.Title))
		rows = append(rows, []string{display.Line(item.Prompt + item.URI + item.Template), terminal.Fit(kind+" of "+display.Line(item.Server)+": "+said, 80)})
	}
	return terminal.Table(rows, namesFirst(paint))
}

// row returns the name of a tool, indented, and what it does.
func (t *toolJSON) row(indent string) []string {
	return []string{indent + t.Name, strings.TrimSpace(terminal.Fit(t.summary(), 80) + t.needs())}
}

// needs lists the trusted values that the tool requires.
func (t *toolJSON) needs() string {
	if len(t.Needs) == 0 {
		return ""
	}
	return " (needs " + display.Line(strings.Join(t.Needs, ", ")) + ")"
}

// summary returns the first sentence of the description, or else the title.
func (t *toolJSON) summary() string {
	if description := display.Line(t.Description); description != "" {
		first, _, _ := strings.Cut(description, ". ")
		return first
	}
	return display.Line(t.Title)
}
