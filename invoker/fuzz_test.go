// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/consort-go/consort/invoker"
)

// checker validates the arguments of a function against the schema of its tool, with a
// library that the package does not use.
type checker struct {
	tool   invoker.Invoker
	schema *jsonschema.Resolved
	ran    bool
	faults []string
}

func (c *checker) see(text []byte) {
	c.ran = true
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		c.fault(err.Error())
	} else if err := c.schema.Validate(value); err != nil {
		c.fault(err.Error())
	}
}

func (c *checker) fault(text string) { c.faults = append(c.faults, text) }

// watch checks the tool, whose definition has the schema.
func (c *checker) watch(f *testing.F, tool invoker.Invoker, err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(tool.Definition().InputSchema, &schema); err != nil {
		f.Fatal(err)
	}
	c.tool = tool
	if c.schema, err = schema.Resolve(nil); err != nil {
		f.Fatal(err)
	}
}

// typedChecker is of a Go function, whose argument is written as JSON again.
func typedChecker[In any](f *testing.F, opts *invoker.Options, judge func(ctx context.Context, in In) string) *checker {
	c := &checker{}
	tool, err := invoker.New("t", "", func(ctx context.Context, in In) (struct{}, error) {
		text, err := json.Marshal(in)
		if err != nil {
			c.fault(err.Error())
		}
		c.see(text)
		if judge != nil {
			if fault := judge(ctx, in); fault != "" {
				c.fault(fault)
			}
		}
		return struct{}{}, nil
	}, opts)
	c.watch(f, tool, err)
	return c
}

// rawChecker is of a function that takes JSON.
func rawChecker(f *testing.F, schema string) *checker {
	c := &checker{}
	tool, err := invoker.Raw(invoker.Definition{Name: "t", InputSchema: json.RawMessage(schema)},
		func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
			c.see(call.Arguments)
			return invoker.Output{}, nil
		}, nil)
	c.watch(f, tool, err)
	return c
}

type measured struct {
	Part  float64            `json:"part,omitempty" exclusiveMinimum:"0" exclusiveMaximum:"1"`
	Small float32            `json:"small,omitempty" exclusiveMinimum:"0"`
	Byte  uint8              `json:"byte,omitempty" minimum:"3"`
	Exact int64              `json:"exact,omitempty"`
	By    map[string]float64 `json:"by,omitempty"`
	Any   any                `json:"any,omitempty"`
}

type personal struct {
	UserID int64  `json:"user_id,omitempty"`
	Title  string `json:"title" minLength:"1" maxLength:"500" pattern:"\\S"`
}

func allCheckers(f *testing.F) []*checker {
	orders := typedChecker(f, nil, func(_ context.Context, o order) string {
		if o.Mail != "" && !strings.Contains(o.Mail, "@") {
			return "mail: " + o.Mail
		}
		if o.Cups == 0 || o.Table.Row == "" || o.Until.IsZero() {
			return "no default"
		}
		return ""
	})
	own := typedChecker[query](f, &invoker.Options{InputSchema: json.RawMessage(`{
		"properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "minimum": 1, "maximum": 7},
			"unit": {"enum": ["c", "f"]}, "area": {"properties": {"wide": {"exclusiveMaximum": 9}}}},
		"required": ["city"]}`)}, nil)
	person := typedChecker(f, &invoker.Options{Needs: []invoker.Need{user}}, func(ctx context.Context, in personal) string {
		if id, ok := user.From(ctx); !ok || id != 7 || in.UserID != 7 {
			return fmt.Sprintf("user %d, field %d", id, in.UserID)
		}
		return ""
	})
	// The published schema has no user_id; the function receives one.
	var err error
	person.schema, err = (&jsonschema.Schema{
		Properties: map[string]*jsonschema.Schema{"title": {Type: "string", MinLength: new(1), MaxLength: new(500), Pattern: `\S`}},
		Required:   []string{"user_id", "title"},
	}).Resolve(nil)
	if err != nil {
		f.Fatal(err)
	}
	filled := rawChecker(f,
		`{"properties":{"a":{"type":"string"},"owner":{"const":7},"list":{"type":"array","items":{"enum":["x",1,null]},"maxItems":3}},"required":["owner"]}`)
	if filled.tool, err = invoker.Fill(filled.tool, map[string]string{"owner": "user_id"}); err != nil {
		f.Fatal(err)
	}
	return []*checker{
		orders, own, person, filled,
		typedChecker[query](f, nil, nil),
		typedChecker[measured](f, nil, nil),
		typedChecker[map[string]int8](f, nil, nil),
		rawChecker(f, weatherSchema),
		rawChecker(f,
			`{"additionalProperties":{"type":"array","prefixItems":[{"minimum":3},{"pattern":"^a+$"}],"items":{"multipleOf":2}},`+
				`"maxProperties":2,"propertyNames":{"maxLength":3}}`),
	}
}

