// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/audit"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// writeOfGit returns the tool write of the ensemble git.
func writeOfGit(t *testing.T) *ensemble.Tool {
	t.Helper()
	write, err := invoker.New("write", "Write.", func(context.Context, struct{}) (string, error) { return "written", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	git := ensemble.New("git", ensemble.LocalSource(write), nil)
	t.Cleanup(func() { _ = git.Close(context.Background()) })
	tools, err := git.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tools[0]
}

// A rule that asks, and approve of a client, hide nothing but what reaches others, and
// their calls do not run without an approval.
func TestAsk(t *testing.T) {
	const text = threeClients + `approve = "ask"
[[serve.rules]]
action = "ask"
clients = ["free"]
tools = ["write", "converse"]
[history]
store = "none"
`
	cfg := parsed(t, text)
	parts, err := config.Assemble(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(t.Context())
	write := writeOfGit(t)
	may := clientsOf(t, text)
	for _, c := range []struct {
		client, tool string
		ensemble     string
		readOnly     bool
		sees, asked  bool
	}{
		{client: "free", ensemble: "git", tool: "write", sees: true, asked: true},
		{client: "free", ensemble: "git", tool: "write", readOnly: true, sees: true, asked: true},
		{client: "free", ensemble: "git", tool: "read", sees: true},
		{client: "free", tool: "converse", sees: true, asked: true},
		{client: "ada", ensemble: "git", tool: "write", sees: true, asked: true},
		{client: "ada", ensemble: "git", tool: "write", readOnly: true, sees: true},
		{client: "ada", tool: "converse", asked: true},
		{client: "", ensemble: "git", tool: "write", sees: true},
		{client: "", tool: "converse", sees: true},
	} {
		item := ensemble.Item{Kind: ensemble.ToolItem, Ensemble: c.ensemble, Name: c.tool, Hints: invoker.Hints{ReadOnly: c.readOnly}}
		if got := may(c.client, item); got != c.sees {
			t.Errorf("%+v: the client sees it: %v", c, got)
		}
		_, err := parts.Serve.Invoke(
			access.WithName(t.Context(), c.client),
			&mcpserver.ToolCall{Tool: write, Item: item, Call: &invoker.Call{}, Record: &audit.Record{}},
		)
		if asked := err != nil; asked != c.asked {
			t.Errorf("%+v: asked %v: %v", c, asked, err)
		}
		if _, why, err := cfg.Explain(c.client, nil, item); err != nil || c.sees && strings.Contains(why, "needs an approval") != c.asked {
			t.Errorf("%+v: %s, %v", c, why, err)
		}
	}
}

// A rule that asks can have a condition on the trusted values of the client.
func TestAskWhen(t *testing.T) {
	parts, err := config.Assemble(parsed(t, threeClients+`
[[serve.rules]]
action = "ask"
when = 'not ("ops" in trusted.roles)'
[history]
store = "none"
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close(t.Context())
	write := writeOfGit(t)
	item := ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "git", Name: "write"}
	for roles, want := range map[string]bool{`["ops"]`: false, `["dev"]`: true, `"ops"`: true} {
		ctx := invoker.WithTrusted(access.WithName(t.Context(), "ada"), invoker.TrustedJSON("roles", []byte(roles)))
		_, err := parts.Serve.Invoke(ctx, &mcpserver.ToolCall{Tool: write, Item: item, Call: &invoker.Call{}, Record: &audit.Record{}})
		if asked := err != nil; asked != want {
			t.Errorf("the roles %s: asked %t, %v", roles, asked, err)
		}
	}
}

// The pattern "*" of a budget matches clients without a name, also if no client has one.
func TestServeBudgetOfAll(t *testing.T) {
	parsed(t, "[serve]\nhttp = '127.0.0.1:0'\ntoken = '0123456789abcdef'\n[[serve.budgets]]\nwindow = 'day'\nclients = ['*']\ncalls = 5\n")
}

// A client has the smallest budget of each window, over MCP and gRPC together, and in
// several processes with the same store.
func TestServeBudgets(t *testing.T) {
	text := threeClients + `[[serve.budgets]]
window = "day"
calls = 5
[[serve.budgets]]
window = "day"
clients = ["a*"]
calls = 2
[history]
path = "` + t.TempDir() + `/history.db"
`
	var processes []*config.Assembly
	for range 2 {
		parts, err := config.Assemble(parsed(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer parts.Close(t.Context())
		processes = append(processes, parts)
	}
	write := writeOfGit(t)
	for client, want := range map[string]int{"ada": 2, "free": 5, "": 5} {
		made := 0
		for i := range 7 {
			invoke := processes[i/2%2].Serve.Invoke
			if i%2 == 0 {
				invoke = processes[i/2%2].ServeGRPC.Invoke
			}
			call := &mcpserver.ToolCall{
				Tool: write, Item: ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "git", Name: "write"}, Call: &invoker.Call{},
				Record: &audit.Record{},
			}
			if _, err := invoke(access.WithName(t.Context(), client), call); err == nil {
				made++
			}
		}
		if made != want {
			t.Errorf("the client %q may make %d calls, want %d", client, made, want)
		}
	}
}
