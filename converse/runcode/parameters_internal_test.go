// SPDX-License-Identifier: Apache-2.0

package runcode

import (
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/invoker"
	"go.starlark.net/starlark"
)

// JSON Schema tells members apart by their case: "Required" is not a keyword.
func TestParametersAreKeywords(t *testing.T) {
	for schema, refused := range map[string]bool{
		`{"properties":{"a":{}},"required":["b"]}`:                true,
		`{"properties":{"a":{}},"Required":["b"]}`:                false,
		`{"properties":{"b":{}},"additionalProperties":false}`:    true,
		`{"properties":{"b":{}},"AdditionalProperties":false}`:    false,
		`{"additionalProperties":false,"Properties":{"a":{}}}`:    true,
		`{"additionalProperties":false,"properties":{"a":{}}}`:    false,
		`{"additionalProperties":false,"properties":"no object"}`: false,
	} {
		arguments := starlark.NewDict(1)
		if err := arguments.SetKey(starlark.String("a"), starlark.None); err != nil {
			t.Fatal(err)
		}
		p := parametersOf(&invoker.Definition{InputSchema: json.RawMessage(schema)})
		if err := p.check("f", arguments); (err != nil) != refused {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
