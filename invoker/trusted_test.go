// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

var (
	user   = invoker.NewTrusted[int64]("user_id")
	tenant = invoker.NewTrusted[string]("tenant")
	token  = invoker.NewTrusted[string]("token").Secret()
)

// owned is a tool that needs a user and says for whom it ran, and on what.
func owned(t testing.TB, schema string) invoker.Invoker {
	t.Helper()
	tool, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: json.RawMessage(schema)},
		func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
			id, _ := user.From(ctx)
			return invoker.Output{Content: canister.Texts(fmt.Sprintf("%d %s", id, call.Arguments))}, nil
		}, &invoker.RawOptions{Needs: []invoker.Need{user}})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func invokeAs(tool invoker.Invoker, arguments string, values ...invoker.Value) (string, *invoker.Failure) {
	ctx := invoker.WithTrusted(context.Background(), values...)
	output, err := tool.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(arguments)})
	return canister.TextOf(output.Content), invoker.AsFailure(err)
}

func TestNeeds(t *testing.T) {
	tool := owned(t, `{}`)
	if got := tool.Definition().Needs; !slices.Equal(got, []string{"user_id"}) {
		t.Errorf("needs %q", got)
	}
	if got, failure := invokeAs(tool, `{"a":1}`, user.Value(7)); failure != nil || got != `7 {"a":1}` {
		t.Errorf("got %s, %v", got, failure)
	}
	if got, failure := invokeAs(tool, ``, invoker.TrustedJSON("user_id", json.RawMessage(`8`))); failure != nil || got != `8 {}` {
		t.Errorf("got %s, %v", got, failure)
	}
	for what, values := range map[string][]invoker.Value{
		"nothing":          nil,
		"another":          {tenant.Value("x")},
		"another case":     {invoker.NewTrusted[int64]("USER_ID").Value(7)},
		"of another type":  {invoker.NewTrusted[string]("user_id").Value("7")},
		"JSON's null":      {user.Value(7), invoker.TrustedJSON("user_id", json.RawMessage(` null `))},
		"a zero Value":     {{}},
		"JSON that is not": {invoker.TrustedJSON("user_id", json.RawMessage(`"7"`))},
	} {
		// Nothing of the arguments is looked at: they are no JSON.
		got, failure := invokeAs(tool, `{"user_id":`, values...)
		if got != "" || failure == nil || failure.Code != invoker.Unauthorized || !strings.Contains(failure.Message, "user_id") || failure.Retryable {
			t.Errorf("%s: got %q, %v", what, got, failure)
		}
		if failure != nil && (failure.Cause == nil || !strings.Contains(failure.Cause.Error(), "user_id")) {
			t.Errorf("%s: cause %v", what, failure.Cause)
		}
	}
}

func TestNeedsThatCannotBe(t *testing.T) {
	fn := func(context.Context, struct{}) (string, error) { return "", nil }
	for _, needs := range [][]invoker.Need{{nil}, {invoker.Trusted[int]{}}} {
		if _, err := invoker.New("t", "", fn, &invoker.Options{Needs: needs}); err == nil || !strings.Contains(err.Error(), "a need has no name") {
			t.Errorf("%v: %v", needs, err)
		}
	}
	tool, err := invoker.New("t", "", fn, &invoker.Options{Needs: []invoker.Need{user, tenant, user}})
	if err != nil || !slices.Equal(tool.Definition().Needs, []string{"tenant", "user_id"}) {
		t.Errorf("got %q, %v", tool.Definition().Needs, err)
	}
}

