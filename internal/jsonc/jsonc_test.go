// SPDX-License-Identifier: Apache-2.0

package jsonc

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		`{"a": 1}`:                       `{"a": 1}`,
		"{\"a\": 1, // one\n}":           "{\"a\": 1        \n}",
		"/* \n */ [1, 2, /* x */ ]":      "   \n    [1, 2          ]",
		`{"a": "// no /* comment */,]"}`: `{"a": "// no /* comment */,]"}`,
		`["\"//", 1]`:                    `["\"//", 1]`,
		"// é\r\n{}":                     "     \r\n{}",
		`{"a": 1} /* open`:               `{"a": 1}        `,
		`"open // `:                      `"open // `,
		`[1 / 2]`:                        `[1 / 2]`,
		`/`:                              `/`,
		`"\`:                             `"\`,
	} {
		if got := string(Plain([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add(`{"a": [1, 2,], // b` + "\n}")
	f.Fuzz(func(t *testing.T, text string) {
		got := Plain([]byte(text))
		if len(got) != len(text) || strings.Count(string(got), "\n") != strings.Count(text, "\n") {
			t.Errorf("%q: %q has other offsets", text, got)
		}
		if json.Valid([]byte(text)) && string(got) != text {
			t.Errorf("%q is plain, and became %q", text, got)
		}
	})
}
