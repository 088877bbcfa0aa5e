// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/temporal/internal/temporalserver"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/pgtest"
)

// The test binary is the command too.
const variable = "CONSORT_TEMPORAL_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(variable) != "" {
		main()
	}
	os.Exit(m.Run())
}

func consort(t *testing.T, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), variable+"=1", "XDG_STATE_HOME="+t.TempDir())
	temporalserver.Bind(cmd)
	return cmd
}

// text is the output of a process, which may be read while it runs.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *text) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.b.Write(p) }
func (s *text) String() string              { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// start starts the command and waits until it says what matches.
func start(t *testing.T, want string, args ...string) (cmd *exec.Cmd, match []string) {
	t.Helper()
	cmd = consort(t, args...)
	var said text
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() > 0 && !t.Failed() {
			t.Errorf("consort %v ended with %v: %s", args, err, said.String())
		}
	})
	pattern := regexp.MustCompile(want)
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if match = pattern.FindStringSubmatch(said.String()); match != nil {
			return cmd, match
		}
		if time.Now().After(until) {
			t.Fatalf("consort %v does not say %q: %s", args, want, said.String())
		}
	}
}

func write(t *testing.T, name, form string, values ...any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, fmt.Appendf(nil, form, values...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// One process serves a conversation, and another works on it.
func TestServeAndWorker(t *testing.T) {
	address := temporalserver.Start(t, temporalserver.SQLite)
	model, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Text: "A raincoat."}}, {Reply: openaiserver.Message{Text: "And boots."}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	path := write(t, "consort.toml",
		"[model]\nname = \"scripted\"\nbase_url = %q\n[history]\nstore = \"postgres\"\ndsn = %q\n[serve]\nhttp = \"127.0.0.1:0\"\nconverse = true\n"+
			"clients = [{token = \"0123456789abcdef0123\", trusted = {user = \"ada\"}}]\n",
		model.URL(), pgtest.DSN(t))
	start(t, `working for temporal`, "worker", "--temporal", address, "--config", path, "--log-level", "info")
	_, match := start(t, `serving at (http://\S+/mcp)`, "serve", "--engine", "temporal", "--temporal", address, "--config", path)
	host := write(t, "host.toml", "[mcp.served]\ntransport = \"http\"\nurl = %q\nheaders = {Authorization = \"Bearer 0123456789abcdef0123\"}\n", match[1])
	first := say(t, host, `{"message":"What should I wear?"}`)
	if first.Answer != "A raincoat." {
		t.Fatalf("the answer is %+v", first)
	}
	again, _ := json.Marshal(map[string]string{"message": "What else?", "conversation": first.Conversation})
	if second := say(t, host, string(again)); second.Answer != "And boots." {
		t.Errorf("the second answer is %+v", second)
	}
}

// One process asks for an approval and is killed with its worker, the console of a second one
// answers it, and the worker of a third one makes the call: there is one effect.
func TestApprovalAcrossMachines(t *testing.T) {
	address, ledger := temporalserver.Start(t, temporalserver.SQLite), t.TempDir()
	world, err := faultserver.StartHTTP(faultserver.Script{Dir: ledger}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { world.Close() })
	model, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Calls: []openaiserver.Call{{Name: "world__effect", Arguments: `{"key":"bill"}`}}}},
		{Reply: openaiserver.Message{Text: "It is paid."}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	count := func() int {
		book, err := faultserver.ReadLedger(ledger)
		if err != nil {
			t.Fatal(err)
		}
		return len(book.Effects())
	}
	const token = "0123456789abcdef0123"
	path := write(t, "consort.toml",
		"[model]\nname = \"scripted\"\nbase_url = %q\n[mcp.world]\ntransport = \"http\"\nurl = %q\n[approval]\ndefault = \"defer\"\n"+
			"[history]\nstore = \"postgres\"\ndsn = %q\n[serve]\nhttp = \"127.0.0.1:0\"\nconverse = true\n"+
			"clients = [{name = \"ada\", token = %q, trusted = {user = \"ada\"}, console = \"operate\"}]\n",
		model.URL(), world.URL(), pgtest.DSN(t), token)
	work := []string{"worker", "--temporal", address, "--config", path, "--log-level", "info"}
	serve := []string{"serve", "--engine", "temporal", "--temporal", address, "--config", path}
	worker, _ := start(t, `working for temporal`, work...)
	asking, match := start(t, `serving at (http://\S+/mcp)`, serve...)
	_, other := start(t, `serving at (http://\S+)/mcp`, serve...)
	host := write(t, "host.toml", "[mcp.served]\ntransport = \"http\"\nurl = %q\nheaders = {Authorization = \"Bearer %s\"}\n", match[1], token)
	conversation := say(t, host, `{"message":"Pay."}`).Conversation
	for _, cmd := range []*exec.Cmd{asking, worker} {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n != 0 {
		t.Fatalf("%d effects before the approval", n)
	}
	person := (&consolestage.Stage{URL: other[1] + "/console"}).Login(t, token)
	person.Allow(conversation)
	start(t, `working for temporal`, work...)
	for until := time.Now().Add(time.Minute); !strings.Contains(person.Get("/conversations/"+conversation).Text, "It is paid."); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the turn does not end; %d effects", count())
		}
	}
	if n := count(); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// A process that has passed a call on to its client is killed with its worker, and a third one
