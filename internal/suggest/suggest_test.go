// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"slices"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"abc", "abc", 0},
		{"abc", "abd", 1}, {"abc", "abcd", 1}, {"abc", "ac", 1},
		{"abc", "acb", 1}, {"abcd", "badc", 2}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := Distance(test.a, test.b); got != test.want {
			t.Errorf("from %q to %q it is %d, want %d", test.a, test.b, got, test.want)
		}
		if there, back := Distance(test.a, test.b), Distance(test.b, test.a); there != back {
			t.Errorf("between %q and %q it is %d there and %d back", test.a, test.b, there, back)
		}
	}
}

func TestName(t *testing.T) {
	known := []string{"die", "silence", "half-then-die", "half-then-silence"}
	for name, want := range map[string]string{
		"dei": "die", "DIE": "die", "silent": "silence", "half-then-silense": "half-then-silence",
		"": "", "slow": "", "quite another name": "",
	} {
		if got := Name(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	keys := []string{"command", "call_timeout", "connect_timeout", "url", "allow"}
	for word, want := range map[string]string{
		"comand": "command", "commnad": "command", "callTimeout": "call_timeout", "URL": "url", "uri": "url",
		"alow": "allow", "xyz": "", "timeout": "call_timeout", "": "",
	} {
		if got := Key(word, keys); got != want {
			t.Errorf("the nearest to %q is %q, want %q", word, got, want)
		}
	}
	if !slices.Contains(keys, Key("url", keys)) {
		t.Error("a key is not nearest to itself")
	}
}
