// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/testing/launch"
	"github.com/consort-go/consort/internal/testing/realservers"
)

// patience bounds one run of a client.
const patience = 60 * time.Second

// saw is the observations of the client on the TypeScript SDK.
type saw struct {
	Server struct{ Name, Version string }
	Tools  []struct {
		Name         string
		InputSchema  json.RawMessage
		OutputSchema json.RawMessage
	}
	Add, Find, Invalid, Forged, Whoami, Asked, Steps, Ended, Other result
	Progress                                                       []struct {
		Progress, Total float64
		Message         string
	}
	Logged             []struct{ Data any }
	Resources          []struct{ URI, Name string }
	Templates          []struct{ URITemplate string }
	Read, ReadTemplate struct{ Contents []struct{ URI, Text string } }
	Prompts            []struct{ Name string }
	Prompt             struct {
		Messages []struct{ Content struct{ Text string } }
	}
	Completion                    struct{ Completion struct{ Values []string } }
	Updated                       string
	Grown                         []string
	Unknown, NoResource, Canceled refusal
	NoToken, WrongToken           refusal
}

// result is the answer of a tool.
type result struct {
	Content           []struct{ Text string }
	StructuredContent json.RawMessage
	IsError           bool
	Meta              map[string]json.RawMessage `json:"_meta"`
}

func (r result) text() string {
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "|")
}

// code returns the code of the failure, as clients read it.
func (r result) code() string {
	var told struct{ Error struct{ Code string } }
	_ = json.Unmarshal(r.Meta["io.github.consort-go/failure"], &told)
	return told.Error.Code
}

// refusal is an error that the client got.
type refusal struct {
	Code    any
	Message string
	Result  json.RawMessage
}

func TestTypeScriptClient(t *testing.T) {
	servers := realservers.Need(t)
	for _, over := range []string{"stdio", "http"} {
		for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(over+"/"+protocol, func(t *testing.T) {
				t.Parallel()
				task := map[string]any{"modules": servers.Modules(), "protocol": protocol}
				who := "stdio"
				if over == "http" {
					who = "ada"
					task["url"], task["token"], task["otherToken"] = launchShop(t), "token-of-ada", "token-of-bob"
				} else {
					task["command"] = map[string]any{"command": os.Args[0], "env": map[string]string{role: "stdio"}}
				}
				var s saw
				decode(t, runScript(t, servers, "shop.mjs", task), &s)
				checkTools(t, &s, who)
				checkCalls(t, &s)
				checkLibrary(t, &s, protocol)
				if over == "http" {
					checkTokens(t, &s)
				}
			})
		}
	}
}

func checkTools(t *testing.T, s *saw, who string) {
	t.Helper()
	equal(t, "server", s.Server.Name+" "+s.Server.Version, "shop 1.2.3")
	var names []string
	for _, tool := range s.Tools {
		names = append(names, tool.Name)
		if hasOutput := len(tool.OutputSchema) > 0; hasOutput != (tool.Name == "shop__add") {
			t.Errorf("the output schema of %s is %s", tool.Name, tool.OutputSchema)
		}
		if tool.Name == "shop__whoami" && bytes.Contains(tool.InputSchema, []byte("user_id")) {
			t.Errorf("the trusted value shows: %s", tool.InputSchema)
		}
	}
	equal(t, "tools", strings.Join(names, " "),
		"shop__add shop__ask shop__ended shop__find shop__grow shop__seen shop__steps shop__touch shop__wait shop__whoami")
	equal(t, "who is asking", s.Whoami.text(), who)
	equal(t, "code of a forged user", s.Forged.code(), "INVALID_ARGUMENTS")
	if !slices.Contains(s.Grown, "shop__grown") {
		t.Errorf("the tools after a change are %v", s.Grown)
	}
}

