// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"slices"
	"testing"

	"github.com/consort-go/consort/config"
)

func TestImport(t *testing.T) {
	files := map[string]string{
		"tools/mcp.json": `{
  "$schema": "https://example.com/schema.json",
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "files", "${HOST}"], "env": {"KEY": "${WEATHER_API_KEY}", "NONE": ""}, "cwd": "data"},
    "web":   {"type": "streamable-http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${DATABASE_TOKEN}"}},
    "old":   {"transport": "sse", "url": "http://${env:HOST}/sse?key=${DATABASE_TOKEN}"},
    "plain": {"url": "http://${ABSENT:-localhost}:8080/mcp", "args": null, "autoApprove": ["x"]},
    "off":   {"command": "x", "env": {"K": "${ABSENT}"}, "disabled": true}
  }
}`,
	}
	c, err := parse("import = ['./tools/mcp.json']\n[mcp.own]\nurl = 'http://x'\n", files)
	if err != nil {
		t.Fatal(err)
	}
	server := func(name string) *config.Server {
		if c.MCP[name] == nil {
			t.Fatalf("there is no server %q in %v", name, c.MCP)
		}
		return c.MCP[name]
	}
	server("own")
	is := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %q, want %q", what, got, want)
		}
	}
	var command []string
	for _, argument := range server("files").Command {
		command = append(command, argument.Reveal())
	}
	if want := []string{"npx", "-y", "files", "example.host-5554"}; !slices.Equal(command, want) {
		t.Errorf("the command is %q, want %q", command, want)
	}
	is("transport", string(server("files").Transport), "stdio")
	is("environment", server("files").Environment["KEY"].Reveal(), "weather-5552")
	is("directory", server("files").Directory.Reveal(), "tools/data")
	is("origin", server("files").Origin, "tools/mcp.json:4")
	is("transport", string(server("web").Transport), "http")
	is("header", server("web").Headers["Authorization"].Reveal(), "Bearer database-5553")
	is("transport", string(server("old").Transport), "sse")
	is("url", server("old").URL.Reveal(), "http://example.host-5554/sse?key=database-5553")
	is("url as shown", server("old").URL.String(), "http://${HOST}/sse?[hidden]")
	is("transport", string(server("plain").Transport), "http")
	is("url", server("plain").URL.Reveal(), "http://localhost:8080/mcp")
	if !server("off").Disabled || server("plain").Disabled {
		t.Error("disabled is not as written")
	}
	if len(c.Ignored) != 1 {
		t.Fatalf("ignored: %v", c.Ignored)
	}
	is("ignored", c.Ignored[0].Error(), "tools/mcp.json:7:76: mcpServers.plain.autoApprove: unknown key, ignored")
}

func TestImportProblems(t *testing.T) {
	tests := []struct {
		name, json string
		want       []string
	}{
		{"no JSON", `{"mcpServers": {]}`, []string{`m.json:1:17: mcpServers: not valid JSON: invalid character ']' looking for beginning of object key string; write each key in double quotes`}},
		{"cut off", `{"mcpServers": {`, []string{`m.json:1:16: mcpServers: not valid JSON: unexpected end of JSON input; close each "{" and "["`}},
		{"nothing", ``, []string{`m.json:1:1: not valid JSON: unexpected end of JSON input; close each "{" and "["`}},
		{
			"another file", `{"tools": {}}`,
			[]string{`m.json:1:1: mcpServers: missing: expected an object of servers by name, as in {"mcpServers": {"NAME": {"command": "npx"}}}`},
		},
		{
			"a list", `[1]`,
			[]string{`m.json:1:1: mcpServers: missing: expected an object of servers by name, as in {"mcpServers": {"NAME": {"command": "npx"}}}`},
		},
		{"servers in a list", `{"mcpServers": [1]}`, []string{`m.json:1:16: mcpServers: expected a table of tables, found a list`}},
		{"twice", `{"mcpServers": {"a": {"url": "http://x"}, "a": {"url": "http://y"}, "own": {"url": "http://x"}}}`, []string{
			`m.json:1:43: mcpServers.a: defined before, on line 1; remove one of the two`,
			`m.json:1:69: mcpServers.own: another server already has this name, from consort.toml:2`}},
		{"all at once",
			"{\"mcpServers\": {\n \"a\": {\"command\": [\"x\"], \"env\": {\"A\": \"${NO}\"}},\n \"b\": {},\n" +
				" \"c\": {\"type\": \"htttp\", \"url\": \"x\"},\n \"d\": {\"command\": \"x\", \"url\": \"http://x\"},\n" +
				" \"e\": {\"type\": \"sse\", \"command\": \"x\"},\n \"f\": null, \"g\": {\"type\": 1e999, \"url\": \"http://x\"}}}",
			[]string{
				`m.json:2:19: mcpServers.a.command: expected a string, found a list`,
				`m.json:2:39: mcpServers.a.env.A: the environment variable is not set: NO; set it, or give a default with ${NO:-default}`,
				`m.json:3:2: mcpServers.b.command: missing: expected command for a server that is started, or url for one that is running`,
				`m.json:4:16: mcpServers.c.type: expected "stdio", "http", "sse", "streamable-http", "streamable_http" or "streamableHttp"; ` +
					`did you mean "http"?`,
				`m.json:4:32: mcpServers.c.url: expected a URL that begins with http:// or https:// and names a host`,
				`m.json:5:24: mcpServers.d.url: a server has either command or url, not both: remove one`,
				`m.json:6:2: mcpServers.e.url: missing: expected the address of the server, such as "url": "http://localhost:8080/mcp"`,
				`m.json:6:23: mcpServers.e.command: not for a server with type = "sse": remove it`,
				`m.json:7:7: mcpServers.f: expected a table, found null`,
				`m.json:7:27: mcpServers.g.type: expected a number of at most 64 bits`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse("import = ['m.json']\n[mcp.own]\nurl = 'http://x'\n", map[string]string{"m.json": test.json})
			wantProblems(t, err, test.want)
		})
	}
}
