// SPDX-License-Identifier: Apache-2.0

package tomltext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/consort-go/consort/internal/tomltext"
)

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"":           `""`,
		`"\`:         `"\"\\"`,
		"<&>é\u2028": `"<&>é\u2028"`,
		"\x00\n\x7f": `"\u0000\n\u007f"`,
	} {
		if got := tomltext.Quote(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// FuzzQuote: every string reads back as it was, as TOML and as JSON.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "a", `"\`, "<&>", "\x00\b\x1f\x7f", "é\r\n\t", "\u0080\u2028", "\xff\xed\xa0\x80", "\U0010ffff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := tomltext.Quote(text)
		want := string([]rune(text)) // a byte that is not UTF-8 is one U+FFFD
		var fromTOML, fromJSON struct{ Text string }
		if err := toml.Unmarshal([]byte("Text = "+quoted), &fromTOML); err != nil || fromTOML.Text != want {
			t.Errorf("%q as %s reads back from TOML as %q, %v", text, quoted, fromTOML.Text, err)
		}
		if err := json.Unmarshal([]byte(`{"Text":`+quoted+"}"), &fromJSON); err != nil || fromJSON.Text != want {
			t.Errorf("%q as %s reads back from JSON as %q, %v", text, quoted, fromJSON.Text, err)
		}
		if strings.ContainsAny(quoted, "\r\n") {
			t.Errorf("%q has several lines: %s", text, quoted)
		}
	})
}
