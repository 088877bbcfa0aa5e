// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzMembers: objects, arrays and strings are read as encoding/json reads them.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{"":[],"":0}`,
		`{}`, ` { } `, `{"a":1,"b":[2,{"c":"}"}],"a":3}`, `{"\u0061":null}`, "{\"\xff\":1}", `{"a":"\"","":" "}`, `null`, `[]`, ` [ ] `, `[1, "a,]", [2], {}]`,
		`"a\n"`, `"" `, `"\\"`, `["\"\\", 1]`, "\"\xff\"", `"a`, `{"a":1`, `{"a":1}}`, `[1`,
		"\ufeff{}", `7`, ``, "\"\x01\"", "\u00a0{}", `{"a\"":1,"\u0061\"":2}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var object map[string]json.RawMessage
		err := json.Unmarshal(text, &object)
		members, failed := Members(text)
		if (failed == nil) != (err == nil && object != nil) || len(members) != len(object) {
			t.Fatalf("%q has the members %q, %v, want %q, %v", text, members, failed, object, err)
		}
		for name, value := range object {
			if string(members[name]) != string(value) {
				t.Errorf("%q: member %q is %s, want %s", text, name, members[name], value)
			}
			if single := Member(text, name); utf8.Valid(text) && string(single) != string(value) {
				t.Errorf("%q: Member %q is %s, want %s", text, name, single, value)
			}
		}
		var array []json.RawMessage
		err = json.Unmarshal(text, &array)
		elements, isArray := Elements(text)
		if isArray != (err == nil && array != nil) || len(elements) != len(array) {
			t.Fatalf("%q has the elements %q, %v, want %q, %v", text, elements, isArray, array, err)
		}
		for i, value := range array {
			if string(elements[i]) != string(value) {
				t.Errorf("%q: element %d is %s, want %s", text, i, elements[i], value)
			}
		}
		var want string
		err = json.Unmarshal(text, &want)
		if got, failed := String(text); (failed == nil) != (err == nil) || err == nil && got != want {
			t.Errorf("%q is the string %q, %v, want %q, %v", text, got, failed, want, err)
		}
	})
}
