// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
)

// A tool with another name has it everywhere, and only its server is called with its own name.
func TestToolsWithOtherNames(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "allow = [\"repeat\", \"wait\"]\n")
	path := file(t, table, "[mcp.library.tools.echo]\nname = \"repeat\"\ndescription = \"Say it again.\"\n"+
		"[mcp.library.tools.wait]\ndescription = \"Do nothing for a while.\"\n"+
		"[mcp.library.tools.gone]\nname = \"x\"\n[audit]\nlog = true\n[log]\nlevel = \"info\"\n")
	o := consort(t, "--config", path, "tools").expect(t, exit.Done)
	contains(
		t, "the list", o.stdout, "library__repeat", "Say it again.", "Do nothing for a while.", "gone",
		"the configuration overrides it, and the server has no such tool",
	)
	o = consort(t, "--config", path, "call", "library", "repeat", `{"text":"hello"}`).expect(t, exit.Done)
	contains(t, "the result", o.stdout, "hello")
	contains(t, "the audit", o.stderr, "repeat")
	lacks(t, "the audit", o.stderr, "echo")
	consort(t, "--config", path, "call", "library", "echo", `{"text":"hello"}`).expect(t, exit.Usage)
	for text, want := range map[string]string{
		"[mcp.library.tools.echo]\n": "expected name, description or both",
		"[mcp.library.tools.a]\nname = \"same\"\n[mcp.library.tools.b]\nname = \"same\"\n": "has this name too",
	} {
		wrong := file(t, table, text)
		if o := consort(t, "--config", wrong, "tools"); !strings.Contains(o.stderr, want) {
			t.Errorf("%s: %s", text, o.stderr)
		}
	}
}
