// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// raw makes a tool with the input schema that answers with its arguments.
func raw(t testing.TB, schema string) invoker.Invoker {
	t.Helper()
	tool, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: json.RawMessage(schema)}, echo, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func echo(_ context.Context, call *invoker.Call) (invoker.Output, error) {
	return invoker.Output{Content: canister.Texts(string(call.Arguments))}, nil
}

func invoke(t testing.TB, tool invoker.Invoker, arguments string) (string, *invoker.Failure) {
	t.Helper()
	output, err := tool.Invoke(context.Background(), &invoker.Call{Arguments: json.RawMessage(arguments)})
	return canister.TextOf(output.Content), invoker.AsFailure(err)
}

const weatherSchema = `{
	"type": "object",
	"properties": {
		"city": {"type": "string", "minLength": 3},
		"days": {"type": "integer", "minimum": 1, "maximum": 7},
		"unit": {"enum": ["c", "f"]},
		"when": {"anyOf": [{"type": "string"}, {"type": "null"}, {"const": 3}]},
		"area": {"oneOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/box"}]},
		"tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}, "uniqueItems": true, "maxItems": 3}
	},
	"required": ["city"],
	"additionalProperties": false,
	"$defs": {
		"circle": {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number", "exclusiveMinimum": 0}}, "required": ["kind", "r"]},
		"box": {"type": "object", "properties": {"kind": {"const": "box"}, "w": {"type": "number"}}, "required": ["kind", "w"]}
	}
}`