func TestForgedArguments(t *testing.T) {
	closed := owned(t,
		`{"type":"object","properties":{"title":{"type":"string"},"user_id":{"type":"integer"}},"required":["user_id"],"additionalProperties":false}`)
	open := owned(t, `{}`)
	for _, arguments := range []string{
		`{"user_id":8}`,
		`{"USER_ID":8}`,
		`{"User_Id":8,"title":"x"}`,
		`{"u\u0073er_id":8}`,
		`{"\u0075ser_id":8}`,
		`{"uſer_id":8}`,
		`{"\u0055\u017fER_ID":8}`,
		`{"user_id":null}`,
		`{"user_id\u0000":8}`,
		`{"user_id\u0000x":8}`,
		"{\"user_id\xff\":8}",
		`{"\ud800user_id":8}`,
		`{"user_id":7}`,
		`{"user_id":7,"user_id":8}`,
		`{"title":"x","title":"y","user_id":8}`,
		`{"title":5,"other":[{"a":{}}],"user_id":{"a":1}}`,
		` {"user_id" : 8 , "title"`,
		`{"user_id":8}}`,
		`{"n":1e999999,"user_id":8}`,
		`{"deep":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `,"user_id":8}`,
	} {
		shown := arguments[:min(len(arguments), 60)]
		for _, tool := range []invoker.Invoker{closed, open} {
			got, failure := invokeAs(tool, arguments, user.Value(7))
			if got != "" || failure == nil || failure.Code != invoker.InvalidArguments {
				t.Errorf("%s: got %q, %v", shown, got, failure)
				continue
			}
			var forged *invoker.Forged
			if !errors.As(failure, &forged) || !slices.Equal(forged.Names, []string{"user_id"}) {
				t.Errorf("%s: cause %v", shown, failure.Cause)
			}
			if !strings.Contains(failure.Message, "is set by the program that runs the tool; leave it out") ||
				!strings.HasPrefix(strings.Trim(strings.ToLower(failure.Pointer), "\ufffd/"), "u") {
				t.Errorf("%s: %q at %q", shown, failure.Message, failure.Pointer)
			}
		}
	}
	for _, arguments := range []string{
		`{"title":"user_id"}`, `{"note":{"user_id":8}}`, `{"list":["user_id",{"user_id":8}]}`, `{"userid":1,"user_ids":2}`, `{"a":{},"b":"user_id"}`,
	} {
		if got, failure := invokeAs(open, arguments, user.Value(7)); failure != nil || got != "7 "+arguments {
			t.Errorf("%s: got %s, %v", arguments, got, failure)
		}
	}
	// What else is wrong is said in the same answer.
	_, failure := invokeAs(closed, `{"title":5,"USER_ID":8}`, user.Value(7))
	if want := "\n/USER_ID: is set by the program that runs the tool; leave it out\n/title: 5 is not a string"; !strings.HasSuffix(failure.Message, want) {
		t.Errorf("got %s", failure.Message)
	}
	// A tool without needs has none of this.
	if got, failure := invokeAs(raw(t, `{}`), `{"user_id":8}`, user.Value(7)); failure != nil || got != `{"user_id":8}` {
		t.Errorf("got %s, %v", got, failure)
	}
}

func TestHiddenProperties(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`{ "type" : "object", "properties": { "b": {}, "a": {} } }`, ""},
		{`{"properties":{"user_ids":{"properties":{"user_id":{}},"required":["user_id"]}},"required":["user_ids"]}`, ""},
		{`{"properties":{"z": {"type":"string"}, "user_id" : {"type":"integer"},"a":{ }}, "required":["user_id", "z"],  "x-more":[ 1 ]}`,
			`{"properties":{"z": {"type":"string"},"a":{ }}, "required":["z"],  "x-more":[ 1 ]}`},
		{`{"properties":{"USER_ID":{}},"required":["uſer_id"]}`, `{"properties":{}}`},
		{`{"properties":{"\u0075ser_id":{}}}`, `{"properties":{}}`},
		{`{"anyOf":[{"required":["user_id"]},{"properties":{"user_id":{},"b":{}},"required":["b"]}]}`,
			`{"anyOf":[{},{"properties":{"b":{}},"required":["b"]}]}`},
		{`{"type":"object","$ref":"#/$defs/In","$defs":{"In":{"allOf":[{"properties":{"user_id":{}}}]}}}`,
			`{"type":"object","$ref":"#/$defs/In","$defs":{"In":{"allOf":[{"properties":{}}]}}}`},
		{`{"dependentRequired":{"title":["user_id","b"],"user_id":["b"],"c":["b"]}}`, `{"dependentRequired":{"title":["b"],"c":["b"]}}`},
		{`{"if":{"required":["a"]},"then":{"required":["user_id"]},"else":{"properties":{"user_id":{}}},"dependentSchemas":{"b":{"required":["user_id"]}}}`,
			`{"if":{"required":["a"]},"then":{},"else":{"properties":{}},"dependentSchemas":{"b":{}}}`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"user_id":{}},"required":["user_id"]}`,
			`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{}}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["user_id","b"],"user_id":["c"],"d":{"required":["user_id"]}}}`,
			`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"d":{}}}`},
		{`{"$ref":"#/$defs/The%20arguments","$defs":{"The arguments":{"properties":{"user_id":{}}}}}`,
			`{"$ref":"#/$defs/The%20arguments","$defs":{"The arguments":{"properties":{}}}}`},
		{`{"properties":{"a":{}},"required":[]}`, ""},
		{`{"$ref":"#","properties":{"user_id":{}}}`, `{"$ref":"#","properties":{}}`},
	} {
		want := test.want
		if want == "" {
			want = test.schema
		}
		tool, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: json.RawMessage(test.schema), Needs: []string{"user_id"}}, echo, nil)
		if err != nil {
			t.Errorf("%s: %v", test.schema, err)
			continue
		}
		if got := string(tool.Definition().InputSchema); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.schema, got, want)
		}
		def := &invoker.Definition{InputSchema: json.RawMessage(test.schema)}
		if got := def.Takes("user_id"); got && test.want == "" {
			t.Errorf("%s takes user_id", test.schema)
		}
	}
}

