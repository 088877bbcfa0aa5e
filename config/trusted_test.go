// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"maps"
	"testing"
)

// A trusted value is written as it is, or as a table that says more of it.
func TestTrustedValuesAreRead(t *testing.T) {
	c, err := parse(`
[trusted]
user = "ada"
host = "env:HOST"
"user id" = 42
admin = true
low = -7
tenant = {value = '{"id": 7}', json = true}
token = {value = "env:DATABASE_TOKEN", secret = true}
number = {value = 7, secret = true}
[mcp.a]
url = "http://x"
trusted = {arguments = {user_id = "user id"}, headers = {X-User = "user"}}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		text         string
		json, secret bool
	}{
		"user": {"ada", false, false}, "host": {"example.host-5554", false, false}, "user id": {"42", true, false},
		"admin": {"true", true, false}, "low": {"-7", true, false}, "tenant": {`{"id": 7}`, true, false},
		"token": {"database-5553", false, true}, "number": {"7", true, true},
	}
	for name, is := range want {
		got := c.Trusted[name]
		if got.Value.Reveal() != is.text || got.JSON != is.json || got.Secret != is.secret {
			t.Errorf("%s is %q, JSON %v, secret %v", name, got.Value.Reveal(), got.JSON, got.Secret)
		}
	}
	if len(c.Trusted) != len(want) {
		t.Errorf("there are %d values", len(c.Trusted))
	}
	a := c.MCP["a"]
	if !maps.Equal(a.Fill, map[string]string{"user_id": "user id"}) || !maps.Equal(a.TrustedHeaders, map[string]string{"X-User": "user"}) {
		t.Errorf("passed on are %v and %v", a.Fill, a.TrustedHeaders)
	}
}