// takes the result: the call of the server is made once.
func TestToolsOfClientsAcrossMachines(t *testing.T) {
	address, ledger := temporalserver.Start(t, temporalserver.SQLite), t.TempDir()
	world, err := faultserver.StartHTTP(faultserver.Script{Dir: ledger}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { world.Close() })
	calls := []openaiserver.Call{{Name: "world__effect", Arguments: `{"key":"bill"}`}, {Name: "pick", Arguments: `{}`}}
	model, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Calls: calls}}, {Reply: openaiserver.Message{Text: "It is paid in blue."}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	const token = "0123456789abcdef0123"
	path := write(t, "consort.toml",
		"[model]\nname = \"scripted\"\nbase_url = %q\n[mcp.world]\ntransport = \"http\"\nurl = %q\n[approval]\ndefault = \"allow\"\n"+
			"[history]\nstore = \"postgres\"\ndsn = %q\n[serve]\nhttp = \"127.0.0.1:0\"\nconverse = true\n"+
			"clients = [{name = \"ada\", token = %q, trusted = {user = \"ada\"}}]\n",
		model.URL(), world.URL(), pgtest.DSN(t), token)
	work := []string{"worker", "--temporal", address, "--config", path, "--log-level", "info"}
	serve := []string{"serve", "--engine", "temporal", "--temporal", address, "--config", path}
	worker, _ := start(t, `working for temporal`, work...)
	asking, first := start(t, `serving at (http://\S+)/mcp`, serve...)
	_, other := start(t, `serving at (http://\S+)/mcp`, serve...)

	chat := map[string]any{
		"model": "scripted", "messages": []any{map[string]string{"role": "user", "content": "Pay."}},
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "pick", "parameters": map[string]string{"type": "object"}}}},
	}
	message := complete(t, first[1], token, chat)
	passed, _ := message["tool_calls"].([]any)
	if len(passed) != 1 {
		t.Fatalf("the client got %v", message)
	}
	for _, cmd := range []*exec.Cmd{asking, worker} {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	start(t, `working for temporal`, work...)
	result := map[string]any{"role": "tool", "tool_call_id": passed[0].(map[string]any)["id"], "content": "blue"}
	chat["messages"] = append(chat["messages"].([]any), message, result)
	if got := complete(t, other[1], token, chat)["content"]; got != "It is paid in blue." {
		t.Errorf("the answer is %v", got)
	}
	book, err := faultserver.ReadLedger(ledger)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(book.Effects()); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// complete returns the message that the server at url answers a chat with.
func complete(t *testing.T, url, token string, chat any) map[string]any {
	t.Helper()
	body, err := json.Marshal(chat)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var form struct {
		Choices []struct{ Message map[string]any }
	}
	if err := json.Unmarshal(text, &form); err != nil || len(form.Choices) != 1 {
		t.Fatalf("%s: %v, %s", response.Status, err, text)
	}
	return form.Choices[0].Message
}

type answer struct{ Conversation, Answer string }

// say calls the tool of the server.
func say(t *testing.T, host, arguments string) (a answer) {
	t.Helper()
	cmd := consort(t, "call", "served", "converse", arguments, "--json", "--config", host)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, &stderr)
	}
	_, found, _ := bytes.Cut(out, []byte(`"type":"structured","json":`))
	if err := json.NewDecoder(bytes.NewReader(found)).Decode(&a); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return a
}

// What is wrong is said before anything begins.
func TestNobodyIsThere(t *testing.T) {
	path := write(t, "consort.toml", "[model]\nname = \"scripted\"\nbase_url = \"http://127.0.0.1:1\"\n[history]\npath = \"talks\"\n")
	for args, want := range map[string]string{
		"worker --temporal 127.0.0.1:1 --config " + path:                                            "the Temporal server at 127.0.0.1:1",
		"worker --temporal 127.0.0.1:1 --temporal-tls-ca nothing.pem --config " + path:              "--temporal-tls-ca",
		"worker --temporal 127.0.0.1:1 --temporal-tls-cert a --temporal-tls-key b --config " + path: "--temporal-tls-cert",
		"serve --converse --engine temporal --config " + path:                                       "--temporal",
	} {
		out, err := consort(t, strings.Fields(args)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("consort %s: %v, %s; want an error with %q", args, err, out, want)
		}
	}
}
