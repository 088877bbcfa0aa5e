// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// guests are clients: ada may use everything, and ben a part, over HTTP and gRPC.
const guests = `
[serve]
http = "127.0.0.1:0"
grpc = "127.0.0.1:0"
watch = false
[[serve.clients]]
token = "ada-0123456789abcdef"
name = "ada"
[[serve.clients]]
token = "ben-0123456789abcdef"
name = "ben"
`

// namesGRPC lists the tools of the tool service.
func (s *service) namesGRPC(token string) (names []string) {
	s.t.Helper()
	e := ensemble.New("served", grpctool.Source(s.overGRPC(), &grpctool.Options{Plaintext: true, BearerToken: token}), nil)
	defer e.Close(s.t.Context())
	tools, err := e.Tools(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, tool := range tools {
		names = append(names, tool.Definition().Name)
	}
	return names
}

// What a client may not use does not exist for it, over each transport, and a change of the
// rules holds at once for sessions that are open.
func TestServeRules(t *testing.T) {
	t.Parallel()
	const ada, ben = "ada-0123456789abcdef", "ben-0123456789abcdef"
	table, _ := library(t, "")
	rules := guests + `allow = ["library__*", "note:///*"]
deny = ["*__leak", "note:///secret"]
[[serve.rules]]
action = "deny"
clients = ["ben"]
tools = ["wait"]
[[serve.rules]]
action = "deny"
clients = ["ben"]
prompts = ["over"]
`
	path := file(t, table, rules)
	s := serve(t, true, "--config", path)
	sessions := []*mcp.ClientSession{s.connect(ben), s.connectGRPC(ben)}
	for i, session := range sessions {
		if names := toolNames(t, session); !slices.Equal(names, []string{"library__echo"}) {
			t.Errorf("%d: ben sees the tools %q", i, names)
		}
		for _, hidden := range []string{"library__leak", "library__wait", "library__none"} {
			if got, want := called(t, session, hidden, `{}`), `unknown tool "`+hidden+`"`; !strings.HasPrefix(got, "error: ") || !strings.Contains(got, want) {
				t.Errorf("%d: ben calls %s: %s", i, hidden, got)
			}
		}
		for _, hidden := range []string{"note:///secret", "note:///a/../secret", "note:///%73ecret", "note:///by/../secret"} {
			if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: hidden}); err == nil ||
				!strings.Contains(err.Error(), "No ensemble has the resource") {
				t.Errorf("%d: ben reads %s: %v", i, hidden, err)
			}
		}
		if read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note:///by/ada"}); err != nil || len(read.Contents) != 1 {
			t.Errorf("%d: ben reads what a template offers: %v", i, err)
		}
		if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "library__over"}); err == nil ||
			strings.Contains(err.Error(), `mean "library__over`) {
			t.Errorf("%d: ben gets a hidden prompt: %v", i, err)
		}
	}
	if names := s.namesGRPC(ben); !slices.Equal(names, []string{"library__echo"}) {
		t.Errorf("ben sees the tools %q by the tool service", names)
	}
	if names := toolNames(t, s.connect(ada)); len(names) != 3 {
		t.Errorf("ada sees the tools %q", names)
	}

	if err := os.WriteFile(path, []byte(table+guests+"allow = [\"note:*\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := (&reloading{s, path}).reload(exit.Done); !strings.Contains(said, "serve.clients") {
		t.Errorf("consort reload says %s", said)
	}
	for i, session := range sessions {
		if names := toolNames(t, session); len(names) != 0 {
			t.Errorf("%d: ben still sees the tools %q", i, names)
		}
		if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note:///secret"}); err != nil {
			t.Errorf("%d: ben reads what is allowed now: %v", i, err)
		}
	}
}

// consort serve --explain says which line of the file decides about a client.
func TestServeExplain(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	path := file(t, guests+`allow = ["library__e*", "note:*"]
profile = "part"
[[serve.profiles]]
name = "part"
deny = ["*__leak"]
[[serve.rules]]
action = "deny"
clients = ["ben"]
resources = ["note:///secret"]
`, table)
	for _, c := range []struct{ client, name, want string }{
		{"ada", "library__leak", `the client "ada" may use the tool leak of library: no list and no rule is about it`},
		{"ben", "library__echo", `the client "ben" may use the tool echo of library: serve.clients[1].allow[0] (` + path + `:12) allows it`},
		{"ben", "library__leak", `the client "ben" may not use the tool leak of library: serve.profiles[0].deny[0] (` + path + `:16) denies it`},
		{"ben", "library__wait", `the client "ben" may not use the tool wait of library: it is not among the items that are allowed to the client, first by serve.clients[1].allow[0] (` + path + `:12)`},
		{"ben", "note:///secret", `the client "ben" may not use the resource note:///secret of library: serve.rules[0] (` + path + `:17) denies it`},
		{"ben", "note:///by/ada", `the client "ben" may use the resource note:///by/ada of library: serve.clients[1].allow[1] (` + path + `:12) allows it`},
		{"", "library__greet", `a client without a name may use the prompt greet of library: no list and no rule is about it`},
	} {
		if got := consort(t, "serve", "--config", path, "--explain", c.client, c.name); got.status != int(exit.Done) || got.stdout != c.want+"\n" {
			t.Errorf("%s %s: status %d\n%s%s\n%s", c.client, c.name, got.status, got.stdout, got.stderr, c.want)
		}
	}
	for _, wrong := range [][]string{{"--explain", "eve", "library__echo"}, {"--explain", "ada"}, {"library__echo"}} {
		if got := consort(t, append([]string{"serve", "--config", path}, wrong...)...); got.status != int(exit.Usage) || got.stdout != "" {
			t.Errorf("%q: status %d, %s", wrong, got.status, got.stdout)
		}
	}
	if got := consort(t, "serve", "--config", path, "--explain", "ada", "library__none"); got.status != int(exit.Failed) ||
		!strings.Contains(got.stderr, `no server has the tool or prompt "library__none"`) {
		t.Errorf("a tool that does not exist: status %d, %s", got.status, got.stderr)
	}
}
