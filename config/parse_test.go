// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/config"
)

// environment is what the tests' variables are.
var environment = map[string]string{
	"OPENAI_API_KEY":  "sk-openai-5551",
	"WEATHER_API_KEY": "weather-5552",
	"DATABASE_TOKEN":  "database-5553",
	"HOST":            "example.host-5554",
	"EMPTY":           "",
	"BROKEN":          "two\nlines-5555",
}

func lookup(name string) (string, bool) {
	value, ok := environment[name]
	return value, ok
}

// parse reads text as consort.toml, next to files.
func parse(text string, files map[string]string) (*config.Config, error) {
	return config.Parse("consort.toml", []byte(text), &config.Options{
		Lookup: lookup,
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[filepath.ToSlash(path)]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	})
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"all at once", `
[modle]
[model]
base_url = "localhost:8080"
temprature = 1
top_p = 1.5
max_tokens = "many"
api_key = "env:ABSENT"
[mcp.weather]
comand = ["x"]
call_timeout = 30
connect_timeout = "5 seconds"
[mcp.db]
transport = "htpp"
url = "http://x"
`, []string{
			`consort.toml:2:2: modle: unknown key; did you mean "model"?`,
			`consort.toml:3:2: model.name: missing: expected the name of the model, such as name = "gpt-5-mini"`,
			`consort.toml:4:12: model.base_url: expected a URL that begins with http:// or https:// and names a host`,
			`consort.toml:5:1: model.temprature: unknown key; did you mean "temperature"?`,
			`consort.toml:6:9: model.top_p: expected a number from 0 to 1`,
			`consort.toml:7:14: model.max_tokens: expected an integer, found a string`,
			`consort.toml:8:11: model.api_key: the environment variable is not set: ABSENT; set it, or give a default with ${ABSENT:-default}`,
			`consort.toml:9:6: mcp.weather.command: missing: expected command for a server that is started, or url for one that is running`,
			`consort.toml:10:1: mcp.weather.comand: unknown key; did you mean "command"?`,
			`consort.toml:11:16: mcp.weather.call_timeout: expected a duration such as "30s", found an integer: write it in quotes and with its unit`,
			`consort.toml:12:19: mcp.weather.connect_timeout: expected a duration such as "30s", "1m30s" or "500ms"`,
			`consort.toml:14:13: mcp.db.transport: expected "stdio", "http" or "sse"; did you mean "http"?`,
		}},
		{"syntax", "[model]\nname = \"x\n", []string{
			`consort.toml:2:10: model.name: not valid TOML: basic strings cannot have new lines; close it with the quote with which it begins, or use three quotes for several lines`}},
		{"a table that is not closed", "[model]\nname = 'x'\n[mcp.files\ncommand = ['x']\n", []string{
			`consort.toml:3:11: not valid TOML: expected ']' to close table name`}},
		{"syntax after wide characters", "import = [\"äöü\" 'x']\n", []string{
			`consort.toml:1:17: import: not valid TOML: expected ',' or ']' after array value`}},
		{"duplicates", "[mcp.a]\nurl='http://x'\nurl='http://y'\n[mcp.b]\nurl='http://x'\n[mcp.a]\nallow=[]\n", []string{
			`consort.toml:3:1: mcp.a.url: defined before, on line 2; remove one of the two`,
			`consort.toml:6:6: mcp.a: defined before, on line 1; remove one of the two`}},
		{"duplicate in inline table", `mcp.a = {url = "http://x", headers = {A = "1", A = "2"}}`, []string{
			`consort.toml:1:48: mcp.a.headers.A: defined before, on line 1; remove one of the two`}},
		{"table over dotted keys", "mcp.a.url = 'http://x'\n[mcp.a]\nallow = ['x']\n", []string{
			`consort.toml:2:2: not valid TOML: table a already exists as defined by a dotted key`}},
		{"through a value", "import = []\nimport.x = 1\n", []string{
			`consort.toml:2:1: import: this is not a table, so nothing can be set in it`}},
		{"big numbers", "[conversation]\nexchanges = 99999999999999999999\n[model]\nname='x'\ntemperature=1e999\n", []string{
			`consort.toml:2:13: conversation.exchanges: expected an integer of at most 64 bits`,
			`consort.toml:5:13: model.temperature: expected a float of at most 64 bits`}},
		{"limits", "[conversation]\nexchanges = -1\ntokens = 0\nparallel = 1.5\ntime = '-1s'\nresult_bytes = true\n", []string{
			`consort.toml:2:13: conversation.exchanges: expected an integer of at least 1`,
			`consort.toml:3:10: conversation.tokens: expected an integer of at least 1`,
			`consort.toml:4:12: conversation.parallel: expected an integer, found a float`,
			`consort.toml:5:8: conversation.time: expected a duration longer than 0`,
			`consort.toml:6:16: conversation.result_bytes: expected an integer, found a boolean`}},
		{"command and url", "[mcp.a]\ncommand = ['x']\nurl = 'http://x'\n", []string{
			`consort.toml:3:1: mcp.a.url: a server has either command or url, not both: remove one`}},
		{"keys of the other transport", "[mcp.a]\ncommand = ['x']\nheaders = {A = 'b'}\n[mcp.b]\nurl='http://x'\ndirectory = '.'\nenvironment = {}\n", []string{
			`consort.toml:3:1: mcp.a.headers: not for a server with transport = "stdio": remove it`,
			`consort.toml:6:1: mcp.b.directory: not for a server with transport = "http": remove it`,
			`consort.toml:7:1: mcp.b.environment: not for a server with transport = "http": remove it`}},
		{"transport without its key", "[mcp.a]\ntransport = 'stdio'\n[mcp.b]\ntransport = 'sse'\n", []string{
			`consort.toml:1:6: mcp.a.command: missing: expected the program to start, such as command = ["npx", "-y", ` +
				`"@modelcontextprotocol/server-everything"]`,
			`consort.toml:3:6: mcp.b.url: missing: expected the address of the server, such as url = "http://localhost:8080/mcp"`}},
		{"commands", "mcp.a.command = 'npx -y x'\nmcp.b.command = []\nmcp.c.command = ['${EMPTY}']\nmcp.d.command = ['x', 5]\n", []string{
			`consort.toml:1:17: mcp.a.command: expected a list of strings, found a string: write each word as a string of its own, such as ` +
				`command = ["python3", "server.py"]`,
			`consort.toml:2:17: mcp.b.command: expected the program to start, not an empty list: write it, such as command = ["npx", "-y", ` +
				`"@modelcontextprotocol/server-everything"]`,
			`consort.toml:3:17: mcp.c.command: expected the program to start as the first word, not an empty string`,
			`consort.toml:4:23: mcp.d.command[1]: expected a string, found an integer`}},
		{"keys of other hosts",
			"[mcpServers.a]\ncommand = 'npx'\n[mcp.b]\ncommand = ['npx']\nargs = ['-y']\nenv = {K = 'v'}\ncwd = '.'\ntype = 'stdio'\n[servers.c]\n[ensembles.e]\n[mcp.d]\nurl = 'http://x'\nserverUrl = 'http://x'\nhttpUrl = 'http://x'\n",
			[]string{
				`consort.toml:1:2: mcpServers: unknown key: each server is a table [mcp.NAME]; a JSON file of another MCP host is read with import = ["FILE"]`,
				`consort.toml:5:1: mcp.b.args: unknown key: arguments follow the program in command, such as command = ["npx", "-y", "PACKAGE"]`,
				`consort.toml:6:1: mcp.b.env: unknown key: environment variables belong in environment, such as environment = {KEY = "env:KEY"}`,
				`consort.toml:7:1: mcp.b.cwd: unknown key; did you mean "directory"?`,
				`consort.toml:8:1: mcp.b.type: unknown key; did you mean "transport"?`,
				`consort.toml:9:2: servers: unknown key: each server is a table [mcp.NAME]; a JSON file of another MCP host is read with import = ["FILE"]`,
				`consort.toml:10:2: ensembles: unknown key: each server is a table [mcp.NAME]; a JSON file of another MCP host is read with import = ["FILE"]`,
				`consort.toml:13:1: mcp.d.serverUrl: unknown key; did you mean "url"?`,
				`consort.toml:14:1: mcp.d.httpUrl: unknown key; did you mean "url"?`}},
		{"deep lists", "a = " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "\n", []string{
			`consort.toml:1:1: a: unknown key`,
			`consort.toml:1:5: a` + strings.Repeat("[0]", 64) + `: nested more than 64 levels deep`}},
		{"deep inline tables", "[mcp.a]\nurl = 'http://x'\nsettings = " + strings.Repeat("{a=", 70) + "1" + strings.Repeat("}", 70) + "\n", []string{
			`consort.toml:3:198: mcp.a.settings` + strings.Repeat(".a", 62) + `: nested more than 64 levels deep`}},
		{"names", "[mcp.\"\"]\nurl='http://x'\n[mcp.\"my server\"]\nurl='http://x'\nheaders={\"a b\"='x', \"\"='y'}\n", []string{
			`consort.toml:1:6: mcp."": expected a name for the server, not an empty one`,
			`consort.toml:5:10: mcp."my server".headers."a b": expected the name of an HTTP header`,
			`consort.toml:5:21: mcp."my server".headers."": expected the name of an HTTP header, not an empty one`}},
		{"tables", "model = 5\n[mcp]\na = 'x'\nb = ['y']\n", []string{
			`consort.toml:1:9: model: expected a table, found an integer`,
			`consort.toml:3:5: mcp.a: expected a table, found a string`,
			`consort.toml:4:5: mcp.b: expected a table, found a list`}},
		{"variables",
			"[mcp.a]\nurl = 'http://${HOST'\n[mcp.b]\nurl='http://${1x}'\n[mcp.c]\ncommand=['${A:-${B}}', '${NO} ${NEITHER}', 'env:my-key']\n" +
				"environment={A='env:', B='env:EMPTY'}\n[mcp.d]\nurl='http://x'\nheaders={A='env:BROKEN', B='env:EMPTY'}\n",
			[]string{
				`consort.toml:2:7: mcp.a.url: "${" is not closed by "}"; for the plain text ${ write $${`,
				`consort.toml:4:5: mcp.b.url: expected the name of an environment variable: letters, digits and _; for the plain text ${ write $${`,
				`consort.toml:6:10: mcp.c.command[0]: the default of a variable cannot contain variables`,
				`consort.toml:6:24: mcp.c.command[1]: the environment variable is not set: NO; set it, or give a default with ${NO:-default}`,
				`consort.toml:6:24: mcp.c.command[1]: the environment variable is not set: NEITHER; set it, or give a default with ${NEITHER:-default}`,
				`consort.toml:6:44: mcp.c.command[2]: expected the name of an environment variable: letters, digits and _; for the plain text ${ write $${`,
				`consort.toml:7:16: mcp.c.environment.A: expected the name of an environment variable: letters, digits and _; for the plain text ${ write $${`,
				`consort.toml:10:12: mcp.d.headers.A: expected a value for an HTTP header, which holds no line breaks or other control characters`,
				`consort.toml:10:28: mcp.d.headers.B: expected a string that is not empty, but the variable is: set it`}},
		{"approval",
			"[approval]\ndefault='never'\n[[approval.rules]]\ntools='x'\n[[approval.rules]]\naction='allow'\nreason='x'\nread_only='yes'\ntools=['']\n",
			[]string{
				`consort.toml:2:9: approval.default: expected "allow", "deny", "ask" or "defer"; did you mean "defer"?`,
				`consort.toml:3:12: approval.rules[0].action: missing: expected "allow", "deny", "ask" or "defer"`,
				`consort.toml:4:7: approval.rules[0].tools: expected a list of strings, found a string`,
				`consort.toml:7:1: approval.rules[1].reason: only a rule with action = "deny" gives a reason`,
				`consort.toml:8:11: approval.rules[1].read_only: expected true or false, found a string`,
				`consort.toml:9:8: approval.rules[1].tools[0]: expected a string that is not empty`}},
		{"protocol", "[mcp.a]\nurl='http://x'\nprotocol=2025-11-25\n[mcp.b]\nurl='http://x'\nprotocol='2'\n", []string{
			`consort.toml:3:10: mcp.a.protocol: expected a protocol version such as "2025-11-25", in quotes, found a date or time`,
			`consort.toml:6:10: mcp.b.protocol: expected a protocol version such as "2025-11-25", in quotes`}},
		{"life of a server",
			"public_variables=['A', 'x-y', '']\n[mcp.a]\nurl='http://x'\nrestart='on-use'\npark_after=-1\npark_window='0s'\nkeepalive=5\n" +
				"idle_disconnect='x'\ntrust='writes'\nmax_tools=0\ncall_limit=1\n",
			[]string{
				`consort.toml:1:24: public_variables[1]: expected the name of an environment variable: letters, digits and _`,
				`consort.toml:1:31: public_variables[2]: expected a string that is not empty`,
				`consort.toml:4:9: mcp.a.restart: expected "on_use", "always" or "never"; did you mean "on_use"?`,
				`consort.toml:5:12: mcp.a.park_after: expected an integer of at least 0`,
				`consort.toml:6:13: mcp.a.park_window: expected a duration longer than 0`,
				`consort.toml:7:11: mcp.a.keepalive: expected a duration such as "30s", found an integer: write it in quotes and with its unit`,
				`consort.toml:8:17: mcp.a.idle_disconnect: expected a duration such as "30s", "1m30s" or "500ms"`,
				`consort.toml:9:7: mcp.a.trust: expected "none", "reads" or "all"`,
				`consort.toml:10:11: mcp.a.max_tools: expected an integer of at least 1`,
				`consort.toml:11:12: mcp.a.call_limit: expected a duration such as "30s", found an integer: write it in quotes and with its unit`}},
		{"resource limits",
			"[mcp]\na={command=['x'], limits={memory='2gb', open_files=0, cpu=10, disk=1}}\nb={url='http://x', limits={}}\n" +
				"c={command=['x'], limits={memory=0, cpu='0s'}}\n" +
				"d={command=['x'], limits={memory=true, open_files='64'}}\ne={command=['x'], limits={memory='8388608TiB'}}\n" +
				"f={command=['x'], limits={memory='99999999999999999999B'}}\n" +
				"g={command=['x'], limits={memory='0GiB'}}\nh={command=['x'], limits={memory=''}}\ni={command=['x'], limits={memory='GiB'}}\n" +
				"j={command=['x'], limits={memory='12'}}\nk={command=['x'], limits={memory='+1B'}}\nl={command=['x'], limits=1}\n", []string{
				`consort.toml:2:34: mcp.a.limits.memory: expected a size such as "512MiB", "2GiB" or "1GB", or an integer of bytes`,
				`consort.toml:2:52: mcp.a.limits.open_files: expected an integer of at least 1`,
				`consort.toml:2:59: mcp.a.limits.cpu: expected a duration such as "30s", found an integer: write it in quotes and with its unit`,
				`consort.toml:2:63: mcp.a.limits.disk: unknown key`,
				`consort.toml:3:20: mcp.b.limits: not for a server with transport = "http": remove it`,
				`consort.toml:4:34: mcp.c.limits.memory: expected an integer of at least 1`,
				`consort.toml:4:41: mcp.c.limits.cpu: expected a duration longer than 0`,
				`consort.toml:5:34: mcp.d.limits.memory: expected a size such as "512MiB", found a boolean`,
				`consort.toml:5:51: mcp.d.limits.open_files: expected an integer, found a string`,
				`consort.toml:6:34: mcp.e.limits.memory: expected a smaller size`,
				`consort.toml:7:34: mcp.f.limits.memory: expected a smaller size`,
				`consort.toml:8:34: mcp.g.limits.memory: expected a size of at least 1 byte`,
				`consort.toml:9:34: mcp.h.limits.memory: expected a size such as "512MiB", "2GiB" or "1GB", or an integer of bytes`,
				`consort.toml:10:34: mcp.i.limits.memory: expected a size such as "512MiB", "2GiB" or "1GB", or an integer of bytes`,
				`consort.toml:11:34: mcp.j.limits.memory: expected a size such as "512MiB", "2GiB" or "1GB", or an integer of bytes`,
				`consort.toml:12:34: mcp.k.limits.memory: expected a size such as "512MiB", "2GiB" or "1GB", or an integer of bytes`,
				`consort.toml:13:26: mcp.l.limits: expected a table, found an integer`}},
		{"pins",
			"[mcp]\na={url='http://x', pin_policy='warn'}\nb={url='http://x', pin='', pin_policy='aside'}\nc={url='http://x', pin='p', pin_policy='allow'}\n",
			[]string{
				`consort.toml:2:20: mcp.a.pin_policy: the tools of this server are not pinned; set pin, such as pin = "tools.pins.json"`,
				`consort.toml:3:24: mcp.b.pin: expected a string that is not empty`,
				`consort.toml:3:39: mcp.b.pin_policy: expected "set_aside", "warn" or "allow"; did you mean "set_aside"?`}},
		{"parking",
			"[mcp]\na={url='http://x', restart='never', park_after=1, park_window='1s'}\nb={url='http://x', park_window='1s'}\n" +
				"c={url='http://x', restart='always', park_after=0, park_window='1s'}\nd={url='http://x', restart='always', park_window='1s'}\n" +
				"e={url='http://x', park_after=2, park_window='1s'}\n",
			[]string{
				`consort.toml:2:37: mcp.a.park_after: with restart = "never", the first failure parks the server`,
				`consort.toml:2:51: mcp.a.park_window: failures are not counted without park_after; set park_after`,
				`consort.toml:3:20: mcp.b.park_window: failures are not counted without park_after; set park_after`,
				`consort.toml:4:52: mcp.c.park_window: failures are not counted without park_after; set park_after`}},
		{"model", "[model]\nname=''\nbase_url='http://me:secret-777@x/v1'\nextra_body={model='y', x=nan}\nmax_retries=-1\nstop='x'\n", []string{
			`consort.toml:2:6: model.name: expected a string that is not empty`,
			`consort.toml:3:10: model.base_url: expected a URL without a user, a password or a fragment; set credentials in api_key or headers`,
			`consort.toml:4:13: model.extra_body.model: the program sets this member of the request itself`,
			`consort.toml:4:26: model.extra_body.x: expected a finite number`,
			`consort.toml:5:13: model.max_retries: expected an integer of at least 0`,
			`consort.toml:6:6: model.stop: expected a list of strings, found a string`}},
		{"import that is not there", "import = ['./no.json', 5, '']\n", []string{
			`consort.toml:1:11: import[0]: cannot read the file: file does not exist`,
			`consort.toml:1:24: import[1]: expected a string, found an integer`,
			`consort.toml:1:27: import[2]: expected a string that is not empty`}},
		{"trusted",
			"[trusted]\na=''\nb=1.5\nc={}\nd={value=1, json=true}\ne={value='{', json=true}\nf={valeu='x', value='env:EMPTY', secret='no'}\n''='x'\n" +
				"g=['x']\nh={value='env:ABSENT'}\n",
			[]string{
				`consort.toml:2:3: trusted.a: expected a string that is not empty`,
				`consort.toml:3:3: trusted.b: expected a string with variables, an integer or a boolean, found a float`,
				`consort.toml:4:1: trusted.c.value: missing: expected the value, such as value = "env:USER_ID"`,
				`consort.toml:5:13: trusted.d.json: only for a value that is a string`,
				`consort.toml:6:10: trusted.e.value: expected JSON, such as 42`,
				`consort.toml:7:4: trusted.f.valeu: unknown key; did you mean "value"?`,
				`consort.toml:7:21: trusted.f.value: expected a string that is not empty, but the variable is: set it`,
				`consort.toml:7:41: trusted.f.secret: expected true or false, found a string`,
				`consort.toml:8:1: trusted."": expected a name for the trusted value, not an empty one`,
				`consort.toml:9:3: trusted.g: expected a string with variables, an integer or a boolean, found a list: ` +
					`write it as JSON, such as {value = '["a", "b"]', json = true}`,
				`consort.toml:10:10: trusted.h.value: the environment variable is not set: ABSENT; set it, or give a default with ${ABSENT:-default}`}},
		{"passing",
			"[mcp.a]\ncommand=['x']\ntrusted={arguments={id='user', ''='x'}, headers={X-User='user'}}\n[mcp.b]\nurl='http://x'\n" +
				"headers={authorization='x'}\ntrusted={argument={}, headers={Authorization='token', 'a b'='c', d=''}}\n[mcp.c]\nurl='http://x'\n" +
				"trusted={arguments=['a'], headers=1}\n",
			[]string{
				`consort.toml:3:32: mcp.a.trusted.arguments."": expected the name of an argument, not an empty one`,
				`consort.toml:3:41: mcp.a.trusted.headers: not for a server with transport = "stdio"; its tools receive a trusted value through arguments`,
				`consort.toml:7:10: mcp.b.trusted.argument: unknown key; did you mean "arguments"?`,
				`consort.toml:7:32: mcp.b.trusted.headers.Authorization: this header is set in headers already`,
				`consort.toml:7:55: mcp.b.trusted.headers."a b": expected the name of an HTTP header`,
				`consort.toml:7:68: mcp.b.trusted.headers.d: expected a string that is not empty`,
				`consort.toml:10:20: mcp.c.trusted.arguments: expected a table of strings, found a list`,
				`consort.toml:10:35: mcp.c.trusted.headers: expected a table of strings, found an integer`}},
		{"audit that goes nowhere", "[audit]\nlog=false\nomit='x'\nargument_bytes=63\nidentities=['user']\nsync=false\n", []string{
			`consort.toml:1:2: audit.file: missing: expected a destination for the records, such as file = "audit.jsonl", or log = true`,
			`consort.toml:3:6: audit.omit: expected a list of strings, found a string`,
			`consort.toml:4:16: audit.argument_bytes: expected an integer of at least 64`,
			`consort.toml:5:1: audit.identities: unknown key; did you mean "identity"?`,
			`consort.toml:6:1: audit.sync: only for a file`}},
		{"audit into a log that does not take it", "audit={log=true}", []string{
			`consort.toml:1:8: audit.log: records are logged at level info; set level = "info" in [log]`}},
		{"audit into a higher log", "audit={log=true}\nlog={level='warn'}", []string{
			`consort.toml:1:8: audit.log: records are logged at level info; set level = "info" in [log]`}},
		{"history", "[history]\nstore='paper'\nfolder='x'\n", []string{
			`consort.toml:1:2: history.path: missing: expected the place of the conversations, such as path = "history.db"`,
			`consort.toml:2:7: history.store: expected "sqlite", "files", "postgres" or "none"`,
			`consort.toml:3:1: history.folder: unknown key`}},
		{"history on a server", "[history]\nstore='postgres'\npath='x'\nschema=''\n", []string{
			`consort.toml:1:2: history.dsn: missing: expected the address of the server, such as dsn = "env:DATABASE_URL"`,
			`consort.toml:3:1: history.path: not for store = "postgres", whose place is set by dsn`,
			`consort.toml:4:8: history.schema: expected a string that is not empty`}},
		{"history on none", "[history]\npath='x'\ndsn='env:EMPTY'\nschema='talks'\n", []string{
			`consort.toml:3:1: history.dsn: only for store = "postgres"`,
			`consort.toml:3:5: history.dsn: expected a string that is not empty, but the variable is: set it`,
			`consort.toml:4:1: history.schema: only for store = "postgres"`}},
		{"history nowhere", "[history]\nstore='none'\npath='x'\nkeep='1h'\n", []string{
			`consort.toml:3:1: history.path: not for store = "none", which stores nothing`,
			`consort.toml:4:1: history.keep: not for store = "none", which stores nothing`}},
		{"compaction", "[compaction]\nat=1.5\nkeep=0\ntrim=-1\nmodel=''\nmax_tokens='x'\n", []string{
			`consort.toml:2:1: compaction.at: this is a share of window, which is not set; set window, in tokens`,
			`consort.toml:2:4: compaction.at: expected a number from 0.01 to 1`,
			`consort.toml:3:6: compaction.keep: expected an integer of at least 1`,
			`consort.toml:4:6: compaction.trim: expected an integer of at least 0`,
			`consort.toml:5:7: compaction.model: expected a string that is not empty`,
			`consort.toml:6:12: compaction.max_tokens: expected an integer, found a string`}},
		{"budgets",
			"[budgets]\ncaps=[{}, {scope='me', tokens=0}, {scope='roster', window='year', money=2}]\n" +
				"prices={x={input='0.25'}, y={input='1,5', output='-1'}, ''={input='1', output='1'}}\nanswer_tokens=1\n[model]\nname='x'\nbase_url='http://x'",
			[]string{
				`consort.toml:2:7: budgets.caps[0].scope: missing: expected "conversation", "identity" or "roster"`,
				`consort.toml:2:7: budgets.caps[0].tokens: missing: expected a limit of tokens, money or time`,
				`consort.toml:2:18: budgets.caps[1].scope: expected "conversation", "identity" or "roster"`,
				`consort.toml:2:31: budgets.caps[1].tokens: expected an integer of at least 1`,
				`consort.toml:2:59: budgets.caps[2].window: expected "hour", "day" or "month"`,
				`consort.toml:2:67: budgets.caps[2].money: a cap of money needs a currency; set budgets.currency, such as currency = "USD"`,
				`consort.toml:2:73: budgets.caps[2].money: expected an amount such as "2.50", found an integer`,
				`consort.toml:3:9: budgets.prices.x.output: missing: expected the price of a million tokens, such as output = "0.25"`,
				`consort.toml:3:36: budgets.prices.y.input: expected an amount such as "2.50": digits, with up to six more after a decimal point`,
				`consort.toml:3:50: budgets.prices.y.output: expected an amount such as "2.50": digits, with up to six more after a decimal point`,
				`consort.toml:3:57: budgets.prices."": expected the name of a model, not an empty one`,
				`consort.toml:4:15: budgets.answer_tokens: expected an integer of at least 16`}},
		{"budgets without caps", "budgets={}\n", []string{
			`consort.toml:1:1: budgets.caps: missing: expected at least one cap, such as caps = [{scope = "conversation", tokens = 1000000}]`}},
		{"budgets of money",
			"[budgets]\ncurrency='USD'\n" +
				"caps=[{scope='roster', money='1', tokens=5}, {scope='roster', window='day', tokens=5}, {scope='roster', tokens=6}]\n[model]\n" +
				"name='x'\nbase_url='http://x'",
			[]string{
				`consort.toml:1:2: budgets.prices: missing: expected the price of the model of [model], which a cap of money needs`,
				`consort.toml:3:105: budgets.caps[2].tokens: another cap limits the tokens of the same scope and window already`}},
		{"deferring",
			"[approval]\ndefault='later'\nwithin='0s'\nrules=[{action='ask', within='1h', who='ann'}, {action='defer', reason='no'}, {within='1h'}]\n" +
				"[history]\npath='x'\ndoubt='maybe'\n",
			[]string{
				`consort.toml:2:9: approval.default: expected "allow", "deny", "ask" or "defer"`,
				`consort.toml:3:8: approval.within: expected a duration longer than 0`,
				`consort.toml:4:23: approval.rules[0].within: only for a rule with action = "defer"`,
				`consort.toml:4:36: approval.rules[0].who: only for a rule with action = "defer"`,
				`consort.toml:4:65: approval.rules[1].reason: only a rule with action = "deny" gives a reason`,
				`consort.toml:4:79: approval.rules[2].action: missing: expected "allow", "deny", "ask" or "defer"`,
				`consort.toml:7:7: history.doubt: expected "report" or "ask"`}},
		{"keeping", "[history]\npath='x'\nkeep='0s'\nrules=[{keep='1h'}, {tag='', owner='x'}, {tag='x', keep=30}]\nprune_open='yes'\n", []string{
			`consort.toml:3:6: history.keep: expected a duration longer than 0`,
			`consort.toml:4:8: history.rules[0].tag: missing: expected tag, owner, or both, to select the conversations of this rule; for ` +
				`all conversations, set history.keep`,
			`consort.toml:4:26: history.rules[1].tag: expected a string that is not empty`,
			`consort.toml:4:57: history.rules[2].keep: expected a duration such as "30s", found an integer: write it in quotes and with its unit`,
			`consort.toml:5:12: history.prune_open: expected true or false, found a string`}},
		{"tools", "[tools]\nresource=true\nresources='yes'\n", []string{
			`consort.toml:2:1: tools.resource: unknown key; did you mean "resources"?`,
			`consort.toml:3:11: tools.resources: expected true or false, found a string`}},
		{"tools whose name is taken", "[tools]\nresources=true\n[mcp.resources]\nurl='http://x'\n", []string{
			`consort.toml:2:1: tools.resources: these tools are offered under the name "resources", which a server here already has; rename that server`}},
		{"tools that are found", "[tools]\nmode='some'\npinned=['a__*']\nshare=0.2\n", []string{
			`consort.toml:2:6: tools.mode: expected "all", "search" or "auto"`,
			`consort.toml:3:1: tools.pinned: all tools are shown; set mode = "search" or mode = "auto"`,
			`consort.toml:4:1: tools.share: only for mode = "auto"`}},
		{"the name of tools that are found", "[tools]\nmode='auto'\nshare=0\n[mcp.tools]\nurl='http://x'\n", []string{
			`consort.toml:2:1: tools.mode: these tools are offered under the name "tools", which a server here already has; rename that server`,
			`consort.toml:3:1: tools.share: expected a number above 0; to show no tools but the pinned ones, set mode = "search"`}},
		{"serving without HTTP", "[serve]\ntoken='0123456789abcdef'\nhosts=['x']\nrate=1\nopen=true\nstateless=true\nmax_body=1\nconverse=true\n", []string{
			`consort.toml:5:1: serve.open: a server that requires a token is not open`,
			`consort.toml:8:1: serve.converse: conversations need a model; add a [model] table`}},
		{"serving",
			"[serve]\nhttp='8080'\nhealth='localhost:http'\ntoken='Bearer 0123456789abcdef'\nclients=[]\nhosts=['http://x', 'x/y', 'x:80', '']\n" +
				"origins=['x.example', 'https://x/', 'https://x:1']\nrate=0\nburst=0\nparallel=0\nmax_body='x'\npage_size=0\nown_name=true\n" +
				"resource_metadata={scopes='x', authorization_servers=['x']}\n",
			[]string{
				`consort.toml:2:6: serve.http: expected an address such as "127.0.0.1:8080"; port 0 chooses a free one`,
				`consort.toml:3:8: serve.health: expected an address such as "127.0.0.1:8080"; port 0 chooses a free one`,
				`consort.toml:4:1: serve.token: a server has either token or clients, not both; give this token to one of the clients`,
				`consort.toml:4:7: serve.token: expected a bearer token: letters, digits and -._~+/, without the word Bearer`,
				`consort.toml:5:9: serve.clients: expected at least one client`,
				`consort.toml:6:8: serve.hosts[0]: expected the name of a host, such as "tools.example.com" or "tools.example.com:8080"`,
				`consort.toml:6:20: serve.hosts[1]: expected the name of a host, such as "tools.example.com" or "tools.example.com:8080"`,
				`consort.toml:6:35: serve.hosts[3]: expected a string that is not empty`,
				`consort.toml:7:10: serve.origins[0]: expected the origin of a web page, such as "https://app.example.com", without a path`,
				`consort.toml:7:23: serve.origins[1]: expected the origin of a web page, such as "https://app.example.com", without a path`,
				`consort.toml:8:6: serve.rate: expected a number of at least 0.001`,
				`consort.toml:9:7: serve.burst: expected an integer of at least 1`,
				`consort.toml:10:10: serve.parallel: expected an integer of at least 1`,
				`consort.toml:11:10: serve.max_body: expected a size such as "512MiB", "2GiB" or "1GB", or an integer of bytes`,
				`consort.toml:12:11: serve.page_size: expected an integer of at least 1`,
				`consort.toml:13:1: serve.own_name: unknown key; did you mean "own_names"?`,
				`consort.toml:14:1: serve.resource_metadata.resource: missing: expected the URL of this server, such as resource = ` +
					`"https://tools.example.com/mcp"`,
				`consort.toml:14:27: serve.resource_metadata.scopes: expected a list of strings, found a string`,
				`consort.toml:14:55: serve.resource_metadata.authorization_servers[0]: expected a URL that begins with http:// or https:// and names a host`}},
		{"clients",
			"[serve]\nhttp='0.0.0.0:0'\nburst=2\n[[serve.clients]]\ntrusted={user=''}\n[[serve.clients]]\ntoken='0123456789abcdef'\n" +
				"[[serve.clients]]\ntoken='0123456789abcdef'\ntrust={}\n[[serve.clients]]\ntoken='short'\n",
			[]string{
				`consort.toml:3:1: serve.burst: only together with rate, which limits the requests; set rate`,
				`consort.toml:4:9: serve.clients[0].token: missing: expected the token that the client sends, such as token = ` +
					`"env:ADA_TOKEN", its hash (consort token new makes both), or the name in its certificate`,
				`consort.toml:5:15: serve.clients[0].trusted.user: expected a string that is not empty`,
				`consort.toml:9:7: serve.clients[2].token: another client already has this token`,
				`consort.toml:10:1: serve.clients[2].trust: unknown key; did you mean "trusted"?`,
				`consort.toml:12:7: serve.clients[3].token: expected a token of at least 16 characters, such as the output of openssl rand -hex 32`}},
		{"rules of clients",
			"[serve]\nhttp='0.0.0.0:0'\n[[serve.clients]]\ntoken='0123456789abcdef'\nallow=['x']\n[[serve.clients]]\ntoken='0123456789abcdeg'\n" +
				"name='ada'\ndeny=[]\n[[serve.rules]]\nclients=['bob']\n[[serve.rules]]\naction='defer'\ntools=[]\n" +
				"[[serve.rules]]\naction='deny'\nprompts=['x']\nread_only=true\n" +
				"[[serve.rules]]\naction='deny'\nwho='ann'\nwithin='1h'\n[[serve.rules]]\naction='ask'\nprompts=['x']\nresources=['x']\n" +
				"[[serve.clients]]\ntoken='0123456789abcdeh'\napprove='ask'\n[[serve.clients]]\ntoken='0123456789abcdei'\nname='eve'\napprove='deny'\n",
			[]string{
				`consort.toml:5:1: serve.clients[0].allow: only for a client with a name; set name, such as name = "ada"`,
				`consort.toml:9:6: serve.clients[1].deny: expected at least one element; "*" matches everything`,
				`consort.toml:10:9: serve.rules[0].action: missing: expected "allow", "deny" or "ask"`,
				`consort.toml:11:10: serve.rules[0].clients[0]: no client has such a name; there are ada, eve`,
				`consort.toml:13:8: serve.rules[1].action: expected "allow", "deny" or "ask"`,
				`consort.toml:14:7: serve.rules[1].tools: expected at least one element; "*" matches everything`,
				`consort.toml:17:1: serve.rules[2].prompts: a rule with a hint is about tools, which alone have hints; make it two rules`,
				`consort.toml:21:1: serve.rules[3].who: only for a rule with action = "ask"`,
				`consort.toml:22:1: serve.rules[3].within: only for a rule with action = "ask"`,
				`consort.toml:25:1: serve.rules[4].prompts: a rule that asks is about tools, which alone are called`,
				`consort.toml:26:1: serve.rules[4].resources: a rule that asks is about tools, which alone are called`,
				`consort.toml:29:1: serve.clients[2].approve: only for a client with a name; set name, such as name = "ada"`,
				`consort.toml:33:9: serve.clients[3].approve: expected "allow" or "ask"`}},
		{"budgets of clients", "[serve]\nhttp='127.0.0.1:0'\n[[serve.budgets]]\nclients=[]\n[[serve.budgets]]\nwindow='year'\ncalls=0\n", []string{
			`consort.toml:3:9: serve.budgets[0].window: missing: expected "hour", "day" or "month"`,
			`consort.toml:3:9: serve.budgets[0].calls: missing: expected the number of calls, such as calls = 1000`,
			`consort.toml:4:9: serve.budgets[0].clients: expected at least one element; "*" matches everything`,
			`consort.toml:6:8: serve.budgets[1].window: expected "hour", "day" or "month"`,
			`consort.toml:7:7: serve.budgets[1].calls: expected an integer of at least 1`}},
		{"profiles",
			"[serve]\nhttp='127.0.0.1:0'\n[[serve.clients]]\ntoken='0123456789abcdef'\nprofile='x'\n[[serve.clients]]\ntoken='0123456789abcdeg'\n" +
				"name='ada'\nprofile='none'\n[[serve.profiles]]\nname='x'\nallow=[]\n[[serve.profiles]]\nname='x'\n[[serve.profiles]]\nname='a/b'\n" +
				"[[serve.profiles]]\ndeny=['x']\n",
			[]string{
				`consort.toml:5:1: serve.clients[0].profile: only for a client with a name; set name, such as name = "ada"`,
				`consort.toml:9:9: serve.clients[1].profile: no profile has this name; add it to [[serve.profiles]]`,
				`consort.toml:12:7: serve.profiles[0].allow: expected at least one element; "*" matches everything`,
				`consort.toml:14:6: serve.profiles[1].name: another profile already has this name`,
				`consort.toml:16:6: serve.profiles[2].name: expected letters, digits, - and _, because the name is part of a URL`,
				`consort.toml:17:9: serve.profiles[3].name: missing: expected the end of its path, such as name = "coding" for /mcp/coding`}},
		{"certificates",
			"[serve]\ngrpc='0.0.0.0:0'\ngrpc_tls={certificate='c.pem', client_ca=''}\n[[serve.clients]]\ncertificate='a'\n[[serve.clients]]\n" +
				"certificate='a'\n" +
				"[[serve.clients]]\ncertificate='b'\ntoken='0123456789abcdef'\n[[serve.clients]]\ncertificate=''\n", []string{
				`consort.toml:3:1: serve.grpc_tls.key: missing: expected the file of the certificate's key, such as key = "server.key"`,
				`consort.toml:3:42: serve.grpc_tls.client_ca: expected a string that is not empty`,
				`consort.toml:7:13: serve.clients[1].certificate: another client already has this name`,
				`consort.toml:9:1: serve.clients[2].certificate: a client is identified by one of token, token_hash and certificate; make it two clients`,
				`consort.toml:12:13: serve.clients[3].certificate: expected a string that is not empty`}},
		{"certificates of nobody", "[serve]\nhttp='127.0.0.1:0'\ngrpc='0.0.0.0:0'\ngrpc_tls={certificate='c', key='k'}\nclients=[{certificate='a'}]\n",
			[]string{
				`consort.toml:2:6: serve.http: the clients are identified by certificates, which HTTP does not request: set ` +
					`http_tls.client_ca, give one of them a token, or serve only gRPC`,
				`consort.toml:3:6: serve.grpc: the clients are identified by certificates, which gRPC does not request: set ` +
					`grpc_tls.client_ca, give one of them a token, or serve only HTTP`,
				`consort.toml:5:11: serve.clients[0].certificate: the server does not request client certificates; set client_ca of http_tls or grpc_tls`}},
		{"certificates over HTTP only", "[serve]\nhttp='127.0.0.1:0'\ngrpc='127.0.0.1:0'\nhttp_tls={certificate='c', key='k', client_ca='a'}\n" +
			"clients=[{certificate='a'}]\n", []string{
			`consort.toml:3:6: serve.grpc: the clients are identified by certificates, which gRPC does not request: set ` +
				`grpc_tls.client_ca, give one of them a token, or serve only HTTP`}},
		{"TLS of nothing", "[serve]\nhttp='127.0.0.1:0'\ngrpc_tls={key='k'}\n", []string{
			`consort.toml:3:1: serve.grpc_tls.certificate: missing: expected the file of this server's certificate, such as certificate = "server.pem"`}},
		{"everybody", "serve={http='0.0.0.0:80', converse=false}", []string{
			`consort.toml:1:13: serve.http: without a token, anyone who can reach this address can call the tools: set token, clients or oidc, ` +
				`listen at 127.0.0.1 only, or allow it with open = true`}},
		{"everybody at a name", "serve={http='tools.example:80'}", []string{
			`consort.toml:1:13: serve.http: without a token, anyone who can reach this address can call the tools: set token, clients or oidc, ` +
				`listen at 127.0.0.1 only, or allow it with open = true`}},
		{"spelling of keys", "[mcp.a]\nurl='http://x'\ncallTimeout='1s'\nConnect-Timeout='1s'\nqqqqqqqq=1\n", []string{
			`consort.toml:3:1: mcp.a.callTimeout: unknown key; did you mean "call_timeout"?`,
			`consort.toml:4:1: mcp.a.Connect-Timeout: unknown key; did you mean "connect_timeout"?`,
			`consort.toml:5:1: mcp.a.qqqqqqqq: unknown key`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(test.text, nil)
			wantProblems(t, err, test.want)
		})
	}
}

