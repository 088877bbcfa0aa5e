// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"context"
	"strings"
	"testing"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/config/values"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/access"
	"github.com/consort-go/consort/invoker"
)

// clientsOf returns a function that says what the clients of a configuration may use.
func clientsOf(t *testing.T, text string) func(client string, item ensemble.Item) bool {
	t.Helper()
	parts, err := config.Assemble(parsed(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parts.Close(context.Background()) })
	return func(client string, item ensemble.Item) bool {
		if parts.Serve.Select == nil {
			return true
		}
		selection := parts.Serve.Select(access.WithName(t.Context(), client))
		return selection == nil || selection.Contains(item)
	}
}

const threeClients = `
[serve]
http = "127.0.0.1:0"
[[serve.clients]]
token = "free-0123456789abcdef"
name = "free"
[[serve.clients]]
token = "nameless-0123456789abcdef"
[[serve.clients]]
token = "ada-0123456789abcdef"
name = "ada"
`

// The lists and rules of a client are matched as the reference says.
func TestClientRules(t *testing.T) {
	yes, no := true, false
	tool := func(name string, hints invoker.Hints) ensemble.Item {
		return ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "git", Name: name, Hints: hints}
	}
	read, write := tool("read", invoker.Hints{ReadOnly: true}), tool("write", invoker.Hints{})
	safe := tool("safe", invoker.Hints{Destructive: &no, OpenWorld: &no, Idempotent: true})
	odd := tool("read.all", invoker.Hints{ReadOnly: true})
	prompt := ensemble.Item{Kind: ensemble.PromptItem, Ensemble: "git", Name: "read"}
	note := ensemble.Item{Kind: ensemble.ResourceItem, Ensemble: "git", Name: "note:///read"}
	web := ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "web", Name: "read", Hints: invoker.Hints{OpenWorld: &yes}}
	converse := ensemble.Item{Kind: ensemble.ToolItem, Name: "converse"}
	items := map[string]ensemble.Item{
		"read": read, "write": write, "safe": safe, "odd": odd, "prompt": prompt, "note": note, "web": web, "converse": converse,
	}
	const all = "read write safe odd prompt note web converse"
	for name, c := range map[string]struct{ text, ada, free string }{
		"nothing":          {"", all, all},
		"an ensemble":      {"allow = ['git']", "read write safe odd prompt note", all},
		"names":            {"allow = ['git__read', 'note:*']", "read prompt note", all},
		"an encoded name":  {"deny = ['git__read.all']", "read write safe prompt note web", all},
		"deny wins":        {"allow = ['git', 'web']\ndeny = ['*__read', 'note:///*']", "write safe odd", all},
		"everything":       {"allow = ['*']", "read write safe odd prompt note web", all},
		"converse by name": {"allow = ['web', 'converse']", "web converse", all},
		"converse denied":  {"allow = ['converse']\ndeny = ['conv*']", "", all},
		"a rule":           {"[[serve.rules]]\naction='deny'\nclients=['ada']\nensembles=['g*']", "web", all},
		"a rule for all":   {"[[serve.rules]]\naction='deny'\nensembles=['git']", "web", "web"},
		"kinds":            {"[[serve.rules]]\naction='deny'\nprompts=['*']\nresources=['note:*']\nclients=['a?a']", "read write safe odd web", all},
		"a tool":           {"[[serve.rules]]\naction='deny'\ntools=['read']\nclients=['ada']", "write safe odd prompt note", all},
		"read only":        {"[[serve.rules]]\naction='allow'\nread_only=true\nclients=['ada']", "read odd", all},
		"destructive":      {"[[serve.rules]]\naction='deny'\ndestructive=true\nclients=['ada']", "read safe odd prompt note", all},
		"the open world":   {"[[serve.rules]]\naction='deny'\nopen_world=true\nclients=['ada']", "safe prompt note", all},
		"idempotent":       {"[[serve.rules]]\naction='allow'\nidempotent=true\ntools=['s*']\nclients=['ada']", "safe", all},
		"converse by rule": {"[[serve.rules]]\naction='allow'\ntools=['converse']\nclients=['ada']", "converse", all},
		"both": {
			"allow = ['git']\n[[serve.rules]]\naction='allow'\nensembles=['web']\nclients=['ada']\n[[serve.rules]]\naction='deny'\ntools=['w*']",
			"read safe odd prompt note web", "read safe odd prompt note web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			may := clientsOf(t, threeClients+c.text)
			for client, want := range map[string]string{"ada": c.ada, "free": c.free} {
				for item, it := range items {
					wanted := strings.Contains(" "+want+" ", " "+item+" ")
					if got := may(client, it); got != wanted {
						t.Errorf("%s may use %s: %v", client, item, got)
					}
				}
			}
		})
	}
}

