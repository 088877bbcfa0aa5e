// SPDX-License-Identifier: Apache-2.0

package forms

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFormFields(t *testing.T) {
	fields, err := Fields(json.RawMessage(`{"type":"object","required":["name"],"properties":{
		"name": {"type":"string","title":"Your name","minLength":2,"maxLength":5},
		"age":  {"type":"integer","minimum":18,"maximum":99},
		"size": {"type":"string","enum":["S","M"],"default":"M"},
		"tone": {"oneOf":[{"const":"red","title":"Red"},{"const":"blue"}]},
		"days": {"type":"array","items":{"anyOf":[{"const":"mon"},{"const":"tue"}]}},
		"born": {"type":"string","format":"date"},
		"at":   {"type":"string","format":"date-time"},
		"mail": {"type":"string","format":"email"},
		"page": {"type":"string","format":"uri"},
		"code": {"type":"string","format":"of ours"},
		"seat": {"type":"string","pattern":"^[0-9]+[A-F]$","default":"12"},
		"two":  {"type":"array","minItems":2,"maxItems":2,"items":{"enum":["a","b","c"],"enumNames":["Alpha","Beta"]},"default":["a","c"]},
		"note": {"type":"string","default":"fix: x\n\n\ty"},
		"sure": {"type":"boolean"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var prompts []string
	byName := map[string]Field{}
	for _, f := range fields {
		prompts = append(prompts, f.Prompt())
		byName[f.Name] = f
	}
	want := "Your name: |age optional: |size [S, M] default M: |tone [red (Red), blue] optional: |days [some of mon, tue] optional: |born [such as 2026-11-22] optional: |at [such as 2026-11-22T15:04:05Z] optional: |mail [such as ann@example.com] optional: |page [such as https://example.com/] optional: |code optional: |seat optional: |two [some of a (Alpha), b (Beta), c] default a, c: |note default fix: x<U+000A><U+000A><U+0009>y: |sure [y/n] optional: "
	if got := strings.Join(prompts, "|"); got != want {
		t.Errorf("the prompts are %q,\nwant %q", got, want)
	}
	for _, test := range []struct {
		field, answer string
		want          any
		wrong         string // part of the complaint
	}{
		{"name", "Ada", "Ada", ""},
		{"name", "", nil, "required"},
		{"name", "A", nil, "at least 2"},
		{"name", "Adalbert", nil, "at most 5"},
		{"age", "42", 42.0, ""},
		{"age", "", nil, ""},
		{"age", "4.5", nil, "whole"},
		{"age", "x", nil, "not a number"},
		{"age", "NaN", nil, "not a"},
		{"age", "3", nil, "at least 18"},
		{"age", "100", nil, "at most 99"},
		{"size", "", "M", ""},
		{"size", "XL", nil, "S, M"},
		{"tone", "blue", "blue", ""},
		{"tone", "Red", "red", ""},
		{"tone", "Blue", nil, "red (Red), blue"},
		{"days", "mon, tue", []any{"mon", "tue"}, ""},
		{"days", "sun", nil, "sun"},
		{"born", "Ann", nil, "not a date, such as 2026-11-22"},
		{"born", "2026-02-30", nil, "not a date"},
		{"born", "2026-02-28", "2026-02-28", ""},
		{"at", "2026-02-28", nil, "not a date and time"},
		{"at", "2026-02-28T10:00:00+02:00", "2026-02-28T10:00:00+02:00", ""},
		{"mail", "Ann <ann@example.com>", nil, "not an email"},
		{"mail", "ann@example.com", "ann@example.com", ""},
		{"page", "example.com", nil, "not a URI"},
		{"page", "urn:isbn:1", "urn:isbn:1", ""},
		{"code", "anything", "anything", ""},
		{"seat", "12A", "12A", ""},
		{"seat", "A", nil, "does not match"},
		{"two", "", []any{"a", "c"}, ""},
		{"two", "Beta, c", []any{"b", "c"}, ""},
		{"two", "a", nil, "at least 2"},
		{"two", "a, b, c", nil, "at most 2"},
		{"two", "a, Alpha", nil, "twice"},
		{"sure", "Y", true, ""},
		{"sure", "no", false, ""},
		{"sure", "perhaps", nil, "y or n"},
	} {
		field := byName[test.field]
		got, err := field.Parse(test.answer)
		if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s %q: error %v, want %q", test.field, test.answer, err, test.wrong)
		} else if err == nil && !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s %q: %v, want %v", test.field, test.answer, got, test.want)
		}
	}
}

// An integer stays as the person has typed it, also beyond 2^53.
// A member whose name differs from a keyword in case is not the keyword, at any depth.
func TestCaseOfKeywords(t *testing.T) {
	fields, err := Fields(json.RawMessage(`{"required":["b"],"Required":["a"],"properties":{
		"a":{"type":"string","Type":"integer","minLength":2,"MinLength":"x","default":"ab","Default":3,"oneOf":[{"const":"ab","Const":1,"title":"A","TITLE":"B"}]},
		"b":{"type":"array","items":{"enum":["x"],"Enum":["y"]}}},
		"Properties":{"c":{}}}`))
	if err != nil || len(fields) != 2 {
		t.Fatalf("%+v, %v", fields, err)
	}
	a, b := fields[0], fields[1]
	if a.Required || !b.Required || a.Type != "string" || *a.MinLength != 2 || a.Default != "ab" || !slices.Equal(a.Choices(), []Choice{{"ab", "A"}}) || !slices.Equal(b.Choices(), []Choice{{"x", ""}}) {
		t.Errorf("%+v", fields)
	}
	if fields, err := Fields(json.RawMessage(`{"Properties":{"c":{}}}`)); err != nil || fields != nil {
		t.Errorf("%+v, %v", fields, err)
	}
}

func TestLargeIntegers(t *testing.T) {
	fields, err := Fields(json.RawMessage(`{"properties":{"n":{"type":"integer","minimum":0,"default":9007199254740993},"many":{"type":"number","default":1e400}}}`))
	if err != nil || fields[1].Default != nil {
		t.Fatalf("got %+v, %v", fields, err)
	}
	for text, want := range map[string]string{
		"9007199254740993": "9007199254740993", "9223372036854775807": "9223372036854775807", "": "9007199254740993", "12": "12",
	} {
		value, err := fields[0].Parse(text)
		if got, _ := json.Marshal(value); err != nil || string(got) != want || Text(value) != want {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
	if _, err := fields[0].Parse("-9007199254740993"); err == nil {
		t.Error("the minimum is not checked")
	}
}

// A pattern that takes long is left to the server.
func TestCostlyPatterns(t *testing.T) {
	for _, pattern := range []string{strings.Repeat("x{1000}", 3300), "(?:x?){900}y|(?:x?){900}z"} {
		field := Field{schema: schema{Type: "string", Pattern: pattern}}
		began := time.Now()
		if err := field.Check(strings.Repeat("x", 1<<20)); err != nil {
			t.Errorf("got %.100v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	}
}

// Forms come from servers: no form breaks the program, and every accepted answer can be
// sent.
func FuzzForm(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"array"},"b":{"type":"integer","default":[]}}}`, "1,2")
	f.Add(`{"properties":{"a":{"type":"number"}}}`, "Inf")
	f.Add(`{"properties":[]}`, "")
	f.Fuzz(func(t *testing.T, schema, answer string) {
		fields, err := Fields(json.RawMessage(schema))
		if err != nil {
			return
		}
		for _, field := range fields {
			if strings.Contains(field.Prompt(), "\x1b") {
				t.Errorf("the prompt is %q", field.Prompt())
			}
			if value, err := field.Parse(answer); err == nil {
				if _, err := json.Marshal(value); err != nil {
					t.Errorf("%v cannot be sent: %v", value, err)
				}
			}
		}
	})
}
