// SPDX-License-Identifier: Apache-2.0

package display_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/display"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":           "plain\ttext\n",
		"\x1b]0;title\a\x1b[2Jno": "<U+001B>]0;title<U+0007><U+001B>[2Jno",
		"over\rwritten\b":         "over<U+000D>written<U+0008>",
		"line\r\nend\r":           "line\nend",
		"a\u202etxt.exe":          "a<U+202E>txt.exe",
		"\u2066a\u2069\u200f":     "<U+2066>a<U+2069><U+200F>",
		"\u009b31mred\x7f":        "<U+009B>31mred<U+007F>",
		"a\u200bb\ufeffc\u2028d":  "a<U+200B>b<U+FEFF>c<U+2028>d",
		"y\U000e0065\U000e007f":   "y<U+E0065><U+E007F>",
		"v\U000e0100\ue000\u3164": "v<U+E0100><U+E000><U+3164>",
		"no\xffUTF-8":             "no\ufffdUTF-8",
		// What real languages and emoji need stays.
		"grüße 東京":                          "grüße 東京",
		"e\u0301 שָׁלוֹם العربية":           "e\u0301 שָׁלוֹם العربية",
		"می\u200cخواهم":                     "می\u200cخواهم",
		"क\u094d\u200dष":                    "क\u094d\u200dष",
		"👩\u200d👩\u200d👧 👍🏽 ❤\ufe0f\u200d🔥": "👩\u200d👩\u200d👧 👍🏽 ❤\ufe0f\u200d🔥",
		"\u0600\u0661":                      "\u0600\u0661",
		// Joiners hide something where nothing needs them.
		"pay\u200dpal\u200c":        "pay<U+200D>pal<U+200C>",
		"می\u200c\u200d\u200cخواهم": "می\u200c<U+200D><U+200C>خواهم",
	} {
		if got := display.Text(text); got != want {
			t.Errorf("display.Text(%q) = %q, want %q", text, got, want)
		}
	}
	if got := display.Continue('👩', "\u200d👧"); got != "\u200d👧" {
		t.Errorf("a joiner that continues an emoji is %q", got)
	}
}

// The escapes of JSON mean the same, and nothing invisible is left.
func TestEscapeJSON(t *testing.T) {
	text := "a\x7f\u009b\u202e\u200b\U000e0041\U000e0100\ue000\u2028 क\u094d\u200dष 👍\n"
	form, err := json.Marshal(map[string]string{text: text})
	if err != nil {
		t.Fatal(err)
	}
	escaped := display.EscapeJSON(string(form))
	var back map[string]string
	if err := json.Unmarshal([]byte(escaped), &back); err != nil || back[text] != text {
		t.Errorf("%s is %q, %v", escaped, back, err)
	}
	if i := strings.IndexFunc(strings.ReplaceAll(escaped, "\u200d", ""), display.IsInvisible); i >= 0 {
		t.Errorf("there is something invisible at %d of %q", i, escaped)
	}
	if got := display.JSON([]byte("{\"a\":\"\U000e0041\"}")); got != "{\n  \"a\": \"\\udb40\\udc41\"\n}" {
		t.Errorf("display.JSON = %s", got)
	}
	if got := display.JSON([]byte("{\u200b")); got != "{<U+200B>" {
		t.Errorf("display.JSON of what is none = %s", got)
	}
}
