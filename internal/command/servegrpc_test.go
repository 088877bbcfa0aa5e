// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// overGRPC waits until the process serves gRPC, and returns where.
func (s *service) overGRPC() string {
	s.t.Helper()
	address := regexp.MustCompile(`serving gRPC at (127\.0\.0\.1:[1-9]\d*)\n`)
	waitFor(s.t, "an address: "+s.stderr.String(), func() bool { return address.MatchString(s.stderr.String()) })
	return address.FindStringSubmatch(s.stderr.String())[1]
}

// host returns a session without a token, over gRPC if the name says so.
func (s *service) host(name string) *mcp.ClientSession {
	s.t.Helper()
	if name == "grpc" {
		return s.connectGRPC("")
	}
	return s.connect("")
}

// connectGRPC returns a session of the SDK's client over gRPC.
func (s *service) connectGRPC(token string) *mcp.ClientSession {
	s.t.Helper()
	link, err := grpctool.DialMCP(s.t.Context(), s.overGRPC(), &grpctool.Options{Plaintext: true, BearerToken: token})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { link.Close(context.Background()) })
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(s.t.Context(), link, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { session.Close() })
	return session
}

// tellsGRPC calls a tool of the tool service, and returns its text.
func (s *service) tellsGRPC(token, tool, arguments string) string {
	s.t.Helper()
	e := ensemble.New("served", grpctool.Source(s.overGRPC(), &grpctool.Options{Plaintext: true, BearerToken: token}), nil)
	defer e.Close(context.Background())
	roster, err := ensemble.NewRoster(e)
	if err != nil {
		s.t.Fatal(err)
	}
	catalog, err := roster.Catalog(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	found, ok := catalog.Find("served__" + tool)
	if !ok {
		return "none: " + e.Snapshot().LastError.Error()
	}
	output, err := found.Invoke(s.t.Context(), &invoker.Call{Arguments: json.RawMessage(arguments)})
	if err != nil {
		return string(invoker.AsFailure(err).Code)
	}
	form, err := json.Marshal(output.Content)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(form)
}

// The same clients are served over gRPC and over HTTP at the same time: by the tool
// service and by MCP, each with the identity of its token, and every call is recorded.
func TestServeOverGRPCBesideHTTP(t *testing.T) {
	t.Parallel()
	table, _ := library(t, forPerson)
	trail := filepath.Join(t.TempDir(), "trail.jsonl")
	const ada, bob = "ada-0123456789abcdef", "bob-0123456789abcdef"
	s := serve(t, true, "--grpc", "127.0.0.1:0", "--config", file(t, table, `
[trusted]
user = "root"
[audit]
file = "`+trail+`"
identity = ["user"]
[serve]
http = "127.0.0.1:0"
own_names = true
clients = [{token = "`+ada+`", trusted = {user = "ada"}}, {token = "`+bob+`", trusted = {user = "bob"}}]
`))
	for token, user := range map[string]string{ada: "ada", bob: "bob"} {
		want := `{"user_id":"` + user + `"}`
		for name, host := range map[string]*mcp.ClientSession{"HTTP": s.connect(token), "gRPC": s.connectGRPC(token)} {
			if got := called(t, host, "echo", `{}`); got != want {
				t.Errorf("%s over %s: %s", user, name, got)
			}
			if got := called(t, host, "leak", `{}`); got != "EXECUTION_FAILED: it is [secret]" {
				t.Errorf("leak over %s: %s", name, got)
			}
		}
		if got := s.tellsGRPC(token, "echo", `{}`); !strings.Contains(got, user) {
			t.Errorf("%s by the tool service: %s", user, got)
		}
	}
	if got := s.tellsGRPC(ada, "echo", `{"user_id":"bob"}`); got != string(invoker.InvalidArguments) {
		t.Errorf("ada as bob: %s", got)
	}
	for _, token := range []string{"", "wrong-0123456789abcdef"} {
		if got := s.tellsGRPC(token, "echo", `{}`); !strings.HasPrefix(got, "none: ") || !strings.Contains(got, "UNAUTHORIZED") {
			t.Errorf("with the token %q: %s", token, got)
		}
	}
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
	records, err := os.ReadFile(trail)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the trail", string(records), `"identity":{"user":"ada"}`, `"identity":{"user":"bob"}`, `"asker":"grpc"`, `"asker":"mcp"`, `"forged":["user"]`)
	lacks(t, "all that was written", s.stdout.String()+s.stderr.String()+string(records), password, ada, bob, "root")
	if s.stdout.String() != "" {
		t.Errorf("standard output: %q", s.stdout.String())
	}
}

// A program's server over gRPC is another one's [grpc.NAME].
func TestAConfiguredServerOverGRPC(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "allow = [\"echo\"]\n")
	s := serve(t, false, "--config", file(t, table, "[serve]\ngrpc = \"127.0.0.1:0\"\nown_names = true\ntoken = \"0123456789abcdef\"\n"))
	for _, service := range []string{"tools", "mcp"} {
		client := file(t, "[grpc.far]\naddress = \""+s.overGRPC()+"\"\nservice = \""+service+"\"\ntls.plaintext = true\ntoken = \"0123456789abcdef\"\n")
		contains(t, service, consortBesideDone(t, "call", "far", "echo", `{"text":"hi"}`, "--config", client), "hi")
		contains(t, service, consortBesideDone(t, "check", "--json", "--config", client), `"transport": "grpc"`, `"state": "ready"`, `"tools": 1`)
	}
	s.signal(syscall.SIGTERM)
	s.ends(exit.Done)
}

// consortBesideDone runs the command, which succeeds, while another one runs.
func consortBesideDone(t *testing.T, args ...string) string {
	t.Helper()
	return consortBeside(t, args...).expect(t, exit.Done).stdout
}
