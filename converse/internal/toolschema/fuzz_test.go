// SPDX-License-Identifier: Apache-2.0

package toolschema

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzAdapt: any schema is adapted or set aside, and an adapted one is an object without
// a composition at its root, and unchanged when adapted again.
func FuzzAdapt(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"items":[{}, true]}}}`, `{"allOf":[{"$ref":"#/allOf/0"}]}`,
		`{"anyOf":[{"required":["a"]},{"properties":{"a":false}}],"oneOf":[{},true],"unevaluatedProperties":false}`,
		`{"$ref":"#/$defs/~1%25","$defs":{"/%":{"dependencies":{"a":["b"],"c":false}}}}`,
	} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, schema []byte, inline bool) {
		adapted, _, err := Adapt(schema, inline)
		if err != nil {
			return
		}
		var root map[string]any
		if err := json.Unmarshal(adapted, &root); err != nil {
			t.Fatal(err)
		}
		if _, ok := root["properties"].(map[string]any); !ok || root["type"] != "object" || composed(root) {
			t.Fatalf("%s becomes %s", schema, adapted)
		}
		if again, _, err := Adapt(adapted, inline); err == nil && inline && !bytes.Contains(adapted, []byte("$ref")) && !bytes.Equal(again, adapted) {
			t.Fatalf("%s\nbecomes %s\nand then %s", schema, adapted, again)
		}
	})
}
