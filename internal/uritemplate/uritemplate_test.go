// SPDX-License-Identifier: Apache-2.0

package uritemplate

import (
	"strings"
	"testing"
	"time"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		template, uri string
		want          string // of the variable id; "-" for no match
	}{
		{"x://items/{id}", "x://items/a%20b", "a b"},
		{"x://items/{id}", "x://items/a/b", "-"},
		{"x://items/{+id}", "x://items/a/b", "a/b"},
		{"x://items{?id}", "x://items?id=7", "7"},
		{"x://items{?a,id,b}", "x://items?a=1&id=7", "7"},
		{"x://items/{a},{id}", "x://items/1,7", "7"},
		{"x://items{/id*}", "x://items/a/b", "a/b"},
		{"x://items{;id}", "x://items;id=7", "7"},
		{"x://items{#id}", "x://items#a/b", "a/b"},
		{"x://items/{id:3}", "x://items/abc", "abc"},
		{"x://items/{id}", "y://items/a", "-"},
		{"x://items/{id}", "x://items/%zz", "-"},
		{"x://items/{id", "x://items/a", "-"},
		{strings.Repeat("{id}", maxExpressions+1), "x", "-"},
		{"x{?a" + strings.Repeat(",id", maxExpressions+1) + "}", "x", "-"},
		{strings.Repeat("x", maxTemplate) + "{id}", strings.Repeat("x", maxTemplate+1), "-"},
		{"{id}", strings.Repeat("x", MaxURI+1), "-"},
	} {
		values, ok := Match(test.template, test.uri)
		if ok != (test.want != "-") || ok && values["id"] != test.want {
			t.Errorf("%.40s of %.40s: %v, %v", test.template, test.uri, values, ok)
		}
	}
}

func TestExpand(t *testing.T) {
	values := map[string]string{"a": "x y", "b": "d/e"}
	for template, want := range map[string]string{
		"x://{a}/{b}": "x://x%20y/d%2Fe", "x://{+b}/{c}": "x://d/e/{c}", "x://{c}": "x://{c}", "x://{?a,c}": "x://?a=x%20y",
		"x://{a": "x://{a", "x://none": "x://none", "{a}": "x%20y",
	} {
		if got := Expand(template, values); got != want {
			t.Errorf("%s: got %s, want %s", template, got, want)
		}
	}
}

// URIs that a server may take for the same resource have the same canonical form.
func TestCanonical(t *testing.T) {
	for want, all := range map[string][]string{
		"file:///b": {
			"file:///b", "FILE:///b", "file:///a/../b", "file:///%62", "file:///%2562", "file:///a/%2e%2e/b", "file:////b",
			"file:///./b", `file:///a\..\b`, "file:///a%2f..%2fb", "file:///../b",
		},
		"file:///b/":      {"file:///b/", "file:///a/../b/"},
		"https://h.org/b": {"https://H.org/b", "https://h.org/a/%2E%2E/b"},
		"note:a":          {"note:a", "NOTE:%61", "note:b/../a"},
		"https://h.org/":  {"https://h.org", "https://h.org/", "https://h.org/a/.."},
		"x://h/100%":      {"x://h/100%"},
	} {
		for _, uri := range all {
			if got := Canonical(uri); got != want {
				t.Errorf("%s: got %s, want %s", uri, got, want)
			}
		}
	}
	for _, uri := range []string{"", ":", "//", "%", "a", "a://", "://", "..", "a:..", strings.Repeat("%25", 9)} {
		Canonical(uri) // whatever is sent, nothing panics
	}
}

// TestMatchTakesLittleTime: even the largest template and URI are matched quickly.
func TestMatchTakesLittleTime(t *testing.T) {
	for _, expression := range []string{"{+a}", "{a*}", "{a:9999}", "{?abc*}", "{a*,b*}", "{" + strings.Repeat("a", maxTemplate/maxExpressions-2) + "}"} {
		template := strings.Repeat(expression, maxExpressions)
		if err := Check(template); err != nil {
			t.Fatalf("%s: %v", template, err)
		}
		for _, uri := range []string{strings.Repeat("a", MaxURI-1) + "\n", strings.Repeat("a,", MaxURI/2)} {
			start := time.Now()
			Match(template, uri)
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%.20s took %v", template, took)
			}
		}
	}
}

// FuzzMatch: whatever a server writes for a template, nothing panics.
func FuzzMatch(f *testing.F) {
	f.Add("x://items/{id}", "x://items/7")
	f.Add("x{?a,b*}{&c}{#d:3}{;e}{.f}", "x?a=1&b=2#dd;e=1.f")
	f.Add("{+a}{a}{/a*}", "//%zz")
	f.Fuzz(func(t *testing.T, template, uri string) { Match(template, uri) })
}