func wantProblems(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want\n%s", strings.Join(want, "\n"))
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\n\nwant\n%s", got, strings.Join(want, "\n"))
	}
	for name, value := range environment {
		if value != "" && strings.Contains(err.Error(), value[len(value)-4:]) {
			t.Errorf("the error shows the value of %s", name)
		}
	}
}

func TestErrorIsAndAs(t *testing.T) {
	_, err := parse("import = ['no.json']\n[mcp.a]\nurl = 'http://${NO}'\n", nil)
	if !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, config.ErrVariable) {
		t.Errorf("the causes are not in the chain of %v", err)
	}
	var problem *config.Problem
	if !errors.As(err, &problem) || problem.Key != "import[0]" || problem.Line != 1 || problem.Column != 11 {
		t.Errorf("the first problem is %+v", problem)
	}
	var all *config.Error
	if !errors.As(err, &all) || len(all.Problems) != 2 {
		t.Errorf("the problems are %v", all)
	}
	if _, err := config.Load(filepath.Join(t.TempDir(), "no.toml"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of nothing: %v", err)
	}
}

func TestBounds(t *testing.T) {
	for name, text := range map[string]string{
		"size":   strings.Repeat("#", 1<<20+1),
		"depth":  "settings = " + strings.Repeat("[", 100_000),
		"dotted": strings.Repeat("a.", 1000) + "a = 1",
	} {
		if _, err := parse(text, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	_, err := parse("import = ['x.json']", map[string]string{"x.json": strings.Repeat("[", 5000) + strings.Repeat("]", 5000)})
	wantProblems(t, err,
		[]string{`x.json:1:65: [0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: nested more than 64 levels deep`})
	big := filepath.Join(t.TempDir(), "big.toml")
	if err := os.WriteFile(big, []byte(strings.Repeat("#", 1<<20+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(big, nil); err == nil {
		t.Error("a file that is too large was loaded")
	}
}

// TestRequirements loads the examples of the document that the runtime was
// asked for by, letter by letter.
func TestRequirements(t *testing.T) {
	c, err := parse(`
# Stdio MCP server configuration
[mcp.weather]
transport = "stdio"
command = ["python", "-m", "weather_mcp_server"]
environment = {WEATHER_API_KEY = "env:WEATHER_API_KEY"}

# HTTP MCP server configuration
[mcp.database]
transport = "http"
url = "http://localhost:8080/mcp"
headers = {Authorization = "env:DATABASE_TOKEN"}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	weather, database := c.MCP["weather"], c.MCP["database"]
	if weather.Transport != config.Stdio || len(weather.Command) != 3 || weather.Environment["WEATHER_API_KEY"].Reveal() != "weather-5552" {
		t.Errorf("weather is %+v", weather)
	}
	if database.Transport != config.HTTP || database.URL.Reveal() != "http://localhost:8080/mcp" ||
		database.Headers["Authorization"].Reveal() != "database-5553" {
		t.Errorf("database is %+v", database)
	}
}

// TestTOMLShapes reads one server written in the ways that TOML has for it.
func TestTOMLShapes(t *testing.T) {
	for _, text := range []string{
		"[mcp.a]\ncommand = ['x', 'y']\ncall_timeout = '2s'\n",
		"mcp.a.command = ['x', 'y']\nmcp.a.call_timeout = '2s'\n",
		"mcp = {a = {command = ['x', 'y'], call_timeout = '2s'}}\n",
		"[mcp]\n'a'.command = [\n'''x''', # one\n\"\\u0079\",\n]\n\"a\".call_timeout = '2s'\n",
		"\ufeff[mcp.a]\r\ncommand = ['x', 'y']\r\ncall_timeout = '2s'\r\n",
	} {
		c, err := parse(text, nil)
		if err != nil {
			t.Errorf("%v\nin\n%s", err, text)
			continue
		}
		if a := c.MCP["a"]; a == nil || len(a.Command) != 2 || a.Command[1].Reveal() != "y" || a.CallTimeout != 2*time.Second {
			t.Errorf("%q is read as %+v", text, a)
		}
	}
}

// TestKeysOfAnAPI: a key that the API of the model does not have is an error with its
// place, and with the line to change.
func TestKeysOfAnAPI(t *testing.T) {
	for text, says := range map[string]string{
		"[model]\nname = \"m\"\nseed = 7\n": `consort.toml:3:8: model.seed: OpenAI's Responses API does not have it: remove seed, or set api = "chat"`,
		"[model]\nname = \"m\"\nbase_url = \"http://localhost:1/v1\"\n" +
			"hosted_tools = [{type = \"web_search\"}]\n": `remove hosted_tools, or set api = "responses"`,
		"[model]\nname = \"m\"\nbase_url = \"http://localhost:1/v1\"\napi = \"responses\"\nstop = [\"x\"]\n": `remove stop, or set api = "chat"`,
	} {
		if _, err := config.Parse("consort.toml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\n%v, want %q", text, err, says)
		}
	}
	for _, text := range []string{
		"[model]\nname = \"m\"\nseed = 7\napi = \"chat\"\n", "[model]\nname = \"m\"\nbase_url = \"http://localhost:1/v1\"\nseed = 7\n",
	} {
		if _, err := config.Parse("consort.toml", []byte(text), nil); err != nil {
			t.Error(err)
		}
	}
}
