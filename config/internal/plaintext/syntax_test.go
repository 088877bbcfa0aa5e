// SPDX-License-Identifier: Apache-2.0

package plaintext

import (
	"strings"
	"testing"
)

// TestTOMLKey: the key, or the table, of a line; never words that may be secret.
func TestTOMLKey(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\n[model]\nname = g|\n":                 "model.name",
		"base_url: |'x'":                              "base_url",
		"[mcp.a]\ncommand = ['x'|\n[mcp.b]\n":         "mcp.a.command",
		"[mcp.a.environment]\nKEY = |x\n":             "mcp.a.environment",
		"[[approval.rules]]\ntools = |x":              "approval.rules.tools",
		"[serve]\nclients = [\n  sk-0815Abc== |\n]\n": "serve",
		"hello there|":                                "",
	} {
		at := strings.Index(text, "|")
		if got := TOMLKey([]byte(strings.Replace(text, "|", "", 1)), at); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestJSONKey: the path of the member that is not valid.
func TestJSONKey(t *testing.T) {
	for text, want := range map[string]string{
		`{"mcpServers": {"a": {"x": 1}, "b" {}}}`:    "mcpServers.b",
		`{"mcpServers": {"a": {"args": ["x" 1]}}}`:   "mcpServers.a.args",
		`{"mcpServers": {"a b": {"env": {"K": v}}}}`: `mcpServers."a b".env.K`,
		`[1 2]`: "",
		``:      "",
	} {
		if got := JSONKey([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
