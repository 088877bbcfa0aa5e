// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/invoker"
)

// Whatever the arguments are, the function sees only what its schema allows.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `{"city":"Oslo"}`, `{"city":"Oslo","days":3.0,"unit":"c"}`, `{"city":"Oslo","UNIT":"k"}`,
		`{"city":"Oslo","unit":"c","unit":"k"}`, `{"city":"Oslo","days":1e400}`, `{"city":"Oslo","area":{"wide":1,"spots":[{"name":"a"},null]}}`,
		`{"city":"Oslo","area":null}`, `[[[[`, `{"city":"\ud800"}`, `{"city":"Oslo","unıt":"k","ſpots":1}`, "{\"city\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	var seen *query
	see := func(_ context.Context, in query) (query, error) {
		seen = &in
		return in, nil
	}
	strict, err := invoker.New("strict", "", see, nil)
	if err != nil {
		f.Fatal(err)
	}
	open, err := invoker.New("open", "", see, &invoker.Options{InputSchema: json.RawMessage(`{
		"properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "minimum": 1, "maximum": 7}, "unit": {"enum": ["c", "f"]}},
		"required": ["city"]}`)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, arguments []byte) {
		for _, tool := range []invoker.Invoker{strict, open} {
			seen = nil
			_, err := tool.Invoke(context.Background(), &invoker.Call{Arguments: arguments})
			if (seen == nil) != (err != nil) {
				t.Fatalf("%q: the function ran: %v, error: %v", arguments, seen != nil, err)
			}
			if failure := invoker.AsFailure(err); failure != nil {
				checkFailure(t, failure)
				continue
			}
			if seen.Days < 0 || seen.Days > 7 || seen.Unit != "" && seen.Unit != "c" && seen.Unit != "f" {
				t.Errorf("%q: the function saw %+v", arguments, *seen)
			}
			if tool == open && seen.City == "" {
				t.Errorf("%q: the function saw no city", arguments)
			}
		}
	})
}

// Whatever schema and arguments are, a tool can be made or not, and called or
// not, and what is wrong can be read.
func FuzzSchemas(f *testing.F) {
	for _, seed := range [][2]string{
		{weatherSchema, `{"citty":1}`},
		{`{"$schema":"x","$id":"y","properties":{"a":{"$ref":"y#/z"}}}`, `{"a":1}`},
		{`{"$defs":{"a":{"$dynamicAnchor":"m","$id":"q"}},"$dynamicRef":"q#m"}`, `{}`},
		{`{"patternProperties":{"(?=a)":{"pattern":"\\u"}},"propertyNames":{"anyOf":[{"maxLength":1},{"const":"xyz"}]}}`, `{"ab":1}`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x/","dependencies":{"a":{"not":{}},"b":["c"]}}`, `{"a":1,"b":2}`},
		{`{"$recursiveAnchor":true,"$schema":"https://json-schema.org/draft/2019-09/schema","additionalProperties":{"$recursiveRef":"#"}}`, `{"a":{"b":1}}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, schema, arguments []byte) {
		tool, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: schema, OutputSchema: schema}, echo, nil)
		if err != nil {
			if !strings.Contains(err.Error(), "put schema of tool") || len(err.Error()) > 8000 {
				t.Errorf("%q: %v", schema, err)
			}
			return
		}
		if _, err := tool.Invoke(context.Background(), &invoker.Call{Arguments: arguments}); err != nil {
			checkFailure(t, invoker.AsFailure(err))
		}
	})
}

func checkFailure(t *testing.T, failure *invoker.Failure) {
	t.Helper()
	if failure.Code != invoker.InvalidArguments && failure.Code != invoker.Protocol {
		t.Errorf("code %v", failure)
	}
	if len(failure.Message) > 16_000 || strings.Count(failure.Message, "\n") > 11 || !utf8.ValidString(failure.Message) {
		t.Errorf("not fit to read: %q", failure.Message)
	}
	if strings.Contains(failure.Message, "cannot be checked against the schema") {
		t.Error("the validator panicked")
	}
}
