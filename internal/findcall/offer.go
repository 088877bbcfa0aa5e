// SPDX-License-Identifier: Apache-2.0

package findcall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/toolsearch"
	"github.com/consort-go/consort/invoker"
)

// Tool is a tool that can be found.
type Tool struct {
	Name       string // for callers
	Server     string
	Definition *invoker.Definition
}

// Offer is the tools that a caller can find. It never changes; its methods may be called
// concurrently.
type Offer struct {
	tools []Tool
	index func() *toolsearch.Index // makes it once
}

// NewOffer returns the offer of some tools.
func NewOffer(tools []Tool) *Offer {
	o := &Offer{tools: tools}
	o.index = sync.OnceValue(o.newIndex)
	return o
}

func (o *Offer) newIndex() *toolsearch.Index {
	entries := make([]toolsearch.Entry, len(o.tools))
	for i, t := range o.tools {
		entries[i] = toolsearch.Entry{
			Name: t.Definition.Name, Title: t.Definition.Title, Description: t.Definition.Description,
			Schema: t.Definition.InputSchema, Server: t.Server,
		}
	}
	return toolsearch.New(entries)
}

// Servers returns the names of the servers that have tools, in the order of the tools.
func (o *Offer) Servers() []string {
	names, _ := o.count()
	return names
}

func (o *Offer) count() (servers []string, tools map[string]int) {
	tools = make(map[string]int)
	for _, t := range o.tools {
		if tools[t.Server] == 0 {
			servers = append(servers, t.Server)
		}
		tools[t.Server]++
	}
	return servers, tools
}

// NoneFound begins the result of find_tools if no tool fits.
const NoneFound = "No tool has one of these words."

// Find returns the definitions of the tools that fit a query best, each a line of JSON. If
// there are none it says what there is.
func (o *Offer) Find(query Query) (string, error) {
	var b strings.Builder
	for _, found := range o.index().Search(query.Query, query.max()) {
		line, err := o.tools[found.Entry].line()
		if err != nil {
			return "", err
		}
		b.Write(line)
	}
	if b.Len() == 0 {
		return NoneFound + " " + o.overview(), nil
	}
	return b.String(), nil
}

// overview says how many tools each server has.
func (o *Offer) overview() string {
	servers, tools := o.count()
	if len(servers) == 0 {
		return "There are no tools.\n"
	}
	for i, name := range servers {
		servers[i] = fmt.Sprintf("%s (%d)", name, tools[name])
	}
	return "There are tools of " + strings.Join(servers, ", ") + ". Try other words, or the name of one of these.\n"
}

// definition is what find_tools returns of a tool.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// line returns a definition as a line of JSON.
func (t *Tool) line() ([]byte, error) {
	var schema bytes.Buffer
	if err := json.Compact(&schema, t.Definition.InputSchema); err != nil {
		return nil, fmt.Errorf("the input schema of %s: %w", t.Name, err)
	}
	line, err := jsontext.Encode(definition{t.Name, t.Definition.Description, schema.Bytes()})
	return append(line, '\n'), err
}

// Names returns the names of the tools and the URIs of the resources in a result of
// find_tools. Lines of other forms count for nothing: a server may have a tool of that name.
func Names(result string) (names []string) {
	for line := range strings.Lines(result) {
		var found struct {
			Name, Resource string
			Schema         json.RawMessage `json:"input_schema"`
			Template       string          `json:"resource_template"`
		}
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &found) != nil {
			continue
		}
		if found.Schema == nil {
			found.Name = ""
		}
		if name := found.Name + found.Resource + found.Template; name != "" {
			names = append(names, name)
		}
	}
	return names
}