// Whatever the arguments are, the function sees only what its schema allows.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `{"city":"Oslo"}`, `{"city":"Oslo","days":3.0,"unit":"c"}`, `{"city":"Oslo","UNIT":"k"}`,
		`{"city":"Oslo","unit":"c","unit":"k"}`, `{"city":"Oslo","days":1e400}`, `{"city":"Oslo","area":{"wide":1,"spots":[{"name":"a"},null]}}`,
		`{"city":"Oslo","area":null}`, `[[[[`, `{"city":"\ud800"}`, `{"city":"Oslo","unıt":"k","ſpots":1}`, "{\"city\":\"\xff\"}",
		`{"kind":"tea","cups":3,"name":"ab","mail":"a@b.de","sugar":0.5,"extras":["milk"],"size":4,"table":{},"seats":[{"row":"c"}],` +
			`"notes":{"x":{"wide":null}}}`,
		`{"kind":"tea","cups":null,"size":null,"until":"2026-01-02T03:04:05Z","Kind":"x"}`, `{"part":0.99999999999999999999}`, `{"small":1e-60,"by":{"a":0.1}}`,
		`{"byte":255.0,"exact":9007199254740993,"any":{"a":[1e300]}}`, `{"title":"x"}`, `{"title":"x","user_id":8}`, `{"title":"x","u\u017fer_id":8}`,
		`{"a":"x","list":["x",1.0,null]}`, `{"owner":7}`, `{"OWNER":8,"a":1}`, `{"a":[3,"aa",4,-2.0]}`,
		`{"__proto__":{"user_id":1},"constructor":2}`, `{"when":3.0,"city":"Oslo"}`, `{"part":0E99999999999999999999}`,
	} {
		f.Add([]byte(seed))
	}
	ctx := invoker.WithTrusted(context.Background(), user.Value(7))
	checkers := allCheckers(f)
	f.Fuzz(func(t *testing.T, arguments []byte) {
		for i, c := range checkers {
			c.ran, c.faults = false, nil
			start := time.Now()
			_, err := c.tool.Invoke(ctx, &invoker.Call{Arguments: arguments})
			if c.ran != (err == nil) {
				t.Fatalf("%d: %q: the function ran: %v, error: %v", i, arguments, c.ran, err)
			}
			if err != nil {
				checkFailure(t, invoker.AsFailure(err))
			}
			for _, fault := range c.faults {
				t.Errorf("%d: %q: the function saw what its schema does not allow: %s", i, arguments, fault)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%d: %q took %v", i, arguments, took)
			}
		}
	})
}

// Whatever text is read, a failure comes of it that can be written and read
// again, or none.
func FuzzFailureFrom(f *testing.F) {
	f.Add([]byte(`{"error":{"code":"NOT_FOUND","message":"m","retryable":true,"pointer":"/id","retry_after_ms":1000}}`))
	f.Add([]byte(`{"error":{"code":"NOT_FOUND","message":"m","retry_after_ms":-1}}`))
	f.Add([]byte(`{"error":{"code":"ODD","message":"m"}}`))
	f.Add([]byte(`{"error":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		failure, ok := invoker.FailureFrom(text)
		if ok != (failure != nil) {
			t.Fatalf("%q: %v, %v", text, failure, ok)
		}
		if !ok {
			return
		}
		again, ok := invoker.FailureFrom(failure.Structured().JSON)
		if !ok || !reflect.DeepEqual(again, failure) {
			t.Errorf("%q: %+v became %+v", text, failure, again)
		}
	})
}

// For every schema and every arguments, making and calling a tool succeeds or fails with
// a readable error.
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
