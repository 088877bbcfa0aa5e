// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/consort-go/consort/internal/condition"
)

func decoded(t testing.TB, text string) (values map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestHolds(t *testing.T) {
	values := decoded(t, `{"roles": ["ops", "dev"], "tenant": "acme", "level": 3, "verified": true, "none": [], "odd": [null, "ops"],
		"https://example.com/team": "blue", "address": {"country": "NO"}, "null": null, "people": [{"name": "ada"}], "numbers": [1, 2]}`)
	for text, want := range map[string]string{
		`"ops" in trusted.roles`:                            "true",
		`"op" in trusted.roles`:                             "false",
		`"ops" not in trusted.roles`:                        "false",
		`"acm" in trusted.tenant`:                           "error", // a text is no list
		`trusted.tenant contains "acm"`:                     "true",
		`trusted.tenant == "acme" and trusted.level == 3`:   "true",
		`trusted.tenant == "acme" and trusted.level == 4`:   "false",
		`trusted.tenant == "x" or trusted.verified == true`: "true",
		`not (trusted.tenant == "x")`:                       "true",
		`trusted["https://example.com/team"] == "blue"`:     "true",
		`trusted.address.country == "NO"`:                   "true",
		`trusted.tenant matches "^ac"`:                      "true",
		`trusted.tenant not matches "^ac"`:                  "false",
		`trusted.missing == "x"`:                            "false",
		`trusted.missing != "x"`:                            "true",
		`"ops" in trusted.missing`:                          "false",
		`trusted.missing is empty`:                          "true",
		`trusted.missing.deeper == "x"`:                     "error",
		`trusted.none is empty`:                             "true",
		`trusted.level == "three"`:                          "error",
		`"ops" in trusted.odd`:                              "error",
		`"ops" in trusted.null`:                             "error",
		`any trusted.roles as role { role matches "^d" }`:   "true",
		`all trusted.roles as role { role matches "^d" }`:   "false",
		`any trusted.people as one { one.name == "ada" }`:   "true",
		`2 in trusted.numbers`:                              "true",
	} {
		c, err := condition.Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := "error"
		if holds, err := c.Holds(values); err == nil && holds {
			got = "true"
		} else if err == nil {
			got = "false"
		}
		if got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for text, want := range map[string]struct {
		column int
		reason string
	}{
		``:                                  {1, "ends too early"},
		`"ops" in`:                          {9, "ends too early"},
		`trusted.a = "x"`:                   {11, `"= \"x\""`},
		`trusted.ä == "x"`:                  {9, "cannot be read"},
		`user == "ada"`:                     {1, "trusted.user, and not user"},
		`trusted.a == "x" and roles == "x"`: {22, "and not roles"},
		`trusted == "x"`:                    {1, "and not trusted"},
		`trusted.a matches "["`:             {20, "regular expression"},
		`any trusted.a as x { any trusted.b as y { y == x } }`: {1, "inside another"},
		`(trusted.a == "x"`:             {18, "ends too early"},
		strings.Repeat("x", 5000):       {1, "more than 4096 bytes"},
		strings.Repeat("(", 2000) + "x": {0, ""},
		strings.Repeat("not ", 1000):    {0, ""},
	} {
		_, err := condition.Compile(text)
		wrong, ok := errors.AsType[*condition.Error](err)
		if !ok || want.column != 0 && wrong.Column != want.column || !strings.Contains(err.Error(), want.reason) {
			t.Errorf("%.60s: %v, want %+v", text, err, want)
		}
	}
}

func TestConcurrently(t *testing.T) {
	c, err := condition.Compile(`trusted.tenant matches "^a"`)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 100 {
				if holds, err := c.Holds(map[string]any{"tenant": "acme"}); !holds || err != nil {
					t.Error(holds, err)
				}
			}
		})
	}
	running.Wait()
}

func BenchmarkHolds(b *testing.B) {
	c, err := condition.Compile(`"ops" in trusted.roles and trusted.tenant == "acme"`)
	if err != nil {
		b.Fatal(err)
	}
	values := decoded(b, `{"roles": ["dev", "ops"], "tenant": "acme"}`)
	b.ReportAllocs()
	for b.Loop() {
		if holds, err := c.Holds(values); !holds || err != nil {
			b.Fatal(holds, err)
		}
	}
}