// A field by the name of a need has the trusted value, whatever the model does.
func TestFieldsByTheNameOfANeed(t *testing.T) {
	type in struct {
		UserID int64  `json:"user_id"`
		Title  string `json:"title"`
	}
	tool, got := take[in](t, &invoker.Options{Needs: []invoker.Need{user}})
	if strings.Contains(string(tool.Definition().InputSchema), "user_id") || !slices.Equal(tool.Definition().Needs, []string{"user_id"}) {
		t.Errorf("got %s, needs %q", tool.Definition().InputSchema, tool.Definition().Needs)
	}
	if _, failure := invokeAs(tool, `{"title":"x"}`, user.Value(7)); failure != nil || *got != (in{7, "x"}) {
		t.Errorf("got %+v, %v", got, failure)
	}
	*got = in{}
	if _, failure := invokeAs(tool, `{"title":"x","user_id":8}`, user.Value(7)); failure == nil || got.Title != "" {
		t.Errorf("got %+v, %v", got, failure)
	}
	if _, failure := invokeAs(tool, `{"title":"x"}`, invoker.NewTrusted[string]("user_id").Value("x")); failure == nil || failure.Code != invoker.Unauthorized {
		t.Errorf("got %v", failure)
	}
}

// picky is a type whose decoder says what it was given.
type picky string

func (p *picky) UnmarshalText(text []byte) error { return fmt.Errorf("%s is not picky", text) }

func refusesToken[In any](t *testing.T) {
	t.Helper()
	tool, _ := take[In](t, &invoker.Options{Needs: []invoker.Need{token}})
	_, failure := invokeAs(tool, `{}`, token.Value("s3cret!"))
	if failure == nil || failure.Code != invoker.Internal || failure.Cause == nil || strings.Contains(fmt.Sprint(failure.Message, failure.Cause), "s3cret") {
		t.Errorf("got %v, cause %v", failure, failure.Cause)
	}
}

