// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/suggest"
	"github.com/consort-go/consort/invoker"
	"go.starlark.net/starlark"
)

// parameters are what the input schema of a tool says about its arguments.
type parameters struct {
	Properties map[string]json.RawMessage
	Patterns   map[string]json.RawMessage
	Required   []string
	Additional json.RawMessage
}

// parametersOf reads the parameters of a tool. A schema that cannot be read has none, and
// any argument fits.
func parametersOf(definition *invoker.Definition) parameters {
	var root map[string]json.RawMessage // a struct would take "Required" for "required"
	if json.Unmarshal(definition.InputSchema, &root) != nil {
		return parameters{}
	}
	p := parameters{Additional: root["additionalProperties"]}
	for name, to := range map[string]any{"properties": &p.Properties, "patternProperties": &p.Patterns, "required": &p.Required} {
		if given := root[name]; given != nil && json.Unmarshal(given, to) != nil {
			return parameters{}
		}
	}
	return p
}

// String lists the parameters, with a question mark for those that can be left out.
func (p parameters) String() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		if !slices.Contains(p.Required, name) {
			name += "?"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "it has none"
	}
	return strings.Join(names, ", ")
}

// check returns an error if arguments lack a required one, or have one that the schema
// excludes. The tool checks everything else.
func (p parameters) check(function string, arguments *starlark.Dict) error {
	for _, name := range p.Required {
		if _, found, err := arguments.Get(starlark.String(name)); err == nil && !found {
			return fmt.Errorf("%s lacks the argument %s; its arguments are: %s", function, name, p)
		}
	}
	if string(p.Additional) != "false" || len(p.Patterns) > 0 {
		return nil
	}
	for key := range arguments.Entries() {
		name, _ := starlark.AsString(key)
		if _, known := p.Properties[name]; known {
			continue
		}
		if like := suggest.Name(name, slices.Sorted(maps.Keys(p.Properties))); like != "" {
			return fmt.Errorf("%s has no argument %s; did you mean %s?", function, name, like)
		}
		return fmt.Errorf("%s has no argument %s; its arguments are: %s", function, name, p)
	}
	return nil
}
