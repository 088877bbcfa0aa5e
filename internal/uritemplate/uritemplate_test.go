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
