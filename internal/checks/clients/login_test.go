// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/testing/authserver"
	"github.com/consort-go/consort/internal/testing/realservers"
)

// The official client logs in at the issuer that the gateway trusts, does not see what a rule
// hides from it, is asked about a call, and gets the answer.
func TestClientLogsIn(t *testing.T) {
	servers := realservers.Need(t)
	issuer := authserver.New("", authserver.Behaviour{Scopes: []string{"tools"}})
	web := httptest.NewServer(issuer)
	t.Cleanup(web.Close)
	issuer.Issuer = web.URL
	issuer.SignWith(authserver.NewKey(t, "k1"), "ada")
	_ = command(t) // before an address is chosen, which another program must not take meanwhile
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := socket.Addr().String()
	socket.Close()
	url := launchGateway(t, fmt.Sprintf(`
[mcp.everything]
command = %s

[serve]
http = %q
watch = false
[serve.oidc]
issuer = %q
audience = "http://%s/mcp"
[[serve.rules]]
action = "deny"
when = 'trusted.sub == "ada"'
tools = ["get-sum"]
[[serve.rules]]
action = "ask"
tools = ["echo"]
`, list(servers.Everything()), address, web.URL, address))

	type args = map[string]any
	var s struct {
		First     string
		Tools     []string
		Questions []string
		Results   []result
	}
	decode(t, runScript(t, servers, "login.mjs", map[string]any{
		"modules": servers.Modules(), "url": url, "decisions": []string{"deny", "allow"}, "calls": []map[string]any{
			{"name": "everything__get-sum", "arguments": args{"a": 1, "b": 2}},
			{"name": "everything__echo", "arguments": args{"message": "through"}},
			{"name": "everything__echo", "arguments": args{"message": "through"}},
		},
	}), &s)
	equal(t, "the error before the login", s.First, "UnauthorizedError")
	if slices.Contains(s.Tools, "everything__get-sum") || !slices.Contains(s.Tools, "everything__echo") {
		t.Errorf("tools = %s", s.Tools)
	}
	if len(s.Results) != 3 || len(s.Questions) != 2 {
		t.Fatalf("%+v", s)
	}
	for i, want := range []string{`unknown tool`, "no", "Echo: through"} {
		if s.Results[i].IsError != (i < 2) || !strings.Contains(s.Results[i].text(), want) {
			t.Errorf("result %d has no %q: %+v", i, want, s.Results[i])
		}
	}
	if question := s.Questions[0]; !strings.Contains(question, "May ada call everything__echo") || !strings.Contains(question, `"message": "through"`) {
		t.Errorf("the question: %s", question)
	}
	equal(t, "code of the denied call", s.Results[1].code(), "DENIED")
}
