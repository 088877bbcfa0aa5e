// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The explanation of very many unknown members costs little, and has the first ones.
func TestExplainVeryManyMembers(t *testing.T) {
	const form = `{"type":"object","additionalProperties":false,"properties":{"name_00000x":{},"size":{}}}`
	object, objects := map[string]any{}, []any{}
	for i := range 200_000 {
		object[fmt.Sprintf("name_%06d", i)] = nil
	}
	for range 20_000 {
		objects = append(objects, map[string]any{"nam/_00000x": true})
	}
	const known = "is not a known property; the known ones are name_00000x, size (did you mean name_00000x?)"
	for name, test := range map[string]struct {
		schema string
		value  any
		allocs float64
		first  string
		more   int
	}{
		"one object": {form, object, 10_000, "/name_000000: " + known, 199_990},
		"ten forms": {
			`{"oneOf":[` + strings.Repeat(form+",", 9) + form + `]}`, object, 100_000,
			"arguments: fits none of the 10 allowed forms (the other lines on it are for form 1, the nearest)", 199_991,
		},
		"many objects": {`{"items":` + form + `}`, objects, 300_000, "/0/nam~1_00000x: " + known, 19_990},
	} {
		c, err := newChecker(json.RawMessage(test.schema), true)
		if err != nil {
			t.Fatal(err)
		}
		broken, ok := errors.AsType[*jsonschema.ValidationError](c.validate(test.value))
		if !ok {
			t.Fatalf("%s: it is valid", name)
		}
		var violations []violation
		if allocs := testing.AllocsPerRun(1, func() { violations = explain(broken, test.value, c.doc) }); allocs > test.allocs {
			t.Errorf("%s: the explanation has %.0f allocations", name, allocs)
		}
		lines := strings.Split(report("arguments", violations), "\n")
		if len(lines) != maxViolations+2 || lines[1] != test.first || lines[11] != fmt.Sprintf("… and %d more", test.more) {
			t.Errorf("%s: it is %q", name, lines)
		}
		for _, line := range lines[2:11] {
			if !strings.Contains(line, known) {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

// Nulls of unknown members are left out, however many there are; the others are explained.
func TestExplainMembersBesideNulls(t *testing.T) {
	object := map[string]any{}
	for i := range 30 {
		object[fmt.Sprintf("a%02d", i)] = nil
		object[fmt.Sprintf("b%02d", i)] = i
	}
	c, err := newChecker(json.RawMessage(`{"additionalProperties":false,"properties":{"size":{}}}`), true)
	if err != nil {
		t.Fatal(err)
	}
	tool := &tool{input: c}
	_, without, left := tool.withoutNulls(object, tool.check(object))
	if len(without) != 30 || len(left) != 30 {
		t.Fatalf("%d members and %d violations are left", len(without), len(left))
	}
	for i, line := range strings.Split(report("arguments", left), "\n")[1:11] {
		if want := fmt.Sprintf("/b%02d: is not a known property; the known ones are size", i); line != want {
			t.Errorf("line %d is %q, want %q", i, line, want)
		}
	}
}

// Arguments whose unknown members are all null are accepted without them, also if there are more than are explained.
func TestVeryManyNulls(t *testing.T) {
	for _, surplus := range []map[string]any{nil, {"z": 1}, {"a": 1}} {
		object := map[string]any{"size": 1}
		for i := range maxNamed + 500 {
			object[fmt.Sprintf("m/%04d", i)] = nil
		}
		maps.Copy(object, surplus)
		c, err := newChecker(json.RawMessage(`{"additionalProperties":false,"properties":{"size":{}}}`), true)
		if err != nil {
			t.Fatal(err)
		}
		tool := &tool{input: c}
		_, without, left := tool.withoutNulls(object, tool.check(object))
		if len(without) != 1+len(surplus) || len(left) != len(surplus) {
			t.Errorf("beside %v: %d members and %d violations are left", surplus, len(without), len(left))
		}
	}
}
