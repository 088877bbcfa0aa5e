// SPDX-License-Identifier: Apache-2.0

package toolsearch_test

import (
	"encoding/json"
	"slices"
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

// Whatever a query is, at most n entries are found, best first, and the same ones each time.
func FuzzQuery(f *testing.F) {
	index := toolsearch.New(entries)
	for _, query := range []string{
		"", `"`, `""`, `a "b" c`, "“a", "a “b” «c» `d`", "https://a/b?c=d", "get rid of the PR", "how how how many many", "3? 3", "\xff“\xfe”", "İ”K",
		strings.Repeat("get rid of ", 1000), strings.Repeat(`"`, 1001),
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		found := index.Search(query, 3)
		if len(found) > 3 || !slices.Equal(found, index.Search(query, 3)) {
			t.Errorf("%+v, and then %+v", found, index.Search(query, 3))
		}
		for i, one := range found {
			if one.Score <= 0 || i > 0 && one.Score > found[i-1].Score {
				t.Errorf("entry %d has the score %f in %+v", i, one.Score, found)
			}
		}
	})
}
