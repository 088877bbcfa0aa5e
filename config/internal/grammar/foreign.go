// SPDX-License-Identifier: Apache-2.0

package grammar

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
	{"ensembles", "mcp", `each server is a table [mcp.NAME]; ` + importAdvice},
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
func foreign(key string, fields []Field) *foreignKey {
	for i, f := range foreignKeys {
		if f.key == key && find(fields, f.native) != nil {
			return &foreignKeys[i]
		}
	}
	return nil
}