func TestViolationsSayWhatToDo(t *testing.T) {
	tool := raw(t, weatherSchema)
	for _, test := range []struct {
		name, arguments string
		want            []string // the lines after the first
	}{
		{"missing", `{}`, []string{`/city: is missing (required)`}},
		{"several, in order", `{"unit":"k","days":12,"citty":"Oslo"}`, []string{
			`/citty: is not a known property; the known ones are area, city, days, tags, unit, when (did you mean city?)`,
			`/city: is missing (required)`,
			`/days: 12 is greater than the maximum 7`,
			`/unit: "k" is not one of "c", "f"`,
		}},
		{"no guess", `{"city":"Oslo","zzzzzz":1}`, []string{
			`/zzzzzz: is not a known property; the known ones are area, city, days, tags, unit, when`,
		}},
		{"type", `{"city":["Oslo"],"days":"3"}`, []string{
			`/city: an array is not a string`,
			`/days: "3" (a string) is not an integer`,
		}},
		{"fraction", `{"city":"Oslo","days":2.5}`, []string{`/days: 2.5 is not an integer`}},
		{"too short", `{"city":"O"}`, []string{`/city: has 1 character; at least 3 needed`}},
		{"choice of types", `{"city":"Oslo","when":true}`, []string{`/when: true is not one of 3, a string, null`}},
		{"choice of forms", `{"city":"Oslo","area":{"kind":"box","w":"wide","r":1}}`, []string{
			`/area: fits none of the 2 allowed forms (the other lines on it are for form 2, the nearest)`,
			`/area/w: "wide" (a string) is not a number`,
		}},
		{"all of one type", `{"city":"Oslo","area":4}`, []string{`/area: 4 is not an object`}},
		{"items", `{"city":"Oslo","tags":["a","B","a","c"]}`, []string{
			`/tags: has 4 items; at most 3 allowed`,
			`/tags: items 0 and 2 are equal; all items must be different`,
			`/tags/1: "B" does not match the pattern ^[a-z]+$`,
		}},
		{"pointer escapes", `{"city":"Oslo","a/b~c":1}`, []string{
			`/a~1b~0c: is not a known property; the known ones are area, city, days, tags, unit, when`,
		}},
		{"a name that would break the lines", `{"city":"Oslo","x\n/city":1}`, []string{
			`/x\n~1city: is not a known property; the known ones are area, city, days, tags, unit, when`,
		}},
		{"an array", `[1]`, []string{`arguments: an array is not an object; write them as a JSON object`}},
		{"JSON in a string", `"{}"`, []string{`arguments: "{}" (a string) is not an object; write them as a JSON object`}},
		{"cut off", `{"city":"Os`, []string{`arguments: not valid JSON at byte 11 of 11: unexpected end of JSON input`}},
		{"two texts", `{} {}`, []string{`arguments: not valid JSON at byte 4 of 5: invalid character '{' after top-level value`}},
		{"given twice", `{"city":"Oslo","days":1,"days":2}`, []string{`/days: is given twice`}},
		{"out of range", `{"city":"Oslo","days":1e400}`, []string{`/days: 1e400 is beyond the range of numbers`}},
		{"a gigabyte of digits", `{"city":"Oslo","days":1e-999999999}`, []string{`/days: 1e-999999999 is too close to zero`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, failure := invoke(t, tool, test.arguments)
			if failure == nil || failure.Code != invoker.InvalidArguments {
				t.Fatalf("got %v", failure)
			}
			got := strings.Split(failure.Message, "\n")
			want := append([]string{"The arguments do not fit the tool's input schema:"}, test.want...)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// Models write null for omitted values.
func TestNullIsNotGiven(t *testing.T) {
	var got string
	tool, err := invoker.Raw(invoker.Definition{Name: "weather", InputSchema: json.RawMessage(weatherSchema)},
		func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			got = string(call.Arguments)
			return invoker.Output{}, nil
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ arguments, want, failure string }{
		{`{"days":null,"city":"Oslo","unit":null}`, `{"city":"Oslo"}`, ""},
		{`{"when":null, "city":"Oslo"}`, `{"when":null, "city":"Oslo"}`, ""},                   // may be null
		{`{"days":null,"city":"Oslo","when":null}`, `{"city":"Oslo","when":null}`, ""},         // one may, one may not
		{`{"city":null}`, "", "/city: null is not a string"},                                   // required
		{`{"city":"Oslo","days":null,"unit":"k"}`, "", "schema:\n/unit: \"k\""},                // not all that is wrong: null is not
		{`{"city":null,"days":null}`, "", "schema:\n/city: null is not a string"},              // required, beside one that is not
		{`{"city":"Oslo","area":{"kind":"box","w":null,"h":1}}`, "", "/area/w: null is not a"}, // deeper: as it is
		{`{"city":"Oslo","citty":null,"days":null}`, `{"city":"Oslo"}`, ""},                    // not given either
	} {
		got = ""
		_, failure := invoke(t, tool, test.arguments)
		switch {
		case failure == nil && test.failure == "":
			if got != test.want {
				t.Errorf("%s reached the function as %s, want %s", test.arguments, got, test.want)
			}
		case failure == nil || test.failure == "" || !strings.Contains(failure.Message, test.failure):
			t.Errorf("%s: %v, want %q", test.arguments, failure, test.failure)
		}
	}
}

func TestEveryKeywordHasWords(t *testing.T) {
	for _, test := range []struct{ schema, arguments, want string }{
		{`{"minProperties":2}`, `{"a":1}`, `arguments: has 1 property; at least 2 needed`},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, `arguments: has 2 properties; at most 1 allowed`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `arguments: the name "ab" is not allowed: has 2 characters; at most 1 allowed`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `/b: is missing (required because "a" is given)`},
		{`{"properties":{"a":{"multipleOf":0.5}}}`, `{"a":0.7}`, `/a: 0.7 is not a multiple of 0.5`},
		{`{"properties":{"a":{"exclusiveMaximum":3}}}`, `{"a":3}`, `/a: 3 is not less than 3`},
		{`{"properties":{"a":{"minimum":3}}}`, `{"a":2}`, `/a: 2 is less than the minimum 3`},
		{`{"properties":{"a":{"contains":{"type":"string"}}}}`, `{"a":[1]}`, `/a: has no item of the kind that it must contain`},
		{
			`{"properties":{"a":{"contains":{"type":"string"},"minContains":2}}}`, `{"a":["x"]}`,
			`/a: has 1 item of the kind that it must contain; at least 2 needed`,
		},
		{
			`{"properties":{"a":{"contains":{"type":"string"},"maxContains":1}}}`, `{"a":["x","y"]}`,
			`/a: has 2 items of the kind that it may contain; at most 1 allowed`,
		},
		{`{"properties":{"a":{"minItems":2}}}`, `{"a":[]}`, `/a: has 0 items; at least 2 needed`},
		{`{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"x"}`, `/a: matches a schema that is excluded here (not)`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `/a: is not allowed here`},
		{
			`{"properties":{"a":{"oneOf":[{"type":"integer"},{"type":"number"}]}}}`, `{"a":1}`,
			`/a: fits more than one of the allowed forms (1 and 2); it must fit exactly one`,
		},
		{`{"unevaluatedProperties":false}`, `{"a":1}`, `/a: is not allowed here`},
		{`{"additionalProperties":false}`, `{"a":1}`, `/a: is not allowed: no properties are known here`},
		{`{"properties":{"a":{"const":{"b":[1]}}}}`, `{"a":1}`, `/a: 1 is not {"b":[1]}`},
		{`{"allOf":[{"$ref":"#"}]}`, `{}`, `arguments: cannot be checked: the schema refers to itself`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`, `{"a":1}`, `/b: is missing (required because "a" is given)`},
		{
			`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[true],"additionalItems":false}}}`,
			`{"a":[1,2,3]}`, `/a: has 2 items more than allowed`,
		},
	} {
		_, failure := invoke(t, raw(t, test.schema), test.arguments)
		if failure == nil || !strings.HasSuffix(failure.Message, "schema:\n"+test.want) {
			t.Errorf("%s: got %v, want %s", test.schema, failure, test.want)
		}
	}
}

func TestViolationsAreBounded(t *testing.T) {
	var members []string
	for i := range 25 {
		members = append(members, fmt.Sprintf(`"p%02d":"%s"`, i, strings.Repeat("é", 5000)))
	}
	tool := raw(t, `{"additionalProperties":{"type":"integer"}}`)
	_, failure := invoke(t, tool, "{"+strings.Join(members, ",")+"}")
	if !strings.HasSuffix(failure.Message, "\n… and 15 more") || strings.Count(failure.Message, "\n") != 11 {
		t.Errorf("got %s", failure.Message)
	}
	if len(failure.Message) > 3000 {
		t.Errorf("%d bytes", len(failure.Message))
	}
}

func TestNoArgumentsMeanAnEmptyObject(t *testing.T) {
	tool := raw(t, ``)
	for _, arguments := range []string{``, ` `, `null`, " null\n", `{}`} {
		if got, failure := invoke(t, tool, arguments); failure != nil || got != `{}` {
			t.Errorf("%q: got %q, %v", arguments, got, failure)
		}
	}
	if got := string(tool.Definition().InputSchema); got != `{"type":"object"}` {
		t.Errorf("input schema %s", got)
	}
	if _, err := tool.Invoke(context.Background(), nil); err != nil {
		t.Errorf("a nil call: %v", err)
	}
}

func TestBytesStayAsTheyWere(t *testing.T) {
	schema := json.RawMessage(` { "$schema" : "http://json-schema.org/draft-07/schema#" , "properties":{"a":{"format":"date","$ref":"http://far/away"}} } `)
	before := string(schema)
	var got string
	tool, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: schema, OutputSchema: schema},
		func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			got = string(call.Arguments)
			return invoker.Output{Content: []canister.Content{canister.StructuredContent{JSON: []byte(`{}`)}}}, nil
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(tool.Definition().InputSchema) != before || string(tool.Definition().OutputSchema) != before {
		t.Error("the schema in the definition was changed")
	}
	arguments := "{ \"a\" : 1.0 ,\t\"b\":\"\\u00e9\" }"
	if _, failure := invoke(t, tool, arguments); failure != nil || got != arguments {
		t.Errorf("got %q, %v", got, failure)
	}
	schema[1] = 'x'
	if string(tool.Definition().InputSchema) != before {
		t.Error("the definition shares its schema with the caller")
	}
}

func TestUnusableDefinitions(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 100_000) + `{}` + strings.Repeat(`}`, 100_000)
	wide := `{"enum":[0` + strings.Repeat(`,0`, 20_000) + `]}`
	for _, test := range []struct{ name, schema, want string }{
		{"not JSON", `{"type":`, "not usable JSON:\nschema: not valid JSON at byte 8 of 8"},
		{"no schema", `[]`, "a schema is an object"},
		{"true", `true`, "arguments are an object, and the schema allows none"},
		{"of strings", `{"type":"string"}`, "arguments are an object, and the schema allows none"},
		{"unknown type", `{"properties":{"a":{"type":"strng"}}}`, "not a valid JSON Schema:\n/properties/a/type: \"strng\" (a string) is not one of"},
		{"dangling", `{"properties":{"a":{"$ref":"#/$defs/x"}}}`, `its $ref "#/$defs/x" cannot be resolved`},
		{"dangling anchor", `{"properties":{"a":{"$ref":"#x"}}}`, `its $ref "#x" cannot be resolved`},
		{"deep", deep[:200_000], "nested more than 200 deep"},
		{"nested", strings.Repeat(`{"not":`, 300) + `{}` + strings.Repeat(`}`, 300), "nested more than 200 deep"},
		{"large", deep, "more than the limit of 262144"},
		{"wide", wide, "more than the limit of 10000"},
		{"huge number", `{"minProperties":1e999999999}`, "/minProperties: 1e999999999 is beyond the range of numbers"},
		{"huge fraction", `{"properties":{"a":{"multipleOf":1e-999999999}}}`, "is too close to zero"},
		{"twice", `{"type":"object","type":"object"}`, "/type: is given twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: json.RawMessage(test.schema)}, echo, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), `the input schema of tool "t" cannot be used: `) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if err != nil && (len(err.Error()) > 1000 || strings.Contains(err.Error(), "consort://")) {
				t.Errorf("not fit to read: %v", err)
			}
		})
	}
	if _, err := invoker.Raw(invoker.Definition{Name: "t", OutputSchema: json.RawMessage(`{"type":4}`)}, echo,
		nil); err == nil || !strings.HasPrefix(err.Error(), `the output schema of tool "t"`) {
		t.Errorf("output schema: %v", err)
	}
	if _, err := invoker.Raw(invoker.Definition{}, echo, nil); err == nil {
		t.Error("no name: no error")
	}
	if _, err := invoker.Raw(invoker.Definition{Name: "t"}, nil, nil); err == nil {
		t.Error("no function: no error")
	}
}

func TestDialects(t *testing.T) {
	for _, test := range []struct{ name, schema, good, bad string }{
		{
			"2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"prefixItems":[{"type":"string"}]}}}`, `{"a":["x"]}`,
			`{"a":[1]}`,
		},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema#","properties":{"a":{"items":[{"type":"string"}]}}}`, `{"a":["x"]}`, `{"a":[1]}`},
		{
			"draft-07, https", `{"$schema":"https://json-schema.org/draft-07/schema","properties":{"a":{"items":[{"type":"string"}]}}}`, `{"a":["x"]}`,
			`{"a":[1]}`,
		},
		{"draft-06", `{"$schema":"http://json-schema.org/draft-06/schema#","properties":{"a":{"const":1}}}`, `{"a":1}`, `{"a":2}`},
		{"draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":2}`, `{"a":1}`},
		{"none, but old: tuples", `{"properties":{"a":{"items":[{"type":"string"}]}}}`, `{"a":["x"]}`, `{"a":[1]}`},
		{"none, but old: booleans", `{"properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":2}`, `{"a":1}`},
		{"unknown, but clear", `{"$schema":"https://example.com/dialect","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		{"a member of another case", `{"$Schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"const":1}}}`, `{"a":1}`, `{"a":2}`},
		{"unknown and strange", `{"$schema":"http://json-schema.org/draft-03/schema#","properties":{"a":{"type":"string","required":true}}}`, `{"a":"x"}`, ``},
		{"not a URL", `{"$schema":"%%","$id":"%%","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		{"$schema inside", `{"properties":{"a":{"$schema":"https://example.com/x","$id":"q","type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		{"$schema as a property", `{"properties":{"$schema":{"type":"string"},"$ref":{"type":"integer"}}}`, `{"$schema":"x","$ref":1}`, `{"$schema":1}`},
		{
			"formats are advice", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":"string","format":"date"}}}`,
			`{"a":"tomorrow"}`, `{"a":1}`,
		},
		{
			"values are not schemas", `{"properties":{"a":{"const":{"format":"x","$ref":"http://far/away"}}}}`,
			`{"a":{"format":"x","$ref":"http://far/away"}}`, `{"a":{}}`,
		},
		{"look-ahead", `{"properties":{"a":{"pattern":"^(?=x)","maxLength":3}},"patternProperties":{"(?!b)":{"minLength":1}}}`, `{"a":"q"}`, `{"a":"qqqq"}`},
		{"ECMA escapes", `{"properties":{"a":{"pattern":"^[\\u4e00-\\u9fff\\/]$"}}}`, `{"a":"中"}`, `{"a":"x"}`},
		{
			"embedded resources", `{"$id":"https://example.com/s","properties":{"a":{"$ref":"item"}},"$defs":{"i":{"$id":"item","type":"string"}}}`,
			`{"a":"x"}`, `{"a":1}`,
		},
		{
			"embedded resources, draft-04",
			`{"$schema":"http://json-schema.org/draft-04/schema#","id":"https://example.com/s","properties":{"a":{"$ref":"item"}},` +
				`"definitions":{"i":{"id":"item","type":"string"}}}`, `{"a":"x"}`, `{"a":1}`,
		},
		{
			"beside a far $ref, before 2019-09",
			`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"http://far/away","type":"string"}}}`, `{"a":1}`, ``,
		},
		{"beside a far $ref, since 2019-09", `{"properties":{"a":{"$ref":"http://far/away","type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		{
			"refs to odd places", `{"properties":{"a":{"$ref":"#/components/schemas/x"}},"components":{"schemas":{"x":{"type":"string"}}}}`, `{"a":"x"}`,
			`{"a":1}`,
		},
		{"recursion", `{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`, `{"a":{"a":{}}}`, `{"a":{"b":{}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool := raw(t, test.schema)
			if _, failure := invoke(t, tool, test.good); failure != nil {
				t.Errorf("%s: %v", test.good, failure)
			}
			if test.bad == "" {
				return
			}
			if _, failure := invoke(t, tool, test.bad); failure == nil {
				t.Errorf("%s: no failure", test.bad)
			}
		})
	}
}

func TestNothingIsFetched(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"type":"string"}`))
	}))
	defer server.Close()
	for _, ref := range []string{
		server.URL, server.URL + "/s#/definitions/x", server.URL + "/s#x", "file:///etc/passwd", "/etc/passwd", "other.json#/a", "urn:x:y", "%%",
	} {
		for _, dialect := range []string{"https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#", server.URL} {
			schema, err := json.Marshal(map[string]any{
				"$schema": dialect, "properties": map[string]any{"a": map[string]any{"$ref": ref}, "b": map[string]any{"type": "string"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			tool := raw(t, string(schema))
			if _, failure := invoke(t, tool, `{"a":[1]}`); failure != nil {
				t.Errorf("%s in %s: %v", ref, dialect, failure)
			}
			if _, failure := invoke(t, tool, `{"b":1}`); failure == nil {
				t.Errorf("%s in %s: the rest of the schema does not count", ref, dialect)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestHostileSizesEnd(t *testing.T) {
	nest := func(open, middle, end string, n int) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	var chain strings.Builder
	chain.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 1600 {
		fmt.Fprintf(&chain, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"}]},`, i, i+1)
	}
	chain.WriteString(`"a1600":{"properties":{"a":{"$ref":"#/$defs/a0"}}}}}`)
	for _, test := range []struct{ name, schema, arguments, want string }{
		{"brackets", ``, nest("[", "", "]", 100_000), "nested more than 200 deep"},
		{"nested", ``, `{"a":` + nest("[", "", "]", 500) + `}`, "nested more than 200 deep"},
		{"digits", ``, `{"a":` + strings.Repeat("9", 400) + `}`, "beyond the range of numbers"},
		{"fraction", ``, `{"a":0.` + strings.Repeat("1", 1000) + `}`, "a number of 1002 characters"},
		{
			"two to the power of 190 visits", `{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
			nest(`{"a":`, "1", "}", 190), "takes too long",
		},
		{
			"the same, unseen by the error",
			`{"$defs":{"a":{"items":{"$ref":"#/$defs/a"},"contains":{"$ref":"#/$defs/a"},"type":"array"}},"properties":{"a":{"not":{"$ref":"#/$defs/a"}}}}`,
			`{"a":` + nest("[", "1", "]", 190) + `}`, "takes too long",
		},
		{"a long chain at every level", chain.String(), nest(`{"a":`, "1", "}", 190), "takes too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(t *testing.T) {
				_, failure := invoke(t, raw(t, test.schema), test.arguments)
				if failure == nil || !strings.Contains(failure.Message, test.want) || len(failure.Message) > 1000 {
					t.Errorf("got %v", failure)
				}
			}
			if test.name == "a long chain at every level" {
				check(t) // slow steps: the clock ends it
				return
			}
			// In the bubble no time passes, so that the count of steps must do.
			synctest.Test(t, check)
		})
	}
}

// A large pattern of a server takes neither memory nor time.
func TestLargePatterns(t *testing.T) {
	most := map[string]uint64{"one": 10 << 20, "keys": 10 << 20, "many": 40 << 20} // bytes
	repeated := func(pattern string, n int) string { return `"` + strings.Repeat(pattern, n) + `"` }
	for name, schema := range map[string]string{
		"one":  `{"properties":{"s":{"pattern":` + repeated("x{1000}", 3300) + `}}}`,
		"keys": `{"patternProperties":{` + repeated("x{1000}", 3300) + `:{}}}`,
		"many": `{"properties":{"s":{"allOf":[` + func() string {
			var all []string
			for i := range 500 {
				all = append(all, fmt.Sprintf(`{"pattern":"x{1000}y{1000}z{%d}"}`, 500+i))
			}
			return strings.Join(all, ",")
		}() + `]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			raw(t, schema)
			runtime.ReadMemStats(&after)
			if made := after.TotalAlloc - before.TotalAlloc; made > most[name] {
				t.Errorf("it took %d MB", made>>20)
			}
		})
	}
	t.Run("a large pattern matches everything", func(t *testing.T) {
		if _, failure := invoke(t, raw(t, `{"properties":{"s":{"pattern":`+repeated("x{1000}", 20)+`}}}`), `{"s":"y"}`); failure != nil {
			t.Error(failure)
		}
	})
	t.Run("a text that is too long for its pattern", func(t *testing.T) {
		began := time.Now()
		schema := `{"properties":{"s":{"pattern":"(?:x?){900}y|(?:x?){900}z|(?:x?){900}w"}}}`
		_, failure := invoke(t, raw(t, schema), `{"s":"`+strings.Repeat("x", 1<<20)+`"}`)
		if failure != nil {
			t.Error(failure)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestResultsAreChecked(t *testing.T) {
	structured := func(s string) canister.Content { return canister.StructuredContent{JSON: []byte(s)} }
	def := invoker.Definition{Name: "t", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	metadata := canister.Fields{"k": json.RawMessage(`1`)}
	for _, test := range []struct {
		name    string
		content []canister.Content
		want    string // the error; empty for none
	}{
		{"good", []canister.Content{canister.Text("one"), structured(`{"n":1}`)}, ""},
		{"bad", []canister.Content{canister.Text("one"), structured(`{"n":"1"}`)}, `/n: "1" (a string) is not an integer`},
		{"not JSON", []canister.Content{structured(`{`)}, `result: not valid JSON`},
		{"none", []canister.Content{canister.Text("one")}, `result: has no structured content`},
	} {
		t.Run(test.name, func(t *testing.T) {
			fn := func(context.Context, *invoker.Call) (invoker.Output, error) {
				return invoker.Output{Content: test.content, Metadata: metadata}, nil
			}
			tool, err := invoker.Raw(def, fn, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, failure := invoke(t, tool, `{}`)
			if (failure == nil) != (test.want == "") {
				t.Fatalf("got %v", failure)
			}
			if failure != nil {
				if failure.Code != invoker.Protocol || !strings.Contains(failure.Message, test.want) || failure.Metadata == nil {
					t.Errorf("got %+v", failure)
				}
				if len(failure.Content) != 1+len(test.content) || canister.TextOf(failure.Content[:1]) != failure.Message {
					t.Errorf("the tool's content is not kept: %v", failure.Content)
				}
			}
			trusting, err := invoker.Raw(def, fn, &invoker.RawOptions{UncheckedResults: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, failure := invoke(t, trusting, `{}`); failure != nil {
				t.Errorf("unchecked: %v", failure)
			}
		})
	}
}

func TestPanicsAreFailures(t *testing.T) {
	boom := errors.New("secret detail")
	for _, test := range []struct {
		name string
		do   func()
		is   error
	}{
		{"value", func() { panic("secret detail") }, nil},
		{"error", func() { panic(boom) }, boom},
		{"nil", func() { panic(nil) }, new(runtime.PanicNilError)},
		{"runtime error", func() { none := []int{}; _ = none[len(none)] }, nil},
		{"Goexit", runtime.Goexit, nil},
		{"inline", func() { panic("secret detail") }, nil},
		{"inline error", func() { panic(boom) }, boom},
	} {
		t.Run(test.name, func(t *testing.T) {
			tool, err := invoker.Raw(invoker.Definition{Name: "t"}, func(context.Context, *invoker.Call) (invoker.Output, error) {
				test.do()
				return invoker.Output{}, nil
			}, &invoker.RawOptions{Inline: strings.HasPrefix(test.name, "inline")})
			if err != nil {
				t.Fatal(err)
			}
			_, failure := invoke(t, tool, ``)
			if failure == nil || failure.Code != invoker.Internal || strings.Contains(failure.Message, "secret") || failure.Content != nil {
				t.Fatalf("got %+v", failure)
			}
			var cause *invoker.Panic
			if !errors.As(failure, &cause) || !strings.Contains(string(cause.Stack), "raw_test.go") {
				t.Errorf("cause %v", failure.Cause)
			}
			if boom := test.is; boom == error(nil) {
				return
			} else if _, isNil := boom.(*runtime.PanicNilError); !isNil && !errors.Is(failure, boom) {
				t.Error("the panic's error is not in the chain")
			}
		})
	}
}

func TestTheFunctionSeesItsCall(t *testing.T) {
	var got []invoker.Progress
	tool, err := invoker.Raw(invoker.Definition{Name: "t"}, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		if carried := invoker.CallFrom(ctx); carried != call || carried.ID != "inv-1" || string(carried.Arguments) != `{}` {
			return invoker.Output{}, fmt.Errorf("the context carries %+v", carried)
		}
		call.Report(invoker.Progress{Done: 1, Total: 2})
		return invoker.Output{}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := &invoker.Call{ID: "inv-1", Progress: func(p invoker.Progress) { got = append(got, p) }}
	if _, err := tool.Invoke(context.Background(), call); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Done != 1 {
		t.Errorf("progress %v", got)
	}
	if call.Arguments != nil {
		t.Error("the caller's call was changed")
	}
}

func TestContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := false
		tool, err := invoker.Raw(invoker.Definition{Name: "t"}, func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
			started = true
			<-ctx.Done()
			return invoker.Output{}, ctx.Err()
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = tool.Invoke(ctx, nil)
		if f := invoker.AsFailure(err); f.Code != invoker.Timeout || !strings.Contains(f.Message, "may or may not") {
			t.Errorf("got %v", f)
		}
		started = false
		_, err = tool.Invoke(ctx, nil)
		if f := invoker.AsFailure(err); started || f.Code != invoker.Timeout || !strings.Contains(f.Message, "Nothing was done") {
			t.Errorf("started %v, got %v", started, f)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = tool.Invoke(gone, nil)
		if f := invoker.AsFailure(err); started || f.Code != invoker.Canceled {
			t.Errorf("started %v, got %v", started, f)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	tool := raw(t, weatherSchema)
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			_, failure := invoke(t, tool, fmt.Sprintf(`{"city":"Oslo","days":%d}`, i))
			if good := 1 <= i && i <= 7; good != (failure == nil) {
				t.Errorf("%d: %v", i, failure)
			}
		})
	}
	group.Wait()
}
