// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
)

// The values of variables are redacted also by commands that assemble nothing, or no model.
func TestVariablesWithoutAnAssembly(t *testing.T) {
	t.Setenv("CONSORT_TEST_PATH", "path-0123456789abcdef")
	path := file(t, "[model]\nname = \"claude-sonnet-5\"\nbase_url = \"http://127.0.0.1:1/${CONSORT_TEST_PATH}/v1\"\n\n[audit]\nfile = \"none/audit.jsonl\"\n"+
		"[mcp.notes]\nurl = \"http://127.0.0.1:1/${CONSORT_TEST_PATH}/mcp\"\noauth = {}\n")
	for _, line := range []string{"check --json", "check", "logins", "logins --json", "pins", "pins --json"} {
		out := consort(t, append(strings.Fields(line), "--config", path)...)
		lacks(t, line, out.stdout+out.stderr, "path-0123456789abcdef")
		if strings.HasPrefix(line, "logins") {
			contains(t, line, out.stdout, "[secret]")
		}
	}
}

// A flag that is empty, for instance because a variable of the shell is not set, is not the same as
// no flag.
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"serve --http=", "serve --grpc=", "serve --health=", "serve --engine=", "tools --search=", "resources --read=", "init --output=", "init --import=",
		"history export --output=", "history list --text=", "history list --tag=", "token new ada --expires=", "run --prompt= x", "chat --log-level=",
	} {
		contains(t, line, consort(t, strings.Fields(line)...).expect(t, exit.Usage).stderr, " is empty")
	}
	contains(t, "a limit alone", consort(t, "tools", "--limit", "5").expect(t, exit.Usage).stderr, "--limit has no effect without --search")
}

func TestToolsAreFound(t *testing.T) {
	t.Parallel()
	table, _ := library(t, forPerson)
	path := file(t, table)
	all := consort(t, "tools", "--config", path).expect(t, exit.Done).stdout
	contains(t, "all tools", all, "library__echo", "library__wait")

	o := consort(t, "tools", "--search", "waiting", "--config", path).expect(t, exit.Done)
	if !strings.HasPrefix(o.stdout, "library__wait ") {
		t.Errorf("the first that is found:\n%s", o.stdout)
	}
	lacks(t, "what is found", o.stdout, "library__echo")
	o = consort(t, "tools", "--search", "tool library", "--limit", "1", "--json", "--config", path).expect(t, exit.Done)
	var list reports.ToolList
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil || len(list.Tools) != 1 || list.Tools[0].Tokens < 10 {
		t.Errorf("%v: %s", err, o.stdout)
	}
	o = consort(t, "tools", "--search", "xyzzy", "--config", path).expect(t, exit.Done)
	if o.stdout != "no tool, resource or prompt has a word of \"xyzzy\"\n" {
		t.Errorf("nothing is found: %q", o.stdout)
	}
	o = consort(t, "tools", "--search", "xyzzy", "--json", "--config", path).expect(t, exit.Done)
	contains(t, "nothing, as JSON", o.stdout, `"tools": []`)
}

func TestTokensOfTools(t *testing.T) {
	t.Parallel()
	table, _ := library(t, forPerson)
	o := consort(t, "tools", "--tokens", "--config", file(t, table)).expect(t, exit.Done)
	contains(t, "the cost", o.stdout, "library__echo", " tools: about ", " tokens of each request\n")
	o = consort(t, "tools", "--tokens", "--config", file(t, "[compaction]\nwindow = 1000\n", table)).expect(t, exit.Done)
	contains(t, "the share", o.stdout, " % of the model's window of 1.0k\n")
	o = consort(t, "tools", "--tokens", "--config", file(t, "[tools]\n")).expect(t, exit.Done)
	contains(t, "without tools", o.stdout, "no tools\n")
}

// A value that a flag cannot have is reported without words of Go.
func TestValuesOfFlags(t *testing.T) {
	t.Parallel()
	o := consort(t, "tools", "--search", "x", "--limit", "many").expect(t, exit.Usage)
	contains(t, "standard error", o.stderr, "--limit many: expected a whole number")
	lacks(t, "standard error", o.stderr, "strconv")
	for _, limit := range []string{"0", "-1"} {
		o := consort(t, "tools", "--search", "x", "--limit", limit).expect(t, exit.Usage)
		contains(t, "standard error", o.stderr, "--limit "+limit+": expected a number of at least 1")
	}
}
