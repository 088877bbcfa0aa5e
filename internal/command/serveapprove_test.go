// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asked are clients whose calls dana approves.
const asked = historyTable + guests + `
[[serve.rules]]
action = "ask"
who = "dana"
within = "1h"
clients = ["ada"]
tools = ["effect"]
`

const effectA = `{"key":"a"}`

// waiting lists what waits, as consort approve without a conversation prints it.
func waiting(t *testing.T, path string) []histories.WaitList {
	t.Helper()
	var all histories.AllWaits
	if err := json.Unmarshal([]byte(consortBesideDone(t, "approve", "--json", "--config", path)), &all); err != nil {
		t.Fatal(err)
	}
	return all.Conversations
}

// TestServeApprove: the call of a client waits until the person that a rule names allows it,
// over a death of the gateway, and is made once. Other clients are not asked about.
func TestServeApprove(t *testing.T) {
	t.Parallel()
	const ada, ben = "ada-0123456789abcdef", "ben-0123456789abcdef"
	world, count := effects(t)
	trail := filepath.Join(t.TempDir(), "trail.jsonl")
	path := file(t, world, "[audit]\nfile = \""+trail+"\"\n", asked)
	s := serve(t, true, "--config", path)
	first := called(t, s.connect(ada), "world__effect", effectA)
	all := waiting(t, path)
	if len(all) != 1 || len(all[0].Waits) != 1 || !strings.HasPrefix(first, "CONFLICT: ") ||
		!strings.Contains(first, "consort approve "+all[0].Conversation+".") {
		t.Fatalf("%+v, %s", all, first)
	}
	id, wait := all[0].Conversation, all[0].Waits[0]
	if wait.Who != "dana" || wait.Tool != "world__effect" || !strings.Contains(string(wait.Arguments), `"key": "a"`) {
		t.Errorf("%+v", wait)
	}
	s.signal(syscall.SIGKILL)
	_ = s.cmd.Wait()
	s = serve(t, true, "--config", path)
	if again := called(t, s.connect(ada), "world__effect", `{ "key": "a" }`); again != first {
		t.Errorf("after a death: %s", again)
	}
	contains(t, "the list", consortBesideDone(t, "approve", "--config", path), id+"  ada calls world__effect", "for dana to answer", `"key": "a"`)
	contains(t, "the call", consortBesideDone(t, "approve", id, "--config", path), "ada calls world__effect", wait.ID)
	for _, wrong := range []struct {
		args []string
		want string
	}{
		{[]string{id, "--allow", "--as", "dana"}, "name the WAIT that you allow"},
		{[]string{id, wait.ID, "--as", "eve"}, "must be answered by dana, not by eve"},
		{[]string{id, wait.ID, "--as", "dana", "--resume"}, "which its client makes"},
		{[]string{"ask-aaaaaaaaaaaaaaaaaaaa", "--as", "dana", wait.ID}, "no conversation"},
		{[]string{"--allow"}, "give the ID"},
	} {
		status, said := beside(t, append([]string{"approve", "--config", path}, wrong.args...)...)
		if contains(t, strings.Join(wrong.args, " "), said, wrong.want); status != exit.Usage {
			t.Errorf("%q: status %d", wrong.args, status)
		}
	}
	if status, said := beside(t, "resume", id, "--config", file(t, world, storeOf(path), model(t))); status != exit.Usage ||
		!strings.Contains(said, "is the approval of a client's call") {
		t.Errorf("resume: status %d, %s", status, said)
	}
	status, said := beside(t, "approve", id, wait.ID[:8], "--as", "dana", "--config", path)
	if contains(t, "approve", said, "Answered as dana", "make the same call again"); status != exit.Done {
		t.Errorf("status %d", status)
	}
	if count() != 0 {
		t.Errorf("%d effects before the call", count())
	}
	if got := called(t, s.connect(ben), "world__effect", effectA); got != "done: a" || count() != 1 {
		t.Errorf("ben is not asked about: %s, %d effects", got, count())
	}
	session := s.connect(ada)
	if got := called(t, session, "world__effect", effectA); got != "done: a" || count() != 2 {
		t.Errorf("the approved call: %s, %d effects", got, count())
	}
	if got := called(t, session, "world__effect", effectA); !strings.HasPrefix(got, "CONFLICT: ") || !strings.Contains(got, id) || count() != 2 {
		t.Errorf("the next call: %s, %d effects", got, count())
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	text, err := os.ReadFile(trail)
	if err != nil {
		t.Fatal(err)
	}
	approved := `"client_name":"ada","invocation":`
	if n := strings.Count(string(text), `"by":"dana","code":"OK"`); n != 1 || !strings.Contains(string(text), approved) {
		t.Errorf("the audit: %s", text)
	}
}

// storeOf returns the [history] table for the store of another configuration.
func storeOf(path string) string {
	return strings.Replace(historyTable, "talks.db", filepath.Join(filepath.Dir(path), "talks.db"), 1)
}

// beside runs the command while a service runs, and returns its status and standard error.
func beside(t *testing.T, args ...string) (exit.Status, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var stderr strings.Builder
	cmd := run{}.command(ctx, t, args...)
	cmd.Stderr = &stderr
	_ = cmd.Run() // the status says how it ended
	return exit.Status(cmd.ProcessState.ExitCode()), stderr.String()
}

// TestServeAsksTheUser: of the client, where it can be asked.
func TestServeAsksTheUser(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	s := serve(t, true, "--config", file(t, world, historyTable, strings.Replace(guests, "name = \"ada\"\n", "name = \"ada\"\napprove = \"ask\"\n", 1)))
	for _, test := range []struct {
		decision, want string
		effects        int
	}{{"deny", "DENIED: ", 0}, {"allow", "done: a", 1}} {
		var question string
		client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				question = q.Params.Message
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": test.decision}}, nil
			},
		})
		session, err := client.Connect(
			t.Context(),
			&mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer("ada-0123456789abcdef")}},
			nil,
		)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if got := called(t, session, "world__effect", effectA); !strings.HasPrefix(got, test.want) || count() != test.effects {
			t.Errorf("%s: %s, %d effects", test.decision, got, count())
		}
		contains(t, "the question", question, "May ada call world__effect", `"key": "a"`)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}

// TestServeBudget: a client that has made its calls is told when the next ones are possible,
// also by another gateway with the same store. Other clients are not affected.
func TestServeBudget(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	path := file(t, world, historyTable, guests, "[[serve.budgets]]\nclients = [\"ada\"]\nwindow = \"month\"\ncalls = 2\n")
	for i, want := range []string{"done: a", "UNAVAILABLE: This client may make 2 calls per month, and has made them. The next ones are possible from "} {
		s := serve(t, true, "--config", path)
		session := s.connect("ada-0123456789abcdef")
		for range 2 {
			if got := called(t, session, "world__effect", effectA); !strings.HasPrefix(got, want) {
				t.Errorf("gateway %d: %s", i, got)
			}
		}
		if got := called(t, s.connect("ben-0123456789abcdef"), "world__effect", effectA); got != "done: a" {
			t.Errorf("ben: %s", got)
		}
		s.signal(os.Interrupt)
		s.ends(exit.Done)
	}
	if count() != 4 {
		t.Errorf("%d effects", count())
	}
}
