// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
)

// A foreignKey is a key that other MCP hosts use for something that has
// another name here.
type foreignKey struct {
	key    string
	native string // the key of this configuration, in the same table
	advice string // what to write; empty if native says it all
}

const importAdvice = `a JSON file of another MCP host is read with import = ["FILE"]`

// foreignKeys are the ones that people bring from other hosts.
var foreignKeys = []foreignKey{
	{"mcpServers", "mcp", `each server is a table [mcp.NAME]; ` + importAdvice},
	{"mcp_servers", "mcp", `each server is a table [mcp.NAME]; ` + importAdvice},
	{"servers", "mcp", `each server is a table [mcp.NAME]; ` + importAdvice},
	{"args", "command", `arguments follow the program in command, such as command = ["npx", "-y", "PACKAGE"]`},
	{"env", "environment", `environment variables stand in environment, such as environment = {KEY = "env:KEY"}`},
	{"cwd", "directory", ""},
	{"type", "transport", ""},
	{"timeout", "call_timeout", `call_timeout bounds a call and connect_timeout the start, such as call_timeout = "60s"`},
	{"disabled", "enabled", "write enabled = false"},
	{"alwaysAllow", "allow", "allow lists the tools to offer; approval without a question is a rule of [approval]"},
	{"autoApprove", "allow", "allow lists the tools to offer; approval without a question is a rule of [approval]"},
}

// foreign returns what is known of a key that the table of fields lacks; nil
// if nothing is.
func foreign(key string, fields []field) *foreignKey {
	for i, f := range foreignKeys {
		if f.key == key && find(fields, f.native) != nil {
			return &foreignKeys[i]
		}
	}
	return nil
}

// commandLine is a program with its arguments, as a list. Other hosts and
// shells take one string, so a string gets advice.
func commandLine(to *[]Value) value {
	v := each(to, argument)
	return value{kind: v.kind, read: func(r *reader, n *node) {
		if _, ok := n.value.(string); ok {
			r.wrong(n, `expected a list of strings, found a string: write each word as a string of its own, such as command = ["python3", "server.py"]`)
			return
		}
		v.read(r, n)
	}}
}

// isJSON reports whether data is a JSON object, which TOML cannot be.
func isJSON(data []byte) bool {
	data = bytes.TrimSpace(data)
	return bytes.HasPrefix(data, []byte("{")) && json.Valid(data)
}
