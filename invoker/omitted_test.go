// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/invoker"
)

// screenshotSchema is what zod makes of properties with .default(), as servers
// have them: they are required, and their parser fills them in.
const screenshotSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
	"properties":{
		"type":{"type":"string","enum":["png","jpeg"],"default":"png"},
		"scale":{"$ref":"#/definitions/scale"},
		"name":{"type":"string"},
		"full":{"type":"boolean"}},
	"required":["type","scale"],
	"additionalProperties":false,
	"definitions":{"scale":{"type":"string","enum":["css","device"],"default":"css"}}}`

// What is omitted of these, the server fills in.
func TestRequiredPropertiesWithADefaultMayBeOmitted(t *testing.T) {
	for _, test := range []struct{ name, schema, arguments, failure string }{
		{"all", screenshotSchema, `{}`, ""},
		{"none at all", screenshotSchema, ``, ""},
		{"one", screenshotSchema, `{"type":"jpeg"}`, ""},
		{"as null", screenshotSchema, `{"type":null,"scale":null,"full":true}`, ""},
		{"another fault", screenshotSchema, `{"full":3}`, "schema:\n/full: 3 is not a boolean"},
		{"a wrong value", screenshotSchema, `{"scale":"em"}`, "schema:\n/scale: \"em\""},
		{"no default", `{"properties":{"a":{"type":"string"},"b":{"default":1}},"required":["a","b"]}`, `{}`, "schema:\n/a: is missing (required)"},
		{"a default of null", `{"properties":{"a":{"default":null}},"required":["a"]}`, `{}`, ""},
		{"within", `{"properties":{"a":{"properties":{"b":{"default":1}},"required":["b"]}},"required":["a"]}`, `{"a":{}}`, ""},
		{"within a list", `{"properties":{"a":{"items":{"properties":{"b":{"default":1}},"required":["b"]}}}}`, `{"a":[{},{"b":2}]}`, ""},
		{"in allOf", `{"allOf":[{"properties":{"a":{"default":1}}},{"required":["a"]}]}`, `{}`, ""},
		{"behind a reference", `{"$defs":{"x":{"properties":{"a":{"default":1}},"required":["a"]}},"properties":{"x":{"$ref":"#/$defs/x"}}}`, `{"x":{}}`, ""},
		{"beside a reference", `{"$defs":{"x":{"properties":{"a":{"default":1}}}},"$ref":"#/$defs/x","required":["a"]}`, `{}`, ""},
		{"recursive", `{"properties":{"next":{"$ref":"#"},"a":{"default":1}},"required":["a"]}`, `{"next":{"next":{}}}`, ""},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"default":1}},"required":["a"]}`, `{}`, ""},
		{"dependent", `{"properties":{"a":{},"b":{"default":1}},"dependentRequired":{"a":["b"]}}`, `{"a":1}`, ""},
		{
			"of a form",
			`{"oneOf":[{"properties":{"k":{"const":"x"},"a":{"default":1}},"required":["k","a"]},{"properties":{"k":{"const":"y"}},"required":["k"]}]}`,
			`{"k":"x"}`, "",
		},
		{"of two forms", `{"oneOf":[{"properties":{"a":{"default":1}},"required":["a"]},{"properties":{"b":{"default":1}},"required":["b"]}]}`, `{}`, ""},
		{"fits one form as it is", `{"oneOf":[{"properties":{"a":{"default":1}},"required":["a"]},{"properties":{"b":{}},"required":["b"]}]}`, `{"b":1}`, ""},
		{
			"two forms without a default", `{"properties":{"c":{"default":1}},"required":["c"],"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"a":1,"b":1,"c":1}`, "fits more than one",
		},
		{"not", `{"properties":{"a":{"default":1}},"required":["a"],"not":{"properties":{"b":{"default":1}},"required":["b"]}}`, `{}`, ""},
		{"a property called default", `{"properties":{"default":{"type":"string"}},"required":["default"]}`, `{}`, "/default: is missing"},
		{
			"a value that looks like a schema",
			`{"properties":{"a":{"const":{"properties":{"b":{"default":1}},"required":["b"]}}}}`, `{"a":{"properties":{"b":{"default":1}}}}`, "/a:",
		},
	} {
		got := "nothing"
		def := invoker.Definition{Name: "t", InputSchema: json.RawMessage(test.schema)}
		tool, err := invoker.Raw(def, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			got = string(call.Arguments)
			return invoker.Output{}, nil
		}, nil)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if shown := string(tool.Definition().InputSchema); shown != test.schema {
			t.Errorf("%s: the schema is shown as %s", test.name, shown)
		}
		switch _, failure := invoke(t, tool, test.arguments); {
		case failure == nil && test.failure == "":
			if test.name != "as null" && got != test.arguments && !(test.arguments == "" && got == "{}") {
				t.Errorf("%s: the function got %s", test.name, got)
			}
		case failure == nil || test.failure == "" || !strings.Contains(failure.Message, test.failure):
			t.Errorf("%s: %v, want %q", test.name, failure, test.failure)
		}
	}
}

// Nor do rules about trusted values stand in the way.
func TestOmittedBesideTrustedValues(t *testing.T) {
	def := invoker.Definition{Name: "t", InputSchema: json.RawMessage(
		`{"properties":{"user":{"type":"integer"},"scale":{"default":"css"}},"required":["user","scale"]}`)}
	tool, err := invoker.Raw(def, echo, nil)
	if err != nil {
		t.Fatal(err)
	}
	filled, err := invoker.Fill(tool, map[string]string{"user": "user_id"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := invoker.WithTrusted(t.Context(), invoker.NewTrusted[int]("user_id").Value(7))
	output, err := filled.Invoke(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := output.Content; len(got) != 1 || !strings.Contains(string(mustJSON(t, got[0])), `{\"user\":7}`) {
		t.Errorf("the function got %s", mustJSON(t, got[0]))
	}
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A Go function that requires a field with a default does not receive a zero value
// instead.
func TestTypedToolsRequireWhatTheirSchemaRequires(t *testing.T) {
	tool, err := invoker.New("t", "", func(_ context.Context, in struct {
		A string `json:"a"`
	}) (string, error) {
		return in.A, nil
	}, &invoker.Options{InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := invoke(t, tool, `{}`); failure == nil || failure.Code != invoker.InvalidArguments {
		t.Errorf("%v", failure)
	}
}

// A schema that would take too long to examine is checked unchanged.
func TestHostileSchemasOfDefaults(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"required":["a"],"properties":{"a":{"default":1}},"allOf":[`)
	for i := range 900 {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`{"properties":{"a":{"$ref":"#"}},"$ref":"#"}`)
	}
	b.WriteString(`]}`)
	tool, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: json.RawMessage(b.String())}, echo, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := invoke(t, tool, `{}`); failure == nil || failure.Code != invoker.InvalidArguments {
		t.Errorf("%v", failure)
	}
}
