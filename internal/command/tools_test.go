// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
)

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
}