// A tool that reaches what a rule may hide is given to a client with rules only by its name.
func TestToolsThatReachOthers(t *testing.T) {
	items := map[string]ensemble.Item{
		"read":  {Kind: ensemble.ToolItem, Ensemble: "git", Name: "read"},
		"fetch": {Kind: ensemble.ToolItem, Ensemble: "resources", Name: "read_resource"},
		"find":  {Kind: ensemble.ToolItem, Ensemble: "tools", Name: "find_tools"},
		"code":  {Kind: ensemble.ToolItem, Ensemble: "code", Name: "run_code"},
	}
	const both = "[tools]\nresources=true\ncode=true\nmode='search'\n"
	for name, c := range map[string]struct{ tools, rules, ada string }{
		"no rule":        {both, "", "read fetch"},
		"programs":       {"[tools]\ncode=true\n", "allow = ['*', 'code__run_code']", "read fetch find"},
		"another denied": {both, "deny = ['web']", "read"},
		"all allowed":    {both, "allow = ['*', 'tools', 'tools__*']", "read"},
		"by name":        {both, "allow = ['*', 'tools__find_tools', 'resources__read_resource']", "read fetch"},
		"by rule":        {both, "[[serve.rules]]\naction='allow'\ntools=['read_resource', 'find*']", "fetch"},
		"other servers":  {"", "deny = ['web']", "read fetch find code"},
		"resources only": {"[tools]\nresources=true\n", "deny = ['web']", "read find code"},
	} {
		t.Run(name, func(t *testing.T) {
			may := clientsOf(t, c.tools+threeClients+c.rules)
			for item, it := range items {
				if got, want := may("ada", it), strings.Contains(" "+c.ada+" ", " "+item+" "); got != want {
					t.Errorf("ada may use %s: %v", item, got)
				}
			}
		})
	}
}

// Of two tokens of one client, both have its lists.
func TestClientRulesOfTwoTokens(t *testing.T) {
	const text = "[serve]\nhttp='127.0.0.1:0'\n[[serve.clients]]\nname='ada'\ntoken='ada-0123456789abcdef'\nallow=['git']\n" +
		"[[serve.clients]]\nname='ada'\ntoken='new-0123456789abcdef'\n"
	if may := clientsOf(t, text+"allow=['git']\n"); may("ada", ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "web", Name: "x"}) {
		t.Error("the second entry undoes the first")
	}
	_, err := config.Parse("consort.toml", []byte(text), nil)
	if want := "consort.toml:8:6: serve.clients[1].name: serve.clients[0] has this name and other lists, another profile, approve or console: write the same in both, or use another name"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A profile is a part of the offer in which the rules of each client apply too.
