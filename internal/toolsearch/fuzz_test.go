// SPDX-License-Identifier: Apache-2.0

package toolsearch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/toolsearch"
)

// Whatever a server sends as a schema is read to its end, and the arguments of an honest
// tool are still found.
func FuzzSchema(f *testing.F) {
	for _, schema := range []string{
		`{"properties":{"path":{"type":"string","description":"where\nit \"is\" \u00e9"},"kind":{"enum":["urgent",1,null,{"a":"b"}]}}}`,
		`{"properties":{"properties":{"properties":{"deep":{"title":["a","b"]}}}},"required":["x"],"examples":[{"y":[[]]}]}`,
		`{"properties":{"a":,"b":`, `[[[[`, `{"a"`, `{"a":"\`, `{"\u12":1}`, `{"a":1 2}`, `[}]`, `{]}`, "\"", "null", "",
		strings.Repeat(`{"properties":{"a":`, 100), strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 10_000),
	} {
		f.Add(schema)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		whole := `{"properties":{"xylophone":` + schema + `,"zither":{"type":"string"}}}`
		index := toolsearch.New([]toolsearch.Entry{{Schema: []byte(schema)}, {Schema: []byte(whole)}})
		if !json.Valid([]byte(whole)) {
			return
		}
		for _, name := range []string{"xylophone", "zither"} {
			if found := index.Search(name, 1); len(found) == 0 || !strings.Contains(schema, name) && found[0].Entry != 1 {
				t.Errorf("%q is not found: %+v", name, found)
			}
		}
	})
}
