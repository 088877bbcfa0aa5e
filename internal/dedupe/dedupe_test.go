// SPDX-License-Identifier: Apache-2.0

package dedupe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/dedupe"
)

func TestContents(t *testing.T) {
	long := strings.Repeat("say \"x\"\n", 40)
	quoted, _ := json.Marshal(long)
	spaced := `[ "` + strings.Repeat("word ", 60) + `" ]`
	spacedQuoted, _ := json.Marshal(spaced)
	const same = "[the text of this result]"
	for _, test := range []struct {
		name       string
		texts      []string
		structured string
		want       string // the texts, then the structured content
	}{
		{"compact", []string{`{"a":1}`}, `{"a":1}`, `{"a":1}`},
		{"pretty", []string{"{\n  \"b\": [1, 2],\n  \"a\": 1\n}"}, `{"a":1,"b":[1,2]}`, "{\n  \"b\": [1, 2],\n  \"a\": 1\n}"},
		{"value of a member", []string{"hello"}, `{"content":"hello"}`, `{"content":"hello"}`},
		{"long value of a member", []string{long}, `{"content": ` + string(quoted) + `, "lines":40}`, long + `|{"content": "` + same + `", "lines":40}`},
		{"long value, twice", []string{long}, `[` + string(quoted) + `,` + string(quoted) + `]`, long + `|["` + same + `","` + same + `"]`},
		{"values of members", []string{"Oslo", "4"}, `{"place":"Oslo","degrees":4}`, `{"place":"Oslo","degrees":4}`},
		{
			"two long ones", []string{long, "x" + long}, `{"a":` + string(quoted) + `,"b":"other"}`,
			long + "|x" + long + `|{"a":"[text 1 of this result]","b":"other"}`,
		},
		{"elements as blocks", []string{`{"id":1}`, `{"id": 2}`}, `{"result":[{"id":1},{"id":2}]}`, `{"result":[{"id":1},{"id":2}]}`},
		{"JSON of a member", []string{"[\n  1\n]"}, `{"result":[1]}`, `{"result":[1]}`},
		{"string as JSON", []string{`"Oslo"`}, `{"place":"Oslo"}`, `{"place":"Oslo"}`},
		{"escapes", []string{"é\n"}, `{"a":"\u00e9\n"}`, `{"a":"\u00e9\n"}`},

		{
			"a text that is JSON of one member and a string of another", []string{spaced},
			`{"raw":` + string(spacedQuoted) + `,"parsed":` + spaced + `}`, `{"raw":` + string(spacedQuoted) + `,"parsed":` + spaced + `}`,
		},
		{"a short one before a long one", []string{"ok", long}, `{"s":"ok","b":` + string(quoted) + `}`, long + `|{"s":"ok","b":"` + same + `"}`},

		{"text says more", []string{"It is 4 degrees."}, `{"degrees":4}`, `It is 4 degrees.|{"degrees":4}`},
		{"JSON says more", []string{`{"a":1,"b":2}`}, `{"a":1}`, `{"a":1,"b":2}|{"a":1}`},
		{"one of two", []string{"Oslo", "Bring a coat."}, `{"place":"Oslo"}`, `Bring a coat.|{"place":"Oslo"}`},
		{"name of a member", []string{"place"}, `{"place":"Oslo"}`, `place|{"place":"Oslo"}`},
		{"part of a string", []string{"Osl"}, `{"place":"Oslo"}`, `Osl|{"place":"Oslo"}`},
		{"another number", []string{"1.0"}, `{"a":1}`, `1.0|{"a":1}`},
		{"a large number", []string{`{"a":9007199254740993}`}, `{"a":9007199254740992}`, `{"a":9007199254740993}|{"a":9007199254740992}`},
		{"a member twice in the text", []string{`{"a":1,"a":2}`}, `{"a":2}`, `{"a":1,"a":2}|{"a":2}`},
		{"a member twice in the structure", []string{`{"a":2}`}, `{"a":1,"a":2}`, `{"a":2}|{"a":1,"a":2}`},
		{"two values in a text", []string{`{"a":1} {"a":1}`}, `{"a":1}`, `{"a":1} {"a":1}|{"a":1}`},
		{"null", []string{"null"}, `{"a":1}`, `null|{"a":1}`},
		{"empty text", []string{""}, `{"a":""}`, `|{"a":""}`},
		{"only one form", nil, `{"a":1}`, `{"a":1}`},
		{"no JSON", []string{"{"}, `{`, `{|{`},
	} {
		t.Run(test.name, func(t *testing.T) {
			contents := canister.Texts(test.texts...)
			contents = append(contents, canister.StructuredContent{JSON: json.RawMessage(test.structured)})
			var got []string
			for _, c := range dedupe.Contents(contents) {
				switch c := c.(type) {
				case canister.TextContent:
					got = append(got, c.Text)
				case canister.StructuredContent:
					got = append(got, string(c.JSON))
				}
			}
			if strings.Join(got, "|") != test.want {
				t.Errorf("got  %q\nwant %q", strings.Join(got, "|"), test.want)
			}
			if n := len(test.texts) + 1; len(contents) != n || string(contents[n-1].(canister.StructuredContent).JSON) != test.structured {
				t.Errorf("what was given has changed: %v", contents)
			}
		})
	}
}
