// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for _, test := range []struct {
		value string
		most  int
		want  string
	}{
		{`{"a":1}`, 7, `{"a":1}`},
		{`{"a":"0123456789012345678901234567890123456789","b":2}`, 50, `{"a":"0123… (36 more bytes)","b":2}`},
		{`[1,2,3,4,5,6,7,8,9]`, 12, `[1,2,3]`},
		{`{"a":[1,2,3],"b":{"c":1}}`, 20, `{"a":[1,2,3]}`},
		{`12345678901234567890`, 8, `"…"`},
		{`{"a":12345678901234567890}`, 12, `{"a":"…"}`},
		{`"` + strings.Repeat("ä", 50) + `"`, 60, `"ääää… (92 more bytes)"`},
		{`"a` + strings.Repeat("ä", 50) + `"`, 60, `"aääää… (92 more bytes)"`},
		{`[[[[[[[[[[[[1]]]]]]]]]]]]`, 10, `[[[]]]`},
	} {
		if got := string(shorten(json.RawMessage(test.value), test.most)); got != test.want {
			t.Errorf("%s in %d bytes is %s, not %s", test.value, test.most, got, test.want)
		}
	}
}

// Whatever is cut is valid, short, and as it was if it was short.
func FuzzShorten(f *testing.F) {
	f.Add(`{"a":"\u0000\ud800 ä<","b":[1,true,null,{"c":[]}]}`, uint16(20))
	f.Add(`["`+strings.Repeat(`\n`, 300)+`",1e400]`, uint16(100))
	f.Add(strings.Repeat("[", 500)+strings.Repeat("]", 500), uint16(64))
	f.Fuzz(func(t *testing.T, value string, most uint16) {
		if !json.Valid([]byte(value)) {
			value = string(object(value, "text"))
		}
		room := max(int(most), leastValue)
		got := shorten(json.RawMessage(valid(value)), room)
		if len(got) > room || !json.Valid(got) || !utf8.Valid(got) {
			t.Errorf("%s in %d bytes is %s", value, room, got)
		}
		if len(valid(value)) <= room && string(got) != valid(value) {
			t.Errorf("%s was changed to %s", value, got)
		}
	})
}

func FuzzBounded(f *testing.F) {
	f.Add("a\xffäöü", uint16(3))
	f.Fuzz(func(t *testing.T, text string, most uint16) {
		got := bounded(text, int(most))
		if len(got) > int(most) || !utf8.ValidString(got) || !strings.HasPrefix(valid(text), got) || len(valid(text)) > int(most)+3 && len(got) < int(most)-3 {
			t.Errorf("%q in %d bytes is %q", text, most, got)
		}
	})
}
