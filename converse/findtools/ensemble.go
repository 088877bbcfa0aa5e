// SPDX-License-Identifier: Apache-2.0

package findtools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/toolsearch"
	"github.com/consort-go/consort/invoker"
)

// The names of the tools in their ensemble.
const (
	findName = "find_tools"
	callName = "call_tool"
)

const (
	usualResults = 5
	mostResults  = 20
)

type findArguments struct {
	Query string `json:"query" jsonschema:"what the tool should do, in some words, or its name"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many tools to return, at most 20; 5 if it is left out" minimum:"0" maximum:"20"`
}

// callArguments are the arguments of call_tool.
type callArguments struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// callSchema is the input schema of call_tool.
var callSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"name":{"type":"string","description":"the name of the tool, as it was returned"},` +
	`"arguments":{"type":"object","description":"the arguments of the tool, as its input_schema describes them"}},` +
	`"required":["name","arguments"]}`)

// Ensemble makes the ensemble of find_tools and call_tool, for the tools of the other
// ensembles. It belongs in the same roster as they do. The errors are the same as from
// [ensemble.NewRoster]. The caller must still close the other ensembles.
func Ensemble(name string, others ...*ensemble.Ensemble) (*ensemble.Ensemble, error) {
	roster, err := ensemble.NewRoster(others...)
	if err != nil {
		return nil, err
	}
	find, err := invoker.New(findName,
		"Find tools by words. Most tools are not listed here: search before you conclude that something cannot be done. "+
			"Returns the definitions of the tools that fit best. Call them with "+ensemble.NameFor(name, callName)+". There are tools of: "+namesOf(others)+".",
		func(ctx context.Context, asked findArguments) (string, error) { return findTools(ctx, roster, asked) },
		&invoker.Options{Hints: invoker.Hints{ReadOnly: true, Idempotent: true}})
	if err != nil {
		return nil, err
	}
	return ensemble.Local(name, find, call{ensemble.NameFor(name, findName)}), nil
}

func namesOf(ensembles []*ensemble.Ensemble) string {
	var names []string
	for _, e := range ensembles {
		names = append(names, e.Name())
	}
	return strings.Join(names, ", ")
}

// call is call_tool. It runs only if the arguments do not name a tool: [Model] replaces all
// other calls.
type call struct{ find string }

func (c call) Definition() *invoker.Definition {
	return &invoker.Definition{
		Name: callName, Description: "Call a tool that " + c.find + " returned.", InputSchema: callSchema,
		Hints: invoker.Hints{ReadOnly: true, Idempotent: true},
	}
}

func (c call) Invoke(context.Context, *invoker.Call) (invoker.Output, error) {
	return invoker.Output{}, &invoker.Failure{
		Code:    invoker.InvalidArguments,
		Message: fmt.Sprintf(`The arguments must be {"name": NAME, "arguments": {…}}, with the name of a tool as %s returns it, and its arguments.`, c.find),
	}
}

// found is what find_tools returns of a tool.
type found struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func findTools(ctx context.Context, roster *ensemble.Roster, asked findArguments) (string, error) {
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		return "", err // the call or the program has ended
	}
	limit := asked.Limit
	if limit == 0 {
		limit = usualResults
	}
	matches := toolsearch.Of(catalog).Search(asked.Query, min(limit, mostResults))
	var b strings.Builder
	for _, match := range matches {
		if definition := match.Tool.Definition(); definition.IsForModels() {
			line, err := definitionLine(match.Tool.Name(), definition)
			if err != nil {
				return "", err
			}
			b.Write(line)
		}
	}
	if b.Len() == 0 {
		b.WriteString("No tool has one of these words. " + offers(catalog))
	}
	for _, away := range catalog.Away() {
		fmt.Fprintf(&b, "The tools of %q are missing: it cannot be reached.\n", away.Ensemble)
	}
	return b.String(), nil
}

// definitionLine returns a definition as a line of JSON.
func definitionLine(name string, definition *invoker.Definition) ([]byte, error) {
	var schema, line bytes.Buffer
	if err := json.Compact(&schema, definition.InputSchema); err != nil {
		return nil, fmt.Errorf("the input schema of %s: %w", name, err)
	}
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(found{name, definition.Description, schema.Bytes()})
	return line.Bytes(), err
}

// offers says how many tools each ensemble has.
func offers(catalog *ensemble.Catalog) string {
	numbers, order := map[string]int{}, []string(nil)
	for _, tool := range catalog.Tools() {
		name := tool.Ensemble().Name()
		if numbers[name] == 0 {
			order = append(order, name)
		}
		numbers[name]++
	}
	if len(order) == 0 {
		return "There are no tools.\n"
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%s (%d)", name, numbers[name])
	}
	return "There are tools of " + strings.Join(order, ", ") + ". Try other words, or the name of one of these.\n"
}
