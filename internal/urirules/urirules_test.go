// SPDX-License-Identifier: Apache-2.0

package urirules

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCanonical: URIs that a server may take for the same resource have a reading in common,
// which an allow list must have.
func TestCanonical(t *testing.T) {
	for want, all := range map[string][]string{
		"file:///b": {
			"file:///b", "FILE:///b", "file:///a/../b", "file:///%62", "file:///%2562", "file:///a/%2e%2e/b", "file:////b",
			"file:///./b", `file:///a\..\b`, "file:///a%2f..%2fb", "file:///../b", "file:/b", "file:b", "file://localhost/b",
			"file://LOCALHOST/b", `file:\\\b`, `file:\\localhost\b`, "file:///a/..%09/b", "file:///a%5C..%5Cb", "file:///a//../../b", "fil%65:///b",
		},
		"file:///b/":    {"file:///b/", "file:///a/../b/"},
		"file:///a/b":   {"file:///a//../b", "file:///a%2Fb"},
		"file:///a%2Fb": {"file:///a%2fb", "file:///%61%2fb"},
		"https://h.org/b": {
			"https://H.org/b", "https://h.org/a/%2E%2E/b", "https:/h.org/b", "https:h.org/b", "https:////h.org/b", `https:\\h.org\b`,
			"https://h.org:443/b", "https://h.org:0443/b", "https://h.org:/b", "https://u@h.org/b", "https://u:p@h.org:443/b", "https://h.org./b",
			"https://u%40h.org/b", "https://h%2Eorg/b", `https://x\@h.org/b`,
		},
		"http://h/b?x=/../c#/..": {"http://h:80/%62?x=/../c#/.."},
		"http://h:443/b":         {"http://h:443/b"},
		"note:a":                 {"note:a", "NOTE:%61", "note:b/../a"},
		"https://h.org/":         {"https://h.org", "https://h.org/", "https://h.org/a/.."},
		"x://h/100%":             {"x://h/100%", "x://h/%3100%"},
		"x://h/é":                {"x://h/%C3%A9"},
		"ui://shop/admin/A":      {"ui://shop/Admin/A", "UI://SHOP/ADMIN/A"},
	} {
		for _, uri := range all {
			if got, ok := Readings(uri); !ok || !slices.Contains(got, Reading{URI: want}) || got[0].URI != uri {
				t.Errorf("%s: got %v, want %s", uri, got, want)
			}
		}
	}
	for want, all := range map[string][]string{
		"note:///a": {"note:///a#x", "note:///a?x", "note:///a?x#y", "note:/a", "note:a", "note://h/a", "note:///%61#x", "note:///a//../../a"},
		"file:///b": {"file://h/b", "file:///b#", "file:///b?#"},
		"x://h/a?b": {"x://h/a?b#c"},
	} {
		for _, uri := range all {
			if got, ok := Readings(uri); !ok || !slices.ContainsFunc(got, func(r Reading) bool { return r.URI == want }) {
				t.Errorf("%s: got %v, want %s", uri, got, want)
			}
		}
	}
	for _, uri := range []string{"", ":", "//", "%", "a", "a://", "://", "..", "a:..", "https:", "https://@", "file:", "ui:", "%2", "%zz"} {
		if _, ok := Readings(uri); !ok {
			t.Errorf("%q has no readings", uri)
		}
	}
	for _, uri := range []string{" a", "a ", "a\t", "\na", "a\x00", "a\x7f", "%" + strings.Repeat("25", maxLevels+1), strings.Repeat("x", maxURI+1)} {
		if _, ok := Readings(uri); ok {
			t.Errorf("%.20q has readings", uri)
		}
	}
}

