// SPDX-License-Identifier: Apache-2.0

package readable

import (
	"strings"
	"testing"
)

// A link whose text has an address of another host says where it leads.
func TestDestinations(t *testing.T) {
	for source, want := range map[string]string{
		"[https://bank.example/login](https://evil.example/)":              "https://bank.example/login</a> (evil.example)",
		"[**bank**.example](https://evil.example:8080/)":                   "</a> (evil.example)",
		"[Log in at www.bank.example.](https://evil.example/)":             "</a> (evil.example)",
		"[https://bank.example/](https://bank.example@evil.example/)":      "</a> (evil.example)",
		"[![bank.example](https://c.example/i.png)](https://evil.example)": "</a> (evil.example)",
		"![bank.example](https://evil.example/i.png)":                      "</a> (evil.example)",
		"[ann@bank.example](mailto:eve@evil.example)":                      "</a> (eve@evil.example)",
		"[bank.example](mailto:eve@evil.example)":                          "</a> (eve@evil.example)",
		"[https://bank.example/login](https://bank.example/other)":         "",
		"[BANK.example](https://bank.example/)":                            "",
		"[ann@bank.example](mailto:ann@bank.example)":                      "",
		"[the bank, e.g. now](https://bank.example/)":                      " (bank.example)", // too much is no harm
		"[the bank](https://evil.example/)":                                "",
		"https://bank.example/ and <ann@bank.example>":                     "",
	} {
		got := Fragment(source, false)
		if want == "" && strings.Contains(got, "</a> (") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", source, got, want)
		}
	}
}
