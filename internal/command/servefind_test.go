// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// At /mcp/search clients find tools by words, of those that they may use. The two tools of the
// model are offered to nobody.
func TestServeSearch(t *testing.T) {
	t.Parallel()
	const ada, ben = "ada-0123456789abcdef", "ben-0123456789abcdef"
	table, _ := library(t, "")
	path := file(t, "[tools]\nmode = \"search\"\npinned = [\"*__wait\"]\n", table, guests+`deny = ["*__leak", "*__wait"]
[[serve.clients]]
token = "eve-0123456789abcdef"
name = "eve"
profile = "small"
[[serve.profiles]]
name = "small"
allow = ["library__echo"]
search = true
`)
	s := serve(t, true, "--config", path)
	whole := s.connect(ada)
	if names := toolNames(t, whole); slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "tools__") }) ||
		!slices.Contains(names, "library__leak") {
		t.Errorf("ada is offered %q", names)
	}
	if got := called(t, whole, "tools__find_tools", `{"query":"echo"}`); !strings.HasPrefix(got, "error: ") {
		t.Errorf("the model's tool answers ada: %s", got)
	}
	if got := called(t, whole, "call_tool", `{"name":"library__echo","arguments":{"text":"hi"}}`); !strings.HasPrefix(got, "error: ") {
		t.Errorf("call_tool is offered at /mcp: %s", got)
	}
	all := s.url
	s.url += "/search"
	for _, c := range []struct {
		token  string
		listed []string
		leak   bool
	}{{ada, []string{"call_tool", "find_tools", "library__wait"}, true}, {ben, []string{"call_tool", "find_tools"}, false}} {
		session := s.connect(c.token)
		if names := toolNames(t, session); !slices.Equal(names, c.listed) {
			t.Errorf("listed: %q", names)
		}
		found := called(t, session, "find_tools", `{"query":"echo leak wait","limit":20}`)
		if !strings.Contains(found, `"name":"library__echo"`) || strings.Contains(found, "leak") != c.leak {
			t.Errorf("found: %s", found)
		}
		if got := called(t, session, "call_tool", `{"name":"library__echo","arguments":{"text":"hi"}}`); strings.HasPrefix(got, "error: ") {
			t.Errorf("called: %s", got)
		}
		if got := called(t, session, "call_tool", `{"name":"library__leak","arguments":{}}`); strings.Contains(got, "unknown tool") == c.leak {
			t.Errorf("called: %s", got)
		}
	}
	transport := &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer("eve-0123456789abcdef")}}
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(), transport, nil); err == nil {
		t.Error("a client with a profile reaches another one")
	}
	s.url = all
	eve := s.connect("eve-0123456789abcdef")
	if names := toolNames(t, eve); !slices.Equal(names, []string{"call_tool", "find_tools"}) {
		t.Errorf("eve is offered %q", names)
	}
	if got := called(t, eve, "find_tools", `{"query":"echo leak wait","limit":20}`); !strings.Contains(got, "library__echo") || strings.Contains(got, "leak") {
		t.Errorf("eve finds %s", got)
	}
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}

// With --search a client over standard input and output finds tools too.
func TestServeSearchOverStdio(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	s := serve(t, false, "--search", "--config", file(t, table))
	session := s.connect("")
	if names := toolNames(t, session); !slices.Equal(names, []string{"call_tool", "find_tools"}) {
		t.Errorf("it lists %q", names)
	}
	if got := called(t, session, "call_tool", `{"name":"library__echo","arguments":{"text":"hi"}}`); strings.HasPrefix(got, "error: ") {
		t.Errorf("called: %s", got)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	s.ends(exit.Done)
}
