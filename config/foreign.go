// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/internal/jsonc"
)

// A foreignKey is a key of other MCP hosts that has a different name here.
type foreignKey struct {
	key    string
	native string // the equivalent key here, in the same table
	advice string // a hint for the user; empty if native is enough
}

const importAdvice = `a JSON file of another MCP host is read with import = ["FILE"]`

// foreignKeys lists the keys that users bring from other hosts.
var foreignKeys = []foreignKey{
	{"mcpServers", "mcp", `each server is a table [mcp.NAME]; ` + importAdvice},
	{"mcp_servers", "mcp", `each server is a table [mcp.NAME]; ` + importAdvice},
	{"servers", "mcp", `each server is a table [mcp.NAME]; ` + importAdvice},
	{"args", "command", `arguments follow the program in command, such as command = ["npx", "-y", "PACKAGE"]`},
	{"env", "environment", `environment variables belong in environment, such as environment = {KEY = "env:KEY"}`},
	{"cwd", "directory", ""},
	{"serverUrl", "url", ""},
	{"httpUrl", "url", ""},
	{"type", "transport", ""},
	{"timeout", "call_timeout", `call_timeout bounds a call and connect_timeout the start, such as call_timeout = "60s"`},
	{"disabled", "enabled", "write enabled = false"},
	{"alwaysAllow", "allow", "allow lists the tools to offer; to approve calls without a question, add a rule to [approval]"},
	{"autoApprove", "allow", "allow lists the tools to offer; to approve calls without a question, add a rule to [approval]"},
}

// foreign returns the entry for a key that is not among fields, or nil.
func foreign(key string, fields []field) *foreignKey {
	for i, f := range foreignKeys {
		if f.key == key && find(fields, f.native) != nil {
			return &foreignKeys[i]
		}
	}
	return nil
}

// commandLine is a program with its arguments, as a list. Other hosts and shells take one
// string, so a string gets its own hint.
func commandLine(to *[]Value) value {
	v := each(to, argument)
	return value{kind: v.kind, read: func(r *reader, n *document.Node) {
		if _, ok := n.Value.(string); ok {
			r.wrong(n, `expected a list of strings, found a string: write each word as a string of its own, such as command = ["python3", "server.py"]`)
			return
		}
		v.read(r, n)
	}}
}

// isJSON reports whether data begins like a JSON object, after comments. Such a text is
// never valid TOML.
func isJSON(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(jsonc.Plain(data)), []byte("{"))
}
