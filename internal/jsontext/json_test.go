// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAppendString: every string becomes a JSON string, and reads back as it was, with
// U+FFFD for each byte that is not UTF-8.
func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", `a"b\c`, "\x00\x1f\n\r\t\x7f", "é世界\u2028", "\xff\xc3(", "\xed\xa0\x80", "\ufffd"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%q becomes %s: %v", s, text, err)
		}
		var want strings.Builder
		for _, r := range s { // a byte that is not UTF-8 is one U+FFFD
			want.WriteRune(r)
		}
		if back != want.String() {
			t.Errorf("%q reads back as %q", s, back)
		}
	})
}

func TestIsObject(t *testing.T) {
	for text, want := range map[string]bool{
		"{}": true, " \t\r\n{\"a\":1} ": true, "": false, "[]": false, "{": false, "{}{}": false, "null": false, "\u00a0{}": false,
	} {
		if IsObject([]byte(text)) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

func TestStringEnd(t *testing.T) {
	for text, want := range map[string]int{
		`x""`: 3, `x"a"b"`: 4, `x"\""y`: 5, `x"\\"y`: 5, `x"`: 2, `x"a`: 3, `x"\`: 3, `x"a\"`: 5,
	} {
		if end := StringEnd([]byte(text), 1); end != want {
			t.Errorf("%s ends at %d, not at %d", text, end, want)
		}
	}
}

func TestMembers(t *testing.T) {
	text := AppendMember([]byte{'{'}, "a", "1")
	text = append(AppendName(text, "b"), "[]}"...)
	if string(text) != `{"a":"1","b":[]}` {
		t.Errorf("%s", text)
	}
	if text := Compact([]byte(` {"b" : [ 1 ] } `)); string(text) != `{"b":[1]}` {
		t.Errorf("%s", text)
	}
	if text := Compact([]byte("{ no")); string(text) != "{ no" {
		t.Errorf("%s", text)
	}
	text, err := Encode(map[string]any{"b": "<", "a": json.Number("1.50")})
	if err != nil || string(text) != `{"a":1.50,"b":"<"}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDepth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, `7`: 0, `{}`: 1, `[{"a":[]},{}]`: 3, `"[[["`: 0, `{"a\"[[":"\\"}`: 1, `[[`: 2, `]][`: 0, `"[`: 0, `{"a":"[[{{"}`: 1,
	} {
		if got := Depth([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
