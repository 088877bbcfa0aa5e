// SPDX-License-Identifier: Apache-2.0

package openaimodel_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/invoker"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func tools(names ...string) *converse.Toolset {
	set := &converse.Toolset{}
	for _, name := range names {
		set.Definitions = append(set.Definitions, &invoker.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return set
}

// offer returns how a schema is sent: the parameters and the description.
func offer(t testing.TB, schema string, inline bool) (parameters, description string) {
	t.Helper()
	url, body := catch(t)
	model := newModel(t, url, openaimodel.Options{InlineRefs: &inline})
	definition := &invoker.Definition{Name: "f", Description: "D.", InputSchema: json.RawMessage(schema)}
	if err := model.Screen(definition); err != nil {
		t.Fatalf("set aside: %v: %s", err, schema)
	}
	request := newRequest()
	request.Tools = &converse.Toolset{Definitions: []*invoker.Definition{definition}}
	if got := modeltest.Run(t.Context(), model, request); got.Err != nil {
		t.Fatal(got.Err)
	}
	var sent struct {
		Tools []struct {
			Function struct {
				Description string
				Parameters  json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(*body, &sent); err != nil || len(sent.Tools) != 1 {
		t.Fatalf("%v: %s", err, *body)
	}
	return string(sent.Tools[0].Function.Parameters), sent.Tools[0].Function.Description
}

func TestSchemas(t *testing.T) {
	for _, test := range []struct{ name, schema, kept, inlined, note string }{
		{name: "none", schema: ``, kept: `{"properties":{},"type":"object"}`},
		{name: "null", schema: `null`, kept: `{"properties":{},"type":"object"}`},
		{name: "no properties", schema: `{"type":"object"}`, kept: `{"properties":{},"type":"object"}`},
		{name: "null properties", schema: `{"type":"object","properties":null,"required":null}`, kept: `{"properties":{},"type":"object"}`},
		{name: "no type", schema: `{"properties":{"a":{"type":"string"}}}`, kept: `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		{name: "nullable root", schema: `{"type":["object","null"]}`, kept: `{"properties":{},"type":"object"}`},
		{
			name: "as it is",
			schema: `{"type":"object","title":"T","properties":{"n":{"type":"integer","minimum":1e400,"default":12345678901234567890},` +
				`"$schema":{"type":"string"}},"required":["n"],"additionalProperties":false,"minProperties":1}`,
			kept: `{"additionalProperties":false,"minProperties":1,"properties":{"$schema":{"type":"string"},` +
				`"n":{"default":12345678901234567890,"minimum":1e400,"type":"integer"}},"required":["n"],"title":"T","type":"object"}`,
		},
		{
			name: "repairs",
			schema: `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"x","properties":{"a":{"type":"array"},"b":true,` +
				`"c":{"type":"any"},"d":{"type":["array","null"],"$comment":"x"},"e":{"items":[{"type":"string"},true]},"f":false,` +
				`"g":{"required":true,"enum":[]}}}`,
			kept: `{"properties":{"a":{"items":{},"type":"array"},"b":{},"c":{},"d":{"items":{},"type":["array","null"]},` +
				`"e":{"prefixItems":[{"type":"string"},{}]},"f":{"not":{}},"g":{}},"type":"object"}`,
		},
		{
			name: "references",
			schema: `{"properties":{"a":{"$ref":"#/$defs/A","description":"mine"},"b":{"$ref":"#/$defs/A","maxLength":3}},` +
				`"$defs":{"A":{"type":"string","description":"theirs"},"unused":{}}}`,
			kept: `{"$defs":{"A":{"description":"theirs","type":"string"},"unused":{}},"properties":{"a":{"$ref":"#/$defs/A",` +
				`"description":"mine"},"b":{"$ref":"#/$defs/A","maxLength":3}},"type":"object"}`,
			inlined: `{"properties":{"a":{"description":"mine","type":"string"},"b":{"allOf":[{"description":"theirs","type":"string"}],` +
				`"maxLength":3}},"type":"object"}`,
		},
		{
			name: "recursion",
			schema: `{"properties":{"t":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"object","properties":{"kids":{"type":"array",` +
				`"items":{"$ref":"#/$defs/T"}}}}}}`,
			kept: `{"$defs":{"T":{"properties":{"kids":{"items":{"$ref":"#/$defs/T"},"type":"array"}},"type":"object"}},` +
				`"properties":{"t":{"$ref":"#/$defs/T"}},"type":"object"}`,
			inlined: `{"properties":{"t":{"properties":{"kids":{"items":{"description":"The same again as T, which this is inside of.",` +
				`"type":"object"},"type":"array"}},"type":"object"}},"type":"object"}`,
		},
		{
			name:   "reference elsewhere",
			schema: `{"properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"},"c":{"$ref":"#name"},"d":{"$anchor":"name","type":"null"}}}`,
			kept:   `{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"null"},"d":{"type":"null"}},"type":"object"}`,
		},
		{
			name:   "reference at the root",
			schema: `{"$ref":"#/definitions/Args","definitions":{"Args":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`,
			kept: `{"definitions":{"Args":{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}},` +
				`"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`,
			inlined: `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`,
		},
		{
			name:   "allOf at the root",
			schema: `{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{},"a":{"minLength":2}},"required":["b"]}]}`,
			kept:   `{"properties":{"a":{"allOf":[{"type":"string"},{"minLength":2}]},"b":{}},"required":["a","b"],"type":"object"}`,
		},
		{
			name: "oneOf at the root",
			schema: `{"type":"object","properties":{"k":{}},"oneOf":[{"properties":{"a":{"type":"string"}},"required":["k","a"],` +
				`"additionalProperties":false},{"properties":{"b":{"type":"string"},"a":{"type":"null"}},"required":["k","b"]},{"type":"null"}]}`,
			kept: `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"type":"string"},"k":{}},"required":["k"],"type":"object"}`,
			note: `The arguments as a whole must also match this JSON Schema: {"oneOf":[`,
		},
		{
			name:   "conditions",
			schema: `{"properties":{"a":{}},"if":{"required":["a"]},"then":{"required":["b"]},"not":{"required":["c"]}}`,
			kept:   `{"properties":{"a":{}},"type":"object"}`,
			note:   `{"if":{"required":["a"]},"not":{"required":["c"]},"then":{"required":["b"]}}`,
		},
		{
			name: "older drafts",
			schema: `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/a","type":"null"},` +
				`"b":{"minimum":1,"exclusiveMinimum":true}},"dependencies":{"a":["b"],"b":{"required":["c"]}},"definitions":{"a":{"type":"string"}}}`,
			kept: `{"definitions":{"a":{"type":"string"}},"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"required":["c"]}},` +
				`"properties":{"a":{"$ref":"#/definitions/a"},"b":{"exclusiveMinimum":1}},"type":"object"}`,
			inlined: `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"required":["c"]}},"properties":{"a":{"type":"string"},` +
				`"b":{"exclusiveMinimum":1}},"type":"object"}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.inlined == "" {
				test.inlined = test.kept
			}
			for inline, want := range map[bool]string{false: test.kept, true: test.inlined} {
				got, description := offer(t, test.schema, inline)
				if got != want {
					t.Errorf("inline %v: got  %s\nwant %s", inline, got, want)
				}
				if !strings.Contains(description, test.note) || test.note == "" && description != "D." {
					t.Errorf("description %s", description)
				}
			}
		})
	}
}

func TestSetAside(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 100) + `{}` + strings.Repeat(`}`, 100)
	wide := `{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 30 {
		wide += fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	wide += `"d30":{}}}`
	model := newModel(t, "http://localhost", openaimodel.Options{})
	for schema, reason := range map[string]string{
		`{"type":"string"}`:                   `its arguments are not an object: the root of its input schema has the type "string"`,
		`{"type":["array","null"]}`:           `the type ["array","null"]`,
		`{"anyOf":[{"type":"string"},false]}`: `not an object`,
		`[]`:                                  `its input schema is a JSON array, not an object`,
		`"x"`:                                 `its input schema is a JSON string`,
		`false`:                               `no arguments satisfy`,
		`{`:                                   `its input schema is not JSON`,
		`{} {}`:                               `more than one JSON value`,
		`{"properties":{"a":{"$ref":"http://x/y"}}}`: `refers to "http://x/y", which is not part of it and is never fetched`,
		`{"properties":{"a":{"$ref":"#/$defs/b"}}}`:  `refers to "#/$defs/b", which is not in it`,
		`{"$ref":"#"}`:                                   `refers to itself`,
		`{"$dynamicRef":"#x"}`:                           `$dynamicRef`,
		`{"properties":{"a":` + deep + `}}`:              `nested more than 64 deep`,
		strings.Repeat(" ", 1<<19):                       `more than 256 KiB`,
		`{"$defs":{"a":{"$id":"http://x/","$ref":"#"}}}`: `its own $id`,
	} {
		err := model.Screen(&invoker.Definition{Name: "f", InputSchema: json.RawMessage(schema)})
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%.100s: %v, want %s", schema, err, reason)
		}
	}
	// What grows too large when written out keeps its references.
	if got, _ := offer(t, wide, true); !strings.Contains(got, "$ref") {
		t.Errorf("%.200s", got)
	}
}

// TestBadToolStaysAlone: a tool that cannot be offered does not fail a request.
func TestBadToolStaysAlone(t *testing.T) {
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Hello."}}}}, nil)
	request := newRequest()
	request.Tools = tools("a", "b", "c")
	request.Tools.Definitions[1] = &invoker.Definition{Name: "b", InputSchema: json.RawMessage(`{"type":"string"}`)}
	if got := modeltest.Run(t.Context(), newModel(t, server.URL(), openaimodel.Options{}), request); got.Err != nil {
		t.Error(got.Err)
	}
	body := string(server.Requests()[0].Body)
	if !strings.Contains(body, `"name":"a"`) || strings.Contains(body, `"name":"b"`) || !strings.Contains(body, `"name":"c"`) {
		t.Error(body)
	}
}

// TestToolsAreByteStable: the order in which a server wrote the members of its
// schemas does not matter.
func TestToolsAreByteStable(t *testing.T) {
	url, body := catch(t)
	want := ""
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		request := newRequest()
		request.Tools = &converse.Toolset{Definitions: []*invoker.Definition{{Name: "f", InputSchema: shuffled(r, map[string]any{
			"type": "object", "properties": map[string]any{
				"a": map[string]any{"type": "string", "description": "<&>"}, "b": true, "c": map[string]any{"$ref": "#/$defs/x"},
			},
			"$defs": map[string]any{"x": map[string]any{"minimum": 1, "maximum": 2}},
			"oneOf": []any{map[string]any{"required": []any{"a"}, "title": "A"}, map[string]any{"required": []any{"b"}}},
		})}}}
		if got := modeltest.Run(t.Context(),
			newModel(t, url, openaimodel.Options{ExtraBody: map[string]any{"x": 1, "y": 2, "a": 3}}), request); got.Err != nil {
			t.Fatal(got.Err)
		}
		if want == "" {
			want = string(*body)
		}
		if string(*body) != want {
			t.Fatalf("got  %s\nwant %s", *body, want)
		}
	}
}

// shuffled returns a value as JSON with its members in an order of chance.
func shuffled(r *rand.Rand, value any) json.RawMessage {
	object, ok := value.(map[string]any)
	if !ok {
		text, _ := json.Marshal(value)
		return text
	}
	var members []string
	for name, member := range object {
		members = append(members, fmt.Sprintf("%q: %s", name, shuffled(r, member)))
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return json.RawMessage("{" + strings.Join(members, " ,") + "}")
}

// TestAdaptedAcceptsTheSame: arguments that a tool's own schema accepts are
// accepted by what the model is told, over schemas and arguments made by chance.
func TestAdaptedAcceptsTheSame(t *testing.T) {
	server := start(t, openaiserver.Script{Steps: []openaiserver.Step{{Reply: openaiserver.Message{Text: "Hello."}}}}, nil)
	models := map[bool]*openaimodel.Model{}
	for _, inline := range []bool{false, true} {
		models[inline] = newModel(t, server.URL(), openaimodel.Options{InlineRefs: &inline})
	}
	const seeds = 400
	accepted, aside := 0, 0
	for seed := range uint64(seeds) {
		g := &generator{rand.New(rand.NewPCG(seed, 2))}
		schema := g.root()
		original := compile(t, schema)
		definition := &invoker.Definition{Name: "f", InputSchema: schema}
		if models[true].Screen(definition) != nil {
			aside++
			continue
		}
		inline := seed%2 == 0
		request := newRequest()
		request.Tools = &converse.Toolset{Definitions: []*invoker.Definition{definition}}
		if got := modeltest.Run(t.Context(), models[inline], request); got.Err != nil {
			t.Fatalf("%s is refused: %v", schema, got.Err)
		}
		adapted := sentSchema(t, server)
		checker := compile(t, adapted)
		for range 40 {
			arguments := g.object(3)
			if original.Validate(arguments) != nil {
				continue
			}
			accepted++
			if err := checker.Validate(arguments); err != nil {
				t.Fatalf("seed %d, inline %v\noriginal %s\nadapted  %s\nrefuses  %v: %v", seed, inline, schema, adapted, arguments, err)
			}
		}
	}
	if accepted < 5*seeds || aside > seeds/5 {
		t.Errorf("only %d arguments were accepted, %d schemas set aside", accepted, aside)
	}
}

func sentSchema(t *testing.T, server *openaiserver.Server) json.RawMessage {
	t.Helper()
	requests := server.Requests()
	var sent struct {
		Tools []struct {
			Function struct{ Parameters json.RawMessage }
		}
	}
	if err := json.Unmarshal(requests[len(requests)-1].Body, &sent); err != nil {
		t.Fatal(err)
	}
	return sent.Tools[0].Function.Parameters
}

func compile(t *testing.T, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///schema.json", document); err != nil {
		t.Fatalf("%v: %s", err, schema)
	}
	compiled, err := compiler.Compile("mem:///schema.json")
	if err != nil {
		t.Fatalf("%v: %s", err, schema)
	}
	return compiled
}

// generator makes schemas and arguments from few names, so that they meet.
type generator struct{ *rand.Rand }

func (g *generator) pick(of ...any) any { return of[g.IntN(len(of))] }

func (g *generator) name() string { return string(rune('a' + g.IntN(4))) }

func (g *generator) root() json.RawMessage {
	root := g.objectSchema(3)
	root["$defs"] = map[string]any{"x": g.schema(2), "y": g.objectSchema(2), "z": g.schema(1)}
	if g.IntN(4) == 0 {
		root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	}
	if g.IntN(6) == 0 {
		root["$ref"] = "#/$defs/y"
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if g.IntN(4) == 0 {
			var branches []any
			for range 1 + g.IntN(3) {
				branches = append(branches, g.pick(g.objectSchema(2), g.objectSchema(1), g.schema(1), map[string]any{"$ref": "#/$defs/y"}))
			}
			root[keyword] = branches
		}
	}
	for _, keyword := range []string{"not", "if", "then", "else"} {
		if g.IntN(10) == 0 {
			root[keyword] = g.objectSchema(1)
		}
	}
	text, _ := json.Marshal(root)
	return text
}

func (g *generator) objectSchema(depth int) map[string]any {
	schema := map[string]any{}
	if g.IntN(2) == 0 {
		schema["type"] = "object"
	}
	properties := map[string]any{}
	for range g.IntN(4) {
		properties[g.name()] = g.schema(depth - 1)
	}
	if len(properties) > 0 || g.IntN(2) == 0 {
		schema["properties"] = properties
	}
	if g.IntN(3) == 0 {
		schema["required"] = []any{g.name()}
	}
	if g.IntN(4) == 0 {
		schema["additionalProperties"] = g.pick(false, true, g.schema(depth-1))
	}
	if g.IntN(8) == 0 {
		schema["patternProperties"] = map[string]any{"^[ab]$": g.schema(depth - 1)}
	}
	if g.IntN(10) == 0 {
		schema["unevaluatedProperties"] = g.pick(false, g.schema(depth-1))
	}
	if g.IntN(10) == 0 {
		schema["propertyNames"] = map[string]any{"pattern": "[a-c]"}
	}
	if g.IntN(10) == 0 {
		schema["dependentSchemas"] = map[string]any{g.name(): g.objectSchema(depth - 1)}
	}
	if g.IntN(10) == 0 {
		schema["minProperties"] = g.IntN(3)
	}
	return schema
}

func (g *generator) schema(depth int) any {
	if depth <= 0 {
		return g.pick(true, map[string]any{"type": "string"}, map[string]any{"type": []any{"integer", "null"}},
			map[string]any{"enum": []any{"p", 1, nil}}, map[string]any{})
	}
	switch g.IntN(9) {
	case 0:
		return map[string]any{"$ref": g.pick("#/$defs/x", "#/$defs/y", "#/$defs/z", "#").(string), "description": "d"}
	case 1:
		return map[string]any{"type": "array"}
	case 2:
		return map[string]any{"type": "array", "items": g.schema(depth - 1), "maxItems": 2}
	case 3:
		return map[string]any{g.pick("anyOf", "oneOf", "allOf").(string): []any{g.schema(depth - 1), g.schema(depth - 1)}}
	case 4:
		return map[string]any{"$ref": "#/$defs/z", "minLength": 1}
	case 5:
		return g.schema(0)
	case 6:
		return false
	}
	return g.objectSchema(depth - 1)
}

func (g *generator) object(depth int) map[string]any {
	object := map[string]any{}
	for range g.IntN(4) {
		object[g.name()] = g.value(depth - 1)
	}
	return object
}

func (g *generator) value(depth int) any {
	if depth > 0 && g.IntN(3) == 0 {
		return g.object(depth)
	}
	if depth > 0 && g.IntN(4) == 0 {
		return []any{g.value(depth - 1)}
	}
	return g.pick("p", "", 1, nil, true)
}