func checkCalls(t *testing.T, s *saw) {
	t.Helper()
	equal(t, "add", string(s.Add.StructuredContent), `{"sum":5}`)
	equal(t, "code of what is not found", s.Find.code(), "NOT_FOUND")
	if !s.Find.IsError || !strings.Contains(s.Find.text(), `There is no article "x1".`) {
		t.Errorf("find = %+v", s.Find)
	}
	if !strings.Contains(string(s.Find.StructuredContent), `"code":"NOT_FOUND"`) {
		t.Errorf("the structured failure is %s", s.Find.StructuredContent)
	}
	equal(t, "code of arguments that do not fit", s.Invalid.code(), "INVALID_ARGUMENTS")
	if s.Unknown.Message == "" {
		t.Error("a tool that is not there was called")
	}
	equal(t, "the answer of the person", s.Asked.text(), "accept: to Milk?")
	if len(s.Progress) != 3 || s.Progress[2].Progress != 3 || s.Progress[2].Total != 3 || s.Progress[2].Message != "step 3" {
		t.Errorf("progress = %+v", s.Progress)
	}
	equal(t, "steps", s.Steps.text(), "arrived")
	if len(s.Logged) != 1 || s.Logged[0].Data != "three steps" {
		t.Errorf("logged = %+v", s.Logged)
	}
	if !strings.Contains(s.Canceled.Message, "enough") {
		t.Errorf("canceled = %+v", s.Canceled)
	}
	equal(t, "the function that was cancelled", s.Ended.text(), "its context ended")
}

func checkLibrary(t *testing.T, s *saw, protocol string) {
	t.Helper()
	if len(s.Resources) != 1 || s.Resources[0].URI != "shop://opening-hours" || s.Resources[0].Name != "opening hours" {
		t.Errorf("resources = %+v", s.Resources)
	}
	if len(s.Templates) != 1 || s.Templates[0].URITemplate != "shop://goods/{name}" {
		t.Errorf("templates = %+v", s.Templates)
	}
	if len(s.Read.Contents) != 1 || s.Read.Contents[0].Text != "Nine to five." {
		t.Errorf("read = %+v", s.Read)
	}
	if len(s.ReadTemplate.Contents) != 1 || s.ReadTemplate.Contents[0].Text != "There is tea." || s.ReadTemplate.Contents[0].URI != "shop://goods/tea" {
		t.Errorf("read of a template = %+v", s.ReadTemplate)
	}
	// MCP 2025-11-25, server/resources § Error Handling; SEP-2164.
	if want := map[string]any{"2025-11-25": -32002.0, "2026-07-28": -32602.0}[protocol]; s.NoResource.Code != want {
		t.Errorf("a resource that is not there: %+v", s.NoResource)
	}
	if len(s.Prompts) != 1 || s.Prompts[0].Name != "shop__sell" {
		t.Errorf("prompts = %+v", s.Prompts)
	}
	if len(s.Prompt.Messages) != 1 || s.Prompt.Messages[0].Content.Text != "Sell me some tea." {
		t.Errorf("prompt = %+v", s.Prompt)
	}
	equal(t, "completion", strings.Join(s.Completion.Completion.Values, " "), "coffee cocoa")
	equal(t, "updated", s.Updated, "shop://opening-hours")
}

func checkTokens(t *testing.T, s *saw) {
	t.Helper()
	equal(t, "who the other is", s.Other.text(), "bob")
	for name, r := range map[string]refusal{"no token": s.NoToken, "a wrong token": s.WrongToken} {
		if r.Result != nil || r.Code != 401.0 && !strings.Contains(r.Message, "HTTP 401") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("the client printed what is not expected: %v\n%s", err, text)
	}
}

// runScript runs a script of this directory and returns its output.
func runScript(t *testing.T, servers *realservers.Servers, script string, task any) []byte {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t, servers.Script(path, string(text)))
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

// output runs a command and returns its output.
func output(t *testing.T, argv []string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // clients keep things there
	cmd.Stderr = t.Output()
	cmd.WaitDelay = 5 * time.Second
	return cmd.Output()
}

// launchShop runs the shop over HTTP until the test ends, and returns its URL.
func launchShop(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=http")
	return launch.Program(t, cmd)
}
