// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker"
)

type order struct {
	Kind   string    `json:"kind" enum:"tea, coffee" description:"what to pour"`
	Cups   int       `json:"cups,omitempty" minimum:"1" maximum:"9" default:"1"`
	Name   string    `json:"name,omitempty" minLength:"2" maxLength:"4" pattern:"^[a-z]+$"`
	Mail   string    `json:"mail,omitempty" format:"email"`
	Sugar  *float64  `json:"sugar,omitempty" exclusiveMinimum:"0" exclusiveMaximum:"1" multipleOf:"0.25"`
	Extras []string  `json:"extras,omitempty" enum:"milk,lemon" minItems:"1" maxItems:"2" uniqueItems:"true"`
	Size   *int      `json:"size,omitempty" enum:"1,2,4"`
	Table  seat      `json:"table" default:"{}" title:"Where"`
	Seats  []seat    `json:"seats,omitempty"`
	Notes  notes     `json:"notes,omitempty" maxProperties:"2"`
	Until  time.Time `json:"until,omitzero" default:"2026-01-02T03:04:05Z"`
}

type notes map[string]seat

type seat struct {
	Row  string `json:"row" default:"a,b" enum:"[\"a,b\",\"c\"]"`
	Wide *bool  `json:"wide,omitempty" default:"true"`
}

func TestTags(t *testing.T) {
	tool, _ := take[order](t, nil)
	const seatSchema = `{"type":"object","properties":{"row":{"type":"string","default":"a,b","enum":["a,b","c"]},` +
		`"wide":{"type":["null","boolean"],"default":true}},"additionalProperties":false}`
	want := `{"type":"object","properties":{` +
		`"kind":{"type":"string","description":"what to pour","enum":["tea","coffee"]},` +
		`"cups":{"type":"integer","default":1,"minimum":1,"maximum":9},` +
		`"name":{"type":"string","minLength":2,"maxLength":4,"pattern":"^[a-z]+$"},` +
		`"mail":{"type":"string","format":"email"},` +
		`"sugar":{"type":["null","number"],"multipleOf":0.25,"exclusiveMinimum":0,"exclusiveMaximum":1},` +
		`"extras":{"type":["null","array"],"items":{"type":"string","enum":["milk","lemon"]},"minItems":1,"maxItems":2,"uniqueItems":true},` +
		`"size":{"type":["null","integer"],"enum":[1,2,4,null]},` +
		`"table":` + strings.Replace(seatSchema, `"object",`, `"object","title":"Where","default":{},`, 1) + `,` +
		`"seats":{"type":["null","array"],"items":` + seatSchema + `},` +
		`"notes":{"type":["null","object"],"additionalProperties":` + seatSchema + `,"maxProperties":2},` +
		`"until":{"type":"string","default":"2026-01-02T03:04:05Z","format":"date-time"}},` +
		`"required":["kind"],"additionalProperties":false}`
	var got, wanted any
	if err := json.Unmarshal(tool.Definition().InputSchema, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", tool.Definition().InputSchema, want)
	}
}

func TestTagsAreRules(t *testing.T) {
	tool, _ := take[order](t, nil)
	for arguments, want := range map[string]string{
		`{}`:                                            `/kind: is missing (required)`,
		`{"kind":"beer"}`:                               `/kind: "beer" is not one of "tea", "coffee"`,
		`{"kind":"tea","cups":0}`:                       `/cups: 0 is less than the minimum 1`,
		`{"kind":"tea","cups":10}`:                      `/cups: 10 is greater than the maximum 9`,
		`{"kind":"tea","name":"a"}`:                     `/name: has 1 character; at least 2 needed`,
		`{"kind":"tea","name":"abcde"}`:                 `/name: has 5 characters; at most 4 allowed`,
		`{"kind":"tea","name":"A1"}`:                    `/name: "A1" does not match the pattern ^[a-z]+$`,
		`{"kind":"tea","mail":"nobody"}`:                `/mail: "nobody" is not in the format email, which looks like ada@example.org`,
		`{"kind":"tea","sugar":0}`:                      `/sugar: 0 is not greater than 0`,
		`{"kind":"tea","sugar":0.3}`:                    `/sugar: 0.3 is not a multiple of 0.25`,
		`{"kind":"tea","extras":["gin"]}`:               `/extras/0: "gin" is not one of "milk", "lemon"`,
		`{"kind":"tea","extras":[]}`:                    `/extras: has 0 items; at least 1 needed`,
		`{"kind":"tea","extras":["milk","milk"]}`:       `/extras: items 0 and 1 are equal; all items must be different`,
		`{"kind":"tea","size":3}`:                       `/size: 3 is not one of 1, 2, 4, null`,
		`{"kind":"tea","seats":[{"row":"d"}]}`:          `/seats/0/row: "d" is not one of "a,b", "c"`,
		`{"kind":"tea","until":"soon"}`:                 `/until: "soon" is not in the format date-time, which looks like 2026-01-31T15:04:05Z`,
		`{"kind":"tea","notes":{"a":{},"b":{},"c":{}}}`: `/notes: has 3 properties; at most 2 allowed`,
	} {
		_, failure := invoke(t, tool, arguments)
		if failure == nil || !strings.HasSuffix(failure.Message, "schema:\n"+want) {
			t.Errorf("%s: got %v, want %s", arguments, failure, want)
			continue
		}
		if pointer, _, _ := strings.Cut(want, ":"); failure.Pointer != pointer {
			t.Errorf("%s: the failure points to %q", arguments, failure.Pointer)
		}
	}
}