// A field that cannot hold the trusted value does not show it.
func TestFieldsThatCannotHoldTheValue(t *testing.T) {
	refusesToken[struct {
		T picky `json:"token"`
	}](t)
	refusesToken[struct {
		T time.Time `json:"token"`
	}](t)
	refusesToken[struct {
		T []byte `json:"token"`
	}](t)
	refusesToken[struct {
		T string `json:"token" format:"uuid"`
	}](t)
	refusesToken[struct {
		T string `json:"token" enum:"a,b"`
	}](t)
	refusesToken[struct {
		T int `json:"token"`
	}](t)
	type in struct {
		ID int64 `json:"User_ID"`
	}
	_, err := invoker.New("t", "", func(context.Context, in) (string, error) { return "", nil }, &invoker.Options{Needs: []invoker.Need{user}})
	if err == nil || !strings.Contains(err.Error(), `"User_ID" would stay empty`) {
		t.Errorf("a field that nobody fills: %v", err)
	}
	type own struct {
		ID int64 `json:"user_id"`
	}
	for schema, want := range map[string]string{
		`{"properties":{"a":{}},"additionalProperties":false}`: `needs a property "user_id"`,
		`{"properties":{"user_id":{}},"required":["user_id"]}`: "",
	} {
		_, err := invoker.New("t", "", func(context.Context, own) (string, error) { return "", nil },
			&invoker.Options{InputSchema: json.RawMessage(schema), Needs: []invoker.Need{user}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func remote(t testing.TB) (invoker.Invoker, *string) {
	t.Helper()
	got := new(string)
	tool, err := invoker.Raw(invoker.Definition{Name: "mail", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"to":{"type":"string"},"owner":{"type":["integer","string"],"minimum":1},"key":{"type":"string"}},` +
			`"required":["to","owner"],"additionalProperties":false}`)},
		func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			*got = string(call.Arguments)
			return invoker.Output{Content: canister.Texts("sent")}, nil
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tool, got
}

func TestFill(t *testing.T) {
	inner, got := remote(t)
	tool, err := invoker.Fill(inner, map[string]string{"owner": "user_id", "key": "token"})
	if err != nil {
		t.Fatal(err)
	}
	def := tool.Definition()
	if want := `{"type":"object","properties":{"to":{"type":"string"}},"required":["to"],"additionalProperties":false}`; string(def.InputSchema) != want {
		t.Errorf("got %s", def.InputSchema)
	}
	if def.Name != "mail" || !slices.Equal(def.Needs, []string{"token", "user_id"}) || !inner.Definition().Takes("owner") {
		t.Errorf("got %+v", def)
	}
	values := []invoker.Value{user.Value(7), token.Value("s3cret")}
	if _, failure := invokeAs(tool, ` { "to": "x"}`, values...); failure != nil || *got != `{"key":"s3cret","owner":7, "to": "x"}` {
		t.Errorf("got %s, %v", *got, failure)
	}
	*got = ""
	if _, failure := invokeAs(tool, `{"to":"x"}`, user.Value(7)); failure == nil || failure.Code != invoker.Unauthorized ||
		!strings.Contains(failure.Message, "token") {
		t.Errorf("got %v", failure)
	}
	for arguments, want := range map[string]string{
		`{"to":"x","OWNER":8}`: "user_id", `{"owner":8`: "user_id", `{"to":"x","user_id":8}`: "user_id", `{"key":"","Token":1}`: "token",
	} {
		var forged *invoker.Forged
		if _, failure := invokeAs(tool, arguments, values...); !errors.As(failure, &forged) || !slices.Equal(forged.Names, []string{want}) {
			t.Errorf("%s: got %v", arguments, failure)
		}
	}
	_, failure := invokeAs(tool, `{"tu":"x"}`, values...)
	if failure == nil || failure.Code != invoker.InvalidArguments || strings.Contains(failure.Message, "owner") {
		t.Errorf("got %v", failure)
	}
	// A value that the tool cannot take is not the model's fault, and not its to see.
	for _, bad := range []invoker.Value{
		invoker.NewTrusted[string]("user_id").Value("5551\xff"), invoker.NewTrusted[json.RawMessage]("user_id").Value([]byte(`5551,"to":"y"`)),
		invoker.TrustedJSON("user_id", json.RawMessage(`-5551`)), invoker.NewTrusted[chan int]("user_id").Value(nil),
		invoker.TrustedJSON("user_id", json.RawMessage(`{"a":1,"a":5551}`)),
	} {
		_, failure = invokeAs(tool, `{"to":"x"}`, bad, token.Value("s"))
		if failure == nil || failure.Code != invoker.Internal || failure.Cause == nil || strings.Contains(failure.Message+failure.Cause.Error(), "5551") {
			t.Errorf("got %v", failure)
		}
	}
	if *got != "" {
		t.Errorf("the tool ran with %s", *got)
	}
}

// The tool's own check of all the arguments would show the values.
func TestFillDoesNotShowTheValueAmongOthers(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"owner":{},"to":{}},"enum":[{"to":"x","owner":1},{"to":"x"}]}`,
		`{"properties":{"owner":{},"to":{}},"const":{"to":"x"}}`,
		`{"properties":{"owner":{},"to":{}},"anyOf":[{"const":{"to":"x","owner":1}},{"const":{"to":"x"}}]}`,
		`{"properties":{"owner":{},"to":{}},"dependentSchemas":{"owner":{"const":5}}}`,
		`{"properties":{"owner":{},"to":{}},"patternProperties":{"^o":{"enum":[1]}}}`,
		`{"properties":{"owner":false,"to":{}}}`,
	} {
		tool, err := invoker.Fill(raw(t, schema), map[string]string{"owner": "user_id"})
		if err != nil {
			t.Fatal(err)
		}
		got, failure := invokeAs(tool, `{"to":"x"}`, user.Value(98765))
		if got != "" || failure == nil || failure.Code != invoker.Internal || strings.Contains(fmt.Sprint(failure.Message, failure.Cause), "98765") {
			t.Errorf("%s: got %s, %v", schema, got, failure)
		}
	}
}

func TestWithhold(t *testing.T) {
	for _, schema := range []string{
		`{}`, `{"properties":{"Owner":{}}}`, `{"patternProperties":{"^owner$":{}}}`, `{"$ref":"#x","$defs":{"y":{"$anchor":"x","properties":{"owner":{}}}}}`,
	} {
		tool, err := invoker.Withhold(raw(t, schema), map[string]string{"owner": "user_id"})
		if err != nil {
			t.Fatal(err)
		}
		if def := tool.Definition(); def.Takes("Owner") || def.Needs != nil {
			t.Errorf("got %s, needs %q", def.InputSchema, def.Needs)
		}
		for _, arguments := range []string{`{"owner":8}`, `{"OWNER":8}`, `{"a":1,"\u006fwner":8`} {
			var forged *invoker.Forged
			if got, failure := invokeAs(tool, arguments); got != "" || !errors.As(failure, &forged) || !slices.Equal(forged.Names, []string{"user_id"}) {
				t.Errorf("%s: %s: got %s, %v", schema, arguments, got, failure)
			}
		}
	}
	open, err := invoker.Withhold(raw(t, `{}`), map[string]string{"owner": "user_id"})
	if err != nil {
		t.Fatal(err)
	}
	if got, failure := invokeAs(open, `{"a":1}`); failure != nil || got != `{"a":1}` {
		t.Errorf("got %s, %v", got, failure)
	}
}

func TestFillEmptyArguments(t *testing.T) {
	inner := raw(t, `{"properties":{"a":{}}}`)
	tool, err := invoker.Fill(inner, map[string]string{"a": "user_id"})
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{``, `null`, `{}`, ` {  } `} {
		if got, failure := invokeAs(tool, arguments, user.Value(7)); failure != nil || strings.Join(strings.Fields(got), "") != `{"a":7}` {
			t.Errorf("%q: got %s, %v", arguments, got, failure)
		}
	}
}

func TestFillThatCannotBe(t *testing.T) {
	inner, _ := remote(t)
	if _, err := invoker.Fill(inner, map[string]string{"ownr": "user_id"}); err == nil || !strings.Contains(err.Error(), `"ownr"`) {
		t.Error(err)
	}
	if _, err := invoker.Fill(inner, map[string]string{"owner": ""}); err == nil || !strings.Contains(err.Error(), `"owner"`) {
		t.Error(err)
	}
	// What nobody fills, and nobody may send, would make each call fail.
	required := raw(t, `{"properties":{"a":{},"User_id":{}},"required":["User_id"]}`)
	const unsendable = `requires the argument "User_id", which callers may not send`
	if _, err := invoker.Fill(required, map[string]string{"a": "user_id"}); err == nil || !strings.Contains(err.Error(), unsendable) {
		t.Error(err)
	}
	if _, err := invoker.Require(required, "user_id"); err == nil || !strings.Contains(err.Error(), unsendable) {
		t.Error(err)
	}
	if _, err := invoker.Withhold(required, map[string]string{"user_id": "x"}); err == nil || !strings.Contains(err.Error(), unsendable) {
		t.Error(err)
	}
	// A member with another case requires nothing.
	for _, schema := range []string{`{"properties":{"user":{}},"Required":["user"]}`, `{"properties":{"user":{}},"required":[],"REQUIRED":["user"]}`} {
		if _, err := invoker.Withhold(raw(t, schema), map[string]string{"user": "x"}); err != nil {
			t.Error(err)
		}
	}
	if same, err := invoker.Fill(inner, nil); err != nil || !reflect.DeepEqual(same, inner) {
		t.Errorf("got %v, %v", same, err)
	}
}

func TestRequire(t *testing.T) {
	inner, got := remote(t)
	tool, err := invoker.Require(inner, "user_id")
	if err != nil {
		t.Fatal(err)
	}
	const arguments = `{"to":"x","owner":3}`
	if _, failure := invokeAs(tool, arguments); failure == nil || failure.Code != invoker.Unauthorized || *got != "" {
		t.Errorf("got %s, %v", *got, failure)
	}
	if _, failure := invokeAs(tool, arguments, user.Value(7), invoker.NewTrusted[*int]("user_id").Value(nil)); failure == nil ||
		failure.Code != invoker.Unauthorized || *got != "" {
		t.Errorf("a nil pointer: got %s, %v", *got, failure)
	}
	if _, failure := invokeAs(tool, arguments, user.Value(7)); failure != nil || *got != arguments {
		t.Errorf("got %s, %v", *got, failure)
	}
	if _, err := invoker.Require(inner, ""); err == nil {
		t.Error("no error for a need without a name")
	}
}

func TestTrustedValuesDoNotShow(t *testing.T) {
	v := token.Value("s3cret")
	text, err := json.Marshal(v)
	shown := fmt.Sprintf("%v %+v %#v %s %q %x %s", v, v, v, v, v, &v, text)
	if err != nil || strings.Contains(shown, "s3cret") || strings.Contains(shown, "7333637265") {
		t.Errorf("%s, %v", shown, err)
	}
	// Package fmt calls no methods on what is in unexported fields.
	hidden := struct {
		v  invoker.Value
		vs []invoker.Value
		m  map[string]invoker.Value
	}{v, []invoker.Value{v}, map[string]invoker.Value{"a": v}}
	ctx := invoker.WithTrusted(context.Background(), v)
	if shown := fmt.Sprintf("%v %+v %#v %+v %+v", hidden, &hidden, hidden, []any{hidden}, ctx); strings.Contains(shown, "s3cret") {
		t.Error(shown)
	}
	if !v.IsSecret() || user.Value(1).IsSecret() || !user.Value(1).Secret().IsSecret() {
		t.Error("secrets are not marked")
	}
	if got, err := v.Reveal(); err != nil || string(got) != `"s3cret"` {
		t.Errorf("got %s, %v", got, err)
	}
	ctx = invoker.WithTrusted(invoker.WithTrusted(context.Background(), user.Value(1), tenant.Value("a")), user.Value(2))
	if got := fmt.Sprint(invoker.TrustedFrom(ctx)); got != "[tenant=[trusted] user_id=[trusted]]" {
		t.Error(got)
	}
	if id, ok := user.From(ctx); !ok || id != 2 {
		t.Errorf("got %d, %v", id, ok)
	}
}

// A schema that combines very many schemas is refused quickly: no argument can be hidden in it.
func TestHiddenPropertiesOfManySchemas(t *testing.T) {
	fill := func(schema string) (invoker.Invoker, error) {
		tool, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: json.RawMessage(schema)}, echo, nil)
		if err != nil {
			t.Fatal(err)
		}
		return invoker.Fill(tool, map[string]string{"user_id": "user"})
	}
	forms := func(n int) string {
		return `{"type":"object","allOf":[` + strings.Repeat(`{},`, n) + `{"properties":{"user_id":{}}}]}`
	}
	began := time.Now()
	for name, schema := range map[string]string{
		"many": forms(9900),
		"deep": `{"type":"object","allOf":[` + strings.Repeat(`{"allOf":[`, 60) + `{"properties":{"user_id":{}}}` + strings.Repeat(`]}`, 60) + `]}`,
	} {
		if _, err := fill(schema); err == nil || !strings.Contains(err.Error(), "combines more than 1000 schemas for the arguments, or nests them too deeply") {
			t.Errorf("%s: %v", name, err)
		}
	}
	tool, err := fill(forms(998))
	if err != nil || strings.Contains(string(tool.Definition().InputSchema), "user_id") {
		t.Errorf("998 forms: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
