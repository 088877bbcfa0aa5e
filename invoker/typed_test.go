// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

type unit string

func (unit) JSONSchema() string { return `{"type":"string","enum":["c","f"]}` }

type days int

func (*days) JSONSchema() string { return `{"type":"integer","minimum":1,"maximum":7}` }

type query struct {
	City string `json:"city" jsonschema:"the city's name"`
	Days days   `json:"days,omitempty"`
	Unit unit   `json:"unit,omitempty"`
	Area *area  `json:"area,omitempty"`
}

type area struct {
	Wide  int64              `json:"wide"`
	Spots []spot             `json:"spots,omitempty"`
	Tags  map[string]float64 `json:"tags,omitempty"`
}

type spot struct {
	Name string `json:"name"`
}

func take[In any](t testing.TB, opts *invoker.Options) (invoker.Invoker, *In) {
	t.Helper()
	got := new(In)
	tool, err := invoker.New("t", "", func(_ context.Context, in In) (struct{}, error) {
		*got = in
		return struct{}{}, nil
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tool, got
}

func TestTypedArguments(t *testing.T) {
	tool, got := take[query](t, nil)
	for _, test := range []struct {
		arguments string
		want      query
		problem   string // empty if there is none
	}{
		{arguments: `{"city":"Oslo"}`, want: query{City: "Oslo"}},
		{
			arguments: `{"city":"Oslo","days":3.0,"area":{"wide":3e2,"tags":{"a":1.50}}}`,
			want:      query{City: "Oslo", Days: 3, Area: &area{Wide: 300, Tags: map[string]float64{"a": 1.5}}},
		},
		{arguments: `{"city":"Oslo","area":{"wide":9007199254740993}}`, want: query{City: "Oslo", Area: &area{Wide: 9007199254740993}}},
		{arguments: `{}`, problem: `/city: is missing (required)`},
		{arguments: `{"city":"Oslo","days":8}`, problem: `/days: 8 is greater than the maximum 7`},
		{arguments: `{"city":"Oslo","unit":"k"}`, problem: `/unit: "k" is not one of "c", "f"`},
		{arguments: `{"city":"Oslo","UNIT":"k"}`, problem: `/UNIT: is not a known property; the known ones are area, city, days, unit (did you mean unit?)`},
		{arguments: `{"city":"Oslo","area":{"wide":99999999999999999999}}`, problem: `/area/wide: number 99999999999999999999 does not fit into int64`},
	} {
		*got = query{}
		_, failure := invoke(t, tool, test.arguments)
		if test.problem != "" {
			if failure == nil || failure.Code != invoker.InvalidArguments || !strings.HasSuffix(failure.Message, "\n"+test.problem) {
				t.Errorf("%s: got %v, want %s", test.arguments, failure, test.problem)
			}
			if !reflect.DeepEqual(*got, query{}) {
				t.Errorf("%s: the function ran", test.arguments)
			}
			continue
		}
		if failure != nil || !reflect.DeepEqual(*got, test.want) {
			t.Errorf("%s: got %+v, %v", test.arguments, *got, failure)
		}
	}
}

func TestInferredSchema(t *testing.T) {
	tool, _ := take[query](t, nil)
	const want = `{"type":"object","properties":{"city":{"type":"string","description":"the city's name"},` +
		`"days":{"type":"integer","minimum":1,"maximum":7},"unit":{"type":"string","enum":["c","f"]},` +
		`"area":{"type":["null","object"],"properties":{"wide":{"type":"integer"},"spots":{"type":["null","array"],` +
		`"items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}},` +
		`"tags":{"type":["null","object"],"additionalProperties":{"type":"number"}}},"required":["wide"],"additionalProperties":false}},` +
		`"required":["city"],"additionalProperties":false}`
	if got := string(tool.Definition().InputSchema); got != want {
		t.Errorf("got %s", got)
	}
	first := string(tool.Definition().InputSchema)
	for range 20 {
		again, _ := take[query](t, nil)
		if string(again.Definition().InputSchema) != first {
			t.Fatal("the schema differs from start to start")
		}
	}
	empty, _ := take[struct{}](t, nil)
	if got := string(empty.Definition().InputSchema); !strings.Contains(got, `"properties":{}`) {
		t.Errorf("no properties member in %s", got)
	}
}

type wide struct {
	At    time.Time       `json:"at"`
	Bytes []byte          `json:"bytes"`
	Addr  netip.Addr      `json:"addr"`
	Any   json.RawMessage `json:"any"`
	Big   *big.Int        `json:"big"`
	Float big.Float       `json:"float"`
}

// What a type looks like in JSON is what its schema says, both ways.
func TestTypesWithJSONOfTheirOwn(t *testing.T) {
	in := wide{
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Bytes: []byte{0, 255}, Addr: netip.MustParseAddr("::1"),
		Any: json.RawMessage(`[1]`), Big: big.NewInt(42), Float: *big.NewFloat(0.5),
	}
	tool, err := invoker.New("t", "", func(_ context.Context, in wide) (wide, error) { return in, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&in)
	if err != nil {
		t.Fatal(err)
	}
	output, err := tool.Invoke(context.Background(), &invoker.Call{Arguments: text})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(output.Content[0].(canister.StructuredContent).JSON); got != string(text) {
		t.Errorf("got %s\nwant %s", got, text)
	}
	for _, want := range []string{`"date-time"`, `"base64"`} {
		if !strings.Contains(string(tool.Definition().InputSchema), want) {
			t.Errorf("no %s in %s", want, tool.Definition().InputSchema)
		}
	}
	_, failure := invoke(t, tool, strings.Replace(string(text), "2026-01-02T", "soon", 1))
	if failure == nil || failure.Code != invoker.InvalidArguments {
		t.Errorf("a time that is none: %v", failure)
	}
}

func TestInputSchemaOfOnesOwn(t *testing.T) {
	opts := &invoker.Options{
		Title: "T", Exclusive: true, Hints: invoker.Hints{ReadOnly: true}, Metadata: canister.Fields{"k": json.RawMessage(`1`)},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"enum":["Oslo","Rome"]},"area":{"type":"object"}}}`),
	}
	tool, got := take[query](t, opts)
	def := tool.Definition()
	if string(def.InputSchema) != string(opts.InputSchema) || def.Title != "T" || !def.Exclusive || !def.Hints.ReadOnly || def.Metadata == nil {
		t.Errorf("got %+v", def)
	}
	if _, failure := invoke(t, tool, `{"city":"Rome"}`); failure != nil || got.City != "Rome" {
		t.Errorf("got %+v, %v", got, failure)
	}
	// Package json would take these for the fields, unchecked.
	for arguments, want := range map[string]string{
		`{"CITY":"Paris"}`:                          "/CITY: must be written city",
		`{"area":{"wide":1,"spots":[{"NAME":""}]}}`: "/area/spots/0/NAME: must be written name",
		`{"area":{"WIDE":1,"tags":{"WIDE":1}}}`:     "/area/WIDE: must be written wide",
		`{"area":{"wide":null}}`:                    "/area/wide: null does not fit into int64",
		`{"city":"Oslo","city":"Paris"}`:            "/city: is given twice",
	} {
		_, failure := invoke(t, tool, arguments)
		if failure == nil || !strings.HasSuffix(failure.Message, "schema:\n"+want) {
			t.Errorf("%s: got %v", arguments, failure)
		}
	}
	if _, failure := invoke(t, tool, `{"area":"wide"}`); failure == nil {
		t.Error("no failure")
	}
}

func TestMaps(t *testing.T) {
	tool, got := take[map[string]int](t, nil)
	if _, failure := invoke(t, tool, `{"a":1,"A":2}`); failure != nil || (*got)["A"] != 2 {
		t.Errorf("got %v, %v", *got, failure)
	}
	if _, failure := invoke(t, tool, `{"a":"1"}`); failure == nil {
		t.Error("no failure")
	}
}

type badDescriber struct{}

func (badDescriber) JSONSchema() string { return `{` }

type nullDescriber struct{}

func (nullDescriber) JSONSchema() string { return `null` }

type cyclic struct{ Next *cyclic }

type base struct {
	ID int `json:"id,omitempty"`
}

type Base struct{ base }

type Number int

// Fields that package json takes for something else than the schema says: the
// function would run without what the model wrote.
func TestFieldsThatAreNotWhatTheyLookLike(t *testing.T) {
	for want, err := range map[string]error{
		"has the name e in its json tag": tryIn[struct {
			Base `json:"e"`
		}](),
		"has the name - in its json tag": tryIn[struct {
			Base `json:"-"`
		}](),
		"pointer to an unexported type":   tryIn[struct{ *base }](),
		"is embedded and is not a struct": tryIn[struct{ Number }](),
		"has the option string in its json tag": tryIn[struct {
			N int `json:"n,string"`
		}](),
		"has the name id in JSON, as another field does": tryIn[struct {
			Base
			Own int `json:"id,omitempty"`
		}](),
		`has the name "🙂" in its json tag`: tryIn[struct {
			N struct {
				S string `json:"🙂,omitempty"`
			} `json:"n"`
		}](),
		"did not return a JSON Schema: it returned null": tryIn[struct{ N nullDescriber }](),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	type odd struct {
		Base
		A int `json:"$a.b-c/d"`
		C int `json:"-"`
		d int
	}
	tool, got := take[odd](t, nil)
	if _, failure := invoke(t, tool, `{"id":1,"$a.b-c/d":2}`); failure != nil || *got != (odd{Base{base{1}}, 2, 0, 0}) {
		t.Errorf("got %v, %v", *got, failure)
	}
}

// What does not go into its field is shown where it is, whoever says so.
func TestWhereArgumentsDoNotFit(t *testing.T) {
	type in struct {
		Data  []byte             `json:"data,omitempty"`
		Names []picky            `json:"names,omitempty"`
		Of    map[string][]*area `json:"of,omitempty"`
	}
	tool, _ := take[in](t, nil)
	for arguments, want := range map[string]string{
		`{"data":"!"}`:                                "/data: illegal base64 data at input byte 0",
		`{"data":"AA==","names":["x"]}`:               "/names/0: x is not picky",
		`{"of":{"a/b":[{"wide":3.0},{"wide":1e30}]}}`: "/of/a~1b/1/wide: number 1000000000000000000000000000000 does not fit into int64",
	} {
		_, failure := invoke(t, tool, arguments)
		if failure == nil || !strings.HasSuffix(failure.Message, "schema:\n"+want) || !strings.HasPrefix(want, failure.Pointer+": ") {
			t.Errorf("%s: got %v at %s, want %s", arguments, failure, failure.Pointer, want)
		}
	}
}

func TestTypesThatDoNotSuit(t *testing.T) {
	check := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `tool "t"`) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	check("string", tryIn[string](), "argument type is string; it must be a struct or a map")
	check("slice", tryIn[[]int](), "must be a struct or a map")
	check("pointer", tryIn[*query](), "must be a struct or a map")
	check("any", tryIn[any](), "interface {}; it must be a struct or a map")
	check("int keys", tryIn[map[int]int](), "must be a struct or a map")
	check("channel", tryIn[struct{ C chan int }](), "no schema for the argument type")
	check("cycle", tryIn[cyclic](), "cycle")
	check("describer", tryIn[struct{ B badDescriber }](), "JSONSchema")
	check("result", tryOut[chan int](), "no schema for the result type")
	check("pointer to content", tryOut[*canister.TextContent](), "content is returned by value")
	_, err := invoker.New[struct{}, string]("t", "", nil, nil)
	check("no function", err, "no function")
	if _, err := invoker.New("", "", func(context.Context, struct{}) (string, error) { return "", nil }, nil); err == nil {
		t.Error("no name: no error")
	}
}

func tryIn[In any]() error {
	_, err := invoker.New("t", "", func(context.Context, In) (string, error) { return "", nil }, nil)
	return err
}

func tryOut[Out any]() error {
	_, err := invoker.New("t", "", func(context.Context, struct{}) (out Out, err error) { return out, nil }, nil)
	return err
}

func result[Out any](t *testing.T, out Out) (schema string, output invoker.Output, failure *invoker.Failure) {
	t.Helper()
	tool, err := invoker.New("t", "", func(context.Context, struct{}) (Out, error) { return out, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	output, err = tool.Invoke(context.Background(), nil)
	return string(tool.Definition().OutputSchema), output, invoker.AsFailure(err)
}

func TestResultsBecomeContent(t *testing.T) {
	image := canister.ImageContent{Data: []byte{1}, MIME: "image/png"}
	type text string
	type report struct {
		Text string `json:"text"`
	}
	expect := func(what string, want []canister.Content, structured bool) func(string, invoker.Output, *invoker.Failure) {
		return func(schema string, output invoker.Output, failure *invoker.Failure) {
			t.Helper()
			if failure != nil || !reflect.DeepEqual(output.Content, want) || (schema != "") != structured {
				t.Errorf("%s: got %v, %v, schema %s", what, output.Content, failure, schema)
			}
		}
	}
	json := func(s string) []canister.Content {
		return []canister.Content{canister.StructuredContent{JSON: []byte(s)}}
	}
	expect("string", canister.Texts("a"), false)(result(t, "a"))
	expect("named string", canister.Texts("a"), false)(result(t, text("a")))
	expect("content", []canister.Content{image}, false)(result[canister.Content](t, image))
	expect("a content", []canister.Content{image}, false)(result(t, image))
	expect("contents", []canister.Content{image, image}, false)(result(t, []canister.Content{image, image}))
	expect("output", []canister.Content{image}, false)(result(t, invoker.Output{Content: []canister.Content{image}}))
	expect("nothing", nil, false)(result(t, struct{}{}))
	expect("nil content", nil, false)(result[canister.Content](t, nil))
	expect("struct", json(`{"text":"<a&b>"}`), true)(result(t, report{"<a&b>"}))
	expect("pointer", json(`null`), true)(result[*report](t, nil))
	expect("slice", json(`[1,2]`), true)(result(t, []int{1, 2}))
	expect("number", json(`3`), true)(result(t, 3))
	expect("any struct", json(`{"text":""}`), false)(result[any](t, report{}))
	expect("any string", canister.Texts("a"), false)(result[any](t, "a"))
	expect("any nil", nil, false)(result[any](t, nil))
}

type liar struct{}

func (liar) JSONSchema() string { return `{"type":"object","required":["truth"]}` }

func TestResultsThatDoNotFit(t *testing.T) {
	if _, _, failure := result(t, liar{}); failure == nil || failure.Code != invoker.Protocol || !strings.Contains(failure.Message, "/truth: is missing") {
		t.Errorf("got %v", failure)
	}
	if _, _, failure := result(t, math.NaN()); failure == nil || failure.Code != invoker.Internal {
		t.Errorf("got %v", failure)
	}
}

type level string

func (level) JSONSchema() string { return `{"enum":["low","high"]}` }

func TestPointersToDescribers(t *testing.T) {
	tool, got := take[struct {
		Level *level `json:"level,omitempty"`
	}](t, nil)
	if _, failure := invoke(t, tool, `{"level":"low"}`); failure != nil || *got.Level != "low" {
		t.Errorf("got %v", failure)
	}
	if _, failure := invoke(t, tool, `{"level":"mid"}`); failure == nil {
		t.Error("no failure")
	}
}

type panicky struct{}

func (*panicky) UnmarshalJSON([]byte) error { panic("no") }

func TestPanicWhileDecoding(t *testing.T) {
	tool, _ := take[struct{ P panicky }](t, nil)
	if _, failure := invoke(t, tool, `{"P":1}`); failure == nil || failure.Code != invoker.Internal {
		t.Errorf("got %v", failure)
	}
}

// A number is checked as the function gets it.
func TestNumbersAreCheckedAsTheyAreHeld(t *testing.T) {
	type in struct {
		Part  float64            `json:"part,omitempty" exclusiveMaximum:"1"`
		Small *float32           `json:"small,omitempty" exclusiveMinimum:"0"`
		Parts map[string]float64 `json:"parts,omitempty"`
		List  []float32          `json:"list,omitempty" exclusiveMaximum:"1"`
	}
	tool, got := take[in](t, nil)
	for arguments, want := range map[string]string{
		`{"part":0.99999999999999999999}`: "/part: 1 is not less than 1",
		`{"small":1e-60}`:                 "/small: 0 is not greater than 0",
		`{"list":[0.5,0.9999999999]}`:     "/list/1: 1 is not less than 1",
	} {
		*got = in{}
		if _, failure := invoke(t, tool, arguments); failure == nil || !strings.HasSuffix(failure.Message, "schema:\n"+want) || !reflect.DeepEqual(*got, in{}) {
			t.Errorf("%s: got %+v, %v", arguments, *got, failure)
		}
	}
	if _, failure := invoke(t, tool, `{"part":0.1,"small":0.1,"parts":{"a":0.30000000000000000001},"list":[1e-1]}`); failure != nil || got.Part != 0.1 ||
		*got.Small != 0.1 || got.Parts["a"] != 0.3 {
		t.Errorf("got %+v, %v", *got, failure)
	}
	open, _ := take[map[string]any](t, &invoker.Options{InputSchema: json.RawMessage(`{"additionalProperties":{"items":{"exclusiveMaximum":1}}}`)})
	if _, failure := invoke(t, open, `{"a":[0.99999999999999999999]}`); failure == nil || failure.Pointer != "/a/0" {
		t.Errorf("got %v", failure)
	}
}

type labelled struct {
	Name   string                    `json:"name"`
	Tags   map[string]string         `json:"tags"`
	Nested map[string]map[string]int `json:"nested,omitempty"`
	List   []map[string]int          `json:"list,omitempty"`
	Amount json.Number               `json:"amount" minimum:"0"`
	Other  *json.Number              `json:"other,omitempty"`
}

// What package json reads and writes of maps and numbers, a tool takes and gives.
func TestNilMapsAndNumbers(t *testing.T) {
	tool, err := invoker.New("t", "", func(_ context.Context, in labelled) (labelled, error) { return in, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		`{"name":"a","tags":null,"amount":1.5}`:                  `{"name":"a","tags":null,"amount":1.5}`,
		`{"name":"a","tags":{},"amount":12345678901234567890.5}`: `{"name":"a","tags":{},"amount":12345678901234567890.5}`,
		`{"name":"a","tags":{"x":"y"},"amount":1e3,"nested":{"b":null},"list":[null,{}]}`: `{"name":"a","tags":{"x":"y"},` +
			`"nested":{"b":null},"list":[null,{}],"amount":1e3}`,
		`{"name":"a","tags":null,"amount":3.0,"other":-7}`: `{"name":"a","tags":null,"amount":3.0,"other":-7}`,
		`{"name":"a","tags":null,"amount":0,"other":null}`: `{"name":"a","tags":null,"amount":0}`,
	} {
		output, err := tool.Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(arguments)})
		if err != nil {
			t.Errorf("%s: %v", arguments, err)
			continue
		}
		if got := string(output.Content[0].(canister.StructuredContent).JSON); got != want {
			t.Errorf("%s came back as %s, want %s", arguments, got, want)
		}
	}
	for arguments, want := range map[string]string{
		`{"name":"a","tags":null,"amount":"1.5"}`: `/amount: "1.5" (a string) is not a number`,
		`{"name":"a","tags":null,"amount":-1}`:    `/amount: -1 is less than the minimum 0`,
		`{"name":"a","tags":[],"amount":1}`:       `/tags: an array is not one of null, an object`,
		`{"name":"a","amount":1}`:                 `/tags: is missing (required)`,
	} {
		if _, failure := invoke(t, tool, arguments); failure == nil || !strings.Contains(failure.Message, want) {
			t.Errorf("%s: %v, want %s", arguments, failure, want)
		}
	}
}

func TestANilMapIsAnEmptyResult(t *testing.T) {
	tool, err := invoker.New("t", "", func(context.Context, map[string]any) (map[string]int, error) { return nil, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	output, err := tool.Invoke(t.Context(), nil)
	if err != nil || string(output.Content[0].(canister.StructuredContent).JSON) != `{}` {
		t.Errorf("%v, %v", output, err)
	}
	for _, schema := range []json.RawMessage{tool.Definition().InputSchema, tool.Definition().OutputSchema} {
		if !strings.HasPrefix(string(schema), `{"type":"object"`) {
			t.Errorf("the schema is %s", schema)
		}
	}
}