func TestDefaults(t *testing.T) {
	tool, got := take[order](t, nil)
	yes, no, two := true, false, 2
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	seated := seat{"a,b", &yes}
	for arguments, want := range map[string]order{
		`{"kind":"tea"}`: {Kind: "tea", Cups: 1, Table: seated, Until: until},
		`{"kind":"tea","cups":3.0,"size":2e0,"table":{"row":"c"}}`: {Kind: "tea", Cups: 3, Size: &two, Table: seat{"c", &yes}, Until: until},
		`{"kind":"tea","cups":null,"until":null}`:                  {Kind: "tea", Cups: 1, Table: seated, Until: until},
		`{"kind":"tea","seats":[{},{"wide":false},{"wide":null}],"notes":{"x":{}}}`: {
			Kind: "tea", Cups: 1, Table: seated, Until: until,
			Seats: []seat{seated, {"a,b", &no}, {"a,b", nil}}, Notes: notes{"x": seated},
		},
	} {
		*got = order{}
		if _, failure := invoke(t, tool, arguments); failure != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, %v", arguments, *got, failure)
		}
	}
	// The text of the model is unchanged.
	var seen string
	plain, err := invoker.New("t", "", func(ctx context.Context, o order) (string, error) {
		seen = string(invoker.CallFrom(ctx).Arguments)
		return "", nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := invoke(t, plain, `{"kind":"tea"}`); failure != nil || seen != `{"kind":"tea"}` {
		t.Errorf("got %s, %v", seen, failure)
	}
}

type weekday int

func (weekday) JSONSchema() string { return `{"type":"integer","minimum":0,"maximum":6}` }

func TestTagsThatCannotBe(t *testing.T) {
	check := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ".A") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	check(tryIn[struct {
		A int `minimum:"abc"`
	}](), `the tag minimum:"abc" is not a number`)
	check(tryIn[struct {
		A int `maximum:"9007199254740993"`
	}](), "has more digits than a schema can store")
	check(tryIn[struct {
		A int `maximum:"1/2"`
	}](), "is not a number")
	check(tryIn[struct {
		A int `minimum:"1e999"`
	}](), "is not a number")
	check(tryIn[struct {
		A string `minimum:"1"`
	}](), "is for number or integer, and the field is a string")
	check(tryIn[struct {
		A struct{ B int } `enum:"a"`
	}](), "is for string or number or integer, and the field is an object")
	check(tryIn[struct {
		A any `enum:"a"`
	}](), "the field is a value of any type")
	check(tryIn[struct {
		A []struct{} `minLength:"1"`
	}](), "the field is an array")
	check(tryIn[struct {
		A string `minLength:"-1"`
	}](), "is not a whole number of 0 or more")
	check(tryIn[struct {
		A string `minLength:"3" maxLength:"2"`
	}](), "its lower limit is greater than its upper limit")
	check(tryIn[struct {
		A int `minimum:"3" maximum:"2"`
	}](), "its minimum 3 is greater than its maximum 2")
	check(tryIn[struct {
		A int `multipleOf:"0"`
	}](), "its multipleOf 0 is not greater than 0")
	check(tryIn[struct {
		A string `pattern:"("`
	}](), "is not a regular expression")
	check(tryIn[struct {
		A string `format:"phone"`
	}](), "is not one of date, date-time, duration, email")
	check(tryIn[struct {
		A int `enum:"1,two"`
	}](), "is not JSON")
	check(tryIn[struct {
		A int `enum:"1,1"`
	}](), "an empty or a repeated value")
	check(tryIn[struct {
		A string `enum:"a,,b"`
	}](), "has an empty or a repeated value")
	check(tryIn[struct {
		A string `enum:"[]"`
	}](), "has no values")
	check(tryIn[struct {
		A string `enum:"[{}]"`
	}](), "the value {} of its enum breaks the field's own schema")
	check(tryIn[struct {
		A int `enum:"1,5" maximum:"3"`
	}](), "the value 5 of its enum breaks the field's own schema")
	check(tryIn[struct {
		A int `default:"x"`
	}](), `the tag default:"x" is not JSON`)
	check(tryIn[struct {
		A int `default:"9" maximum:"3"`
	}](), "9 is greater than the maximum 3")
	check(tryIn[struct {
		A int8 `default:"300"`
	}](), "300 is greater than the maximum 127")
	check(tryIn[struct {
		A int `default:"99999999999999999999"`
	}](), "does not fit the field")
	check(tryIn[struct {
		A weekday `default:"7"`
	}](), "7 is greater than the maximum 6")
	check(tryIn[struct {
		A string `default:"x" format:"email"`
	}](), "is not in the format email")
	check(tryIn[struct {
		A []string `uniqueItems:"perhaps"`
	}](), "perhaps")
	check(tryIn[struct {
		A int `Minimum:"1"`
	}](), "the tag Minimum must be written minimum")
	check(tryIn[struct {
		A string `json:"a" maxlength:"1"`
	}](), "the tag maxlength must be written maxLength")
	check(tryIn[struct {
		A string `jsonschema:"one" description:"two"`
	}](), "differs from the description in another tag")
	check(tryOut[struct {
		A int `minimum:"abc"`
	}](), "result type: the field")
	type deep struct {
		L []map[string]struct {
			A *int `minimum:"x"`
		}
	}
	check(tryIn[struct{ D deep }](), `.D.L.A: the tag minimum:"x"`)
}

// What a type of its own says can be narrowed by tags.
func TestTagsBesideDescribers(t *testing.T) {
	tool, _ := take[struct {
		Day weekday `json:"day" maximum:"4" description:"a working day"`
	}](t, nil)
	if got := string(tool.Definition().InputSchema); !strings.Contains(got, `"day":{"type":"integer","description":"a working day","minimum":0,"maximum":4}`) {
		t.Error(got)
	}
	if _, failure := invoke(t, tool, `{"day":5}`); failure == nil {
		t.Error("no failure")
	}
}
