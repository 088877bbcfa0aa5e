// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/converse"
)

// A file becomes plain structs, and those become the parts of a conversation.
func Example() {
	settings, err := config.Parse("consort.toml", []byte(`
[model]
name = "qwen3"
base_url = "http://localhost:11434/v1"

[mcp.files]
command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
allow = ["read_*"]
`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	settings.Conversation.Exchanges = 4 // a program may change what it read

	parts, err := config.Assemble(settings, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer parts.Close(context.Background())
	talk := converse.New(parts.Model, parts.Roster, parts.Options)
	defer talk.Close(context.Background())

	for _, e := range parts.Roster.Ensembles() {
		fmt.Println(e.Name())
	}
	// Output: files
}

// All errors are reported together.
func ExampleParse() {
	_, err := config.Parse("consort.toml", []byte(`
[mcp.weather]
comand = ["weather-server"]
call_timeout = 30
`), nil)
	fmt.Println(err)
	// Output:
	// consort.toml:2:6: mcp.weather.command: missing: expected command for a server that is started, or url for one that is running
	// consort.toml:3:1: mcp.weather.comand: unknown key; did you mean "command"?
	// consort.toml:4:16: mcp.weather.call_timeout: expected a duration such as "30s", found an integer: write it in quotes and with its unit
}