// A rule holds for all spellings of a URI, also for those of the rule itself.
func TestExcluded(t *testing.T) {
	for _, test := range []struct {
		allow, deny, uri string
		want             bool
	}{
		{"file:///reports/*", "", "file:///reports/a", false},
		{"file:///reports/*", "", "file:///reports/a%20b", false},
		{"file:///reports/*", "", "file:///reports/é%C3%A9", false},
		{"file:///reports/*", "", "file:///reports/a%2Fb", false},
		{"file:///reports/*", "", "file:///reports/..%2Fsecret", true},
		{"file:///reports/*", "", "file:///reports/../secret/x?/../../reports/", true},
		{"file:///reports/*", "", "file:///reports/../secret/x#/../../reports/", true},
		{"file:///reports/*", "", "file:///reports/a#/../../secret/x", true},
		{"file:///reports/*", "", "file:///reports/a%23/../../secret/x", true},
		{"file:///reports/?", "", "file:///reports/a%2Fb", true},
		{"file:///a%2Fb", "", "file:///a%2Fb", true},
		{"file:///a%2Fb", "", "file:///a/b", true},
		{"file:///my%20docs/*", "", "file:///my%20docs/a", false},
		{"file:///%2A", "", "file:///secret", true},
		{"file://localhost/a/*", "", "file://localhost/a/b", false},
		{"file://server/a/*", "", "file://server/a/b", false},
		{"https://u@h:443/*", "", "https://u@h:443/x", false},
		{"https://h:8443/*", "", "https://h:8443/x", false},
		{"repo://Owner/*", "", "repo://Owner/Name", false},
		{"x://items?id=*", "", "x://items?id=A%2FB", false},
		{"note:///a#x", "", "note:///a#x", false},
		{"*#public", "", "note:///a", true},
		{"*", "", "note:///a?b#c", false},
		{"*://*", "", "note:///a?b#c", false},
		{"http*://h/a/*", "", "https://h:443/a/x", true},
		{"", "https://h/private/*", "https://h/%70rivate/x?/../../public", true},
		{"", "https://h/private/*", "https://h/p%23/..%2F%70rivate%2Fx?/../../public", true},
		{"", "https://h/private/*", "https://h/%70rivate/x?q=%", true},
		{"", "https://h/private/*", "https://h/a/b/c", false},
		{"", "https://h/a/b", "https://h/a//../%62", true},
		{"", "http*://h/private/*", "https://h:443/private/x", true},
		{"", "https://h:443/private/*", "https://h/private/x", true},
		{"", "file://localhost/secret/*", "file:///%73ecret/a", true},
		{"", "file:///secret/*", "file://anything/secret/a", true},
		{"", "file:///secret/*", "file:///%73ecret%2F%252e%252e%2Fx", true},
		{"", "file:///a%2fb", "file:///a%2Fb", true},
		{"", "file:///a%2fb", "file:///a/b", true},
		{"", "file:///a/b", "file:///a%2Fb", true},
		{"", "file:///my%20docs/*", "file:///%6dy%20docs/a", true},
		{"", "file:///caf%c3%a9", "file:///café", true},
		{"", "note:secret", "note:///secret", true},
		{"", "note:///secret", "note:secret?x#y", true},
		{"", "*#private*", "note:///a", false},
		{"", "*#private*", "note:///a#private", true},
		{"", "repo://owner/secret", "repo://other/secret", false},
		{"", `reg://HKLM\Soft*`, `reg://HKLM/Software`, true},
		{"", "note://h/*", "note://h?x", true},
		{"", "secret_*", "note:///secret_1", false},
	} {
		list := func(one string) []string {
			return slices.DeleteFunc([]string{one}, func(s string) bool { return s == "" })
		}
		if got := Excluded(test.uri, list(test.allow), list(test.deny)); got != test.want {
			t.Errorf("allow %s, deny %s: %s is excluded: %v", test.allow, test.deny, test.uri, got)
		}
	}
}

func TestHasScheme(t *testing.T) {
	for uri, want := range map[string]bool{
		"ui://a": true, "UI:a": true, "u\ti://a": true, " ui:a": true, "%75i:a": true, "%2575i%3Aa": true, "gui://a": false, "ui": false, "x:ui:a": false, "": false,
	} {
		if HasScheme(uri, "ui") != want {
			t.Errorf("%q: not %v", uri, want)
		}
	}
}

// Whatever is sent, it is compared quickly.
func TestReadingsTakeLittleTime(t *testing.T) {
	for _, test := range [][2]string{ // what the URI begins with, and what follows again and again
		{"", "%2525252525252525"}, {"", "/.."}, {"", "//../"}, {"", "a:"}, {"", `\`}, {"", "%2F.."}, {"", "?#"},
		{"?", "/"}, {"?%2525252525252541", "/"}, {"#", "/"},
	} {
		begin, part := "https://h/"+test[0], test[1]
		uri := begin + strings.Repeat(part, (maxURI-len(begin))/len(part))
		start := time.Now()
		Excluded(uri, []string{"https://*/a*b*c*/*"}, []string{"*a*b*c*d*", "https://h/%2525252f*"})
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q took %v", test, took)
		}
	}
}

// FuzzReadings: whatever is sent, nothing panics, the URI is its own first reading, and a list
// with its exact text denies it.
func FuzzReadings(f *testing.F) {
	f.Add("file:///a/..%2f..%5Cb?c#d")
	f.Add("https://u:p@h:0443//%25%32%35/../x")
	f.Fuzz(func(t *testing.T, uri string) {
		readings, ok := Readings(uri)
		if ok && readings[0] != (Reading{URI: uri}) {
			t.Errorf("%q: %v", uri, readings)
		}
		if !Excluded(uri, nil, []string{uri}) {
			t.Errorf("%q is not denied", uri)
		}
	})
}