func TestProfiles(t *testing.T) {
	parts, err := config.Assemble(parsed(t, threeClients+`
deny = ["*__write"]
[[serve.clients]]
token = "ben-0123456789abcdef"
name = "ben"
profile = "code"
[[serve.profiles]]
name = "code"
allow = ["git"]
[[serve.profiles]]
name = "all"
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parts.Close(context.Background()) })
	items := map[string]ensemble.Item{
		"read":     {Kind: ensemble.ToolItem, Ensemble: "git", Name: "read"},
		"write":    {Kind: ensemble.ToolItem, Ensemble: "git", Name: "write"},
		"page":     {Kind: ensemble.ResourceItem, Ensemble: "web", Name: "page:///1"},
		"converse": {Kind: ensemble.ToolItem, Name: "converse"},
	}
	for at, want := range map[[2]string]string{
		{"free", ""}: "read write page converse", {"ada", ""}: "read page", {"ben", ""}: "read write",
		{"free", "code"}: "read write", {"ada", "code"}: "read", {"ben", "code"}: "read write", {"", "code"}: "read write",
		{"free", "all"}: "read write page", {"ben", "all"}: "404", {"ada", "none"}: "404", {"", ""}: "read write page converse",
	} {
		ctx := access.WithName(t.Context(), at[0])
		selection, ok := parts.Serve.Select(ctx), true
		if at[1] != "" {
			selection, ok = parts.Serve.Profile(ctx, at[1])
		}
		if ok != (want != "404") {
			t.Errorf("%v exists: %v", at, ok)
		}
		for name, item := range items {
			if wanted := strings.Contains(want, name); ok && (selection == nil || selection.Contains(item)) != wanted {
				t.Errorf("%v: %s must be %v", at, name, wanted)
			}
		}
	}
	unknown, err := config.Assemble(
		&config.Config{Serve: &serve.Options{Clients: []serve.Client{{Token: values.Plain("x"), Name: "ada", Profile: "gone"}}}},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unknown.Close(context.Background()) })
	if s := unknown.Serve.Select(access.WithName(t.Context(), "ada")); s == nil || s.Contains(items["read"]) {
		t.Error("a client of an unknown profile may use something")
	}
}

// Rules are compiled when they are loaded: to find what a client may use allocates nothing,
// however many there are.
func TestSelectAllocatesNothing(t *testing.T) {
	text := threeClients + strings.Repeat("[[serve.rules]]\naction='deny'\nclients=['ada']\nensembles=['*x']\ntools=['a*b?c*']\n", 100)
	parts, err := config.Assemble(parsed(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parts.Close(context.Background()) })
	ctx := access.WithName(context.Background(), "ada")
	if n := testing.AllocsPerRun(100, func() { parts.Serve.Select(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A rule with a condition holds for clients with certain trusted values. A condition that
// cannot be evaluated takes rights away and gives none.
func TestConditions(t *testing.T) {
	text := func(rules string) string {
		return `
[serve]
http = "127.0.0.1:0"
[[serve.clients]]
token = "ada-0123456789abcdef"
name = "ada"
trusted = {roles = {value = '["ops"]', json = true}}
` + rules
	}
	tool := func(name string) ensemble.Item {
		return ensemble.Item{Kind: ensemble.ToolItem, Ensemble: "git", Name: name}
	}
	const deny = "[[serve.rules]]\naction='deny'\ntools=['push']\nwhen='not (\"ops\" in trusted.roles)'\n"
	const allow = "[[serve.rules]]\naction='allow'\ntools=['push']\nwhen='\"ops\" in trusted.roles'\n"
	const read = "[[serve.rules]]\naction='allow'\ntools=['read']\n"
	const ask = "[[serve.rules]]\naction='ask'\ntools=['push']\nwhen='not (\"ops\" in trusted.roles)'\n"
	for name, c := range map[string]struct{ rules, roles, want string }{
		"deny, ops":          {deny, `["dev","ops"]`, "push read"},
		"deny, dev":          {deny, `["dev"]`, "read"},
		"deny, missing":      {deny, ``, "read"},
		"deny, a text":       {deny, `"ops"`, "read"},
		"deny, null inside":  {deny, `[null,"ops"]`, "read"},
		"allow, ops":         {allow, `["ops"]`, "push"},
		"allow, dev":         {allow, `["dev"]`, ""},
		"allow, missing":     {allow, ``, ""},
		"allow, a text":      {allow, `"ops"`, ""},
		"allow both, dev":    {allow + read, `["dev"]`, "read"},
		"allow both, ops":    {allow + read, `["ops"]`, "push read"},
		"allow both, broken": {allow + read, `7`, "read"},
	} {
		parts, err := config.Assemble(parsed(t, text(c.rules)), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = parts.Close(context.Background()) })
		for _, client := range []string{"", "ada", "eve@example.com"} {
			ctx := access.WithUser(t.Context(), client)
			if c.roles != "" {
				ctx = invoker.WithTrusted(ctx, invoker.TrustedJSON("roles", []byte(c.roles)))
			}
			var got []string
			for _, name := range []string{"push", "read"} {
				if s := parts.Serve.Select(ctx); s == nil || s.Contains(tool(name)) {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: %q may use %q, want %q", name, client, got, c.want)
			}
		}
	}
	cfg := parsed(t, text(deny))
	for name, c := range map[string]struct {
		trusted map[string]any
		want    bool
	}{"of the file": {nil, true}, "dev": {map[string]any{"roles": []any{"dev"}}, false}, "ops": {map[string]any{"roles": []any{"ops"}}, true}} {
		if allowed, why, err := cfg.Explain("ada", c.trusted, tool("push")); err != nil || allowed != c.want ||
			!allowed && !strings.Contains(why, "serve.rules[0] (") {
			t.Errorf("%s: %t, %s, %v", name, allowed, why, err)
		}
	}
	for roles, asks := range map[string]bool{"dev": true, "ops": false} {
		_, why, err := parsed(t, text(ask)).Explain("ada", map[string]any{"roles": []any{roles}}, tool("push"))
		if err != nil || strings.Contains(why, "needs an approval") != asks {
			t.Errorf("%s: %s, %v", roles, why, err)
		}
	}
	_, err := parse(text("[[serve.rules]]\naction='deny'\nwhen='roles == 7'\n"), nil)
	if err == nil || !strings.Contains(err.Error(),
		"consort.toml:10:6: serve.rules[0].when: expected a trusted value such as trusted.user, and not roles, at character 1") {
		t.Error(err)
	}
	program := &config.Config{Serve: &serve.Options{Rules: []serve.Rule{{Action: serve.Deny, When: "("}}}}
	if _, err := config.Assemble(program, nil); err == nil || !strings.Contains(err.Error(), "serve.rules[0].when") {
		t.Errorf("a condition of a program: %v", err)
	}
}
