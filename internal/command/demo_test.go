// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// happening is a line of JSON, as far as the tests read it.
type happening struct {
	Event      string
	Invocation string
	Name       string
	Reason     string
	Text       string
	Canister   json.RawMessage
}

// events reads the lines of JSON, and that each canister is one.
func events(t *testing.T, stdout string) []happening {
	t.Helper()
	var list []happening
	for line := range strings.Lines(stdout) {
		var e happening
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Event == "" {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Canister != nil {
			if _, err := canister.Unmarshal(e.Canister); err != nil {
				t.Errorf("%v: %s", err, line)
			}
		}
		list = append(list, e)
	}
	return list
}

func count(list []happening, name string) int {
	n := 0
	for _, e := range list {
		if e.Event == name {
			n++
		}
	}
	return n
}

// overlapping returns the tools that ran at the same time as others, at the
// moment when most did.
func overlapping(list []happening) []string {
	var most, running []string
	for _, e := range list {
		switch e.Event {
		case "invocation_started":
			running = append(running, e.Name)
			if len(running) > len(most) {
				most = append([]string(nil), running...)
			}
		case "invocation_completed":
			for i, name := range running {
				if name == e.Name {
					running = append(running[:i:i], running[i+1:]...)
					break
				}
			}
		}
	}
	return most
}

func TestDemo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	o := run{env: []string{"TMPDIR=" + folder}}.consort(t, "demo", "--json").expect(t, exit.Done)
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("it leaves behind %v, %v", left, err)
	}
	list := events(t, o.stdout)
	if n := count(list, "exchange_completed"); n < 3 {
		t.Errorf("%d exchanges, want three at least", n)
	}
	together := strings.Join(overlapping(list), " ")
	contains(t, "what ran at the same time", together, "ada__", "ben__")
	var failed, recovered string
	for _, e := range list {
		if e.Event != "invocation_completed" {
			continue
		}
		c, _ := canister.Unmarshal(e.Canister)
		switch result := c.(canister.Result); {
		case result.Code != "" && failed != "":
			t.Errorf("a second failure: %s", e.Canister)
		case result.Code != "":
			failed = e.Name
		case failed != "" && strings.HasSuffix(e.Name, "__complete_task"):
			recovered = e.Name
		}
	}
	if failed == "" || recovered == "" {
		t.Errorf("failed: %q, recovered from: %q", failed, recovered)
	}
	if last := list[len(list)-1]; last.Event != "turn_completed" || last.Reason != "answered" {
		t.Errorf("the last event is %+v", last)
	}
	if o.stderr != "" {
		t.Errorf("standard error: %s", o.stderr)
	}
}

// TestDemoOnEachAPI: the conversation is the same with each API.
func TestDemoOnEachAPI(t *testing.T) {
	t.Parallel()
	var said []string
	for _, api := range []string{"chat", "responses", "messages"} {
		o := consort(t, "demo", "--json", "--api", api).expect(t, exit.Done)
		var text strings.Builder
		for _, e := range events(t, o.stdout) {
			if e.Event == "text_delta" || e.Event == "invocation_requested" {
				text.WriteString(e.Text + e.Name)
			}
		}
		said = append(said, text.String())
	}
	if !strings.Contains(said[0], "Left are the drinks for Ada") || said[1] != said[0] || said[2] != said[0] {
		t.Errorf("chat: %s\nresponses: %s\nmessages: %s", said[0], said[1], said[2])
	}
}

func TestDemoTellsItsStory(t *testing.T) {
	t.Parallel()
	o := consort(t, "demo").expect(t, exit.Done)
	contains(t, "the screen", o.stdout,
		"a script, not a real model", "[mcp.ada]", "[mcp.ben]", "You: What do Ada and Ben",
		"✗ ben__complete_task(task_id: 3)", "NOT_FOUND: there is no task 3", "✓ ada__complete_task(task_id: 3)",
		"Left are the drinks for Ada", "7 exchanges with the model, 8 invocations")
	lacks(t, "the screen", o.stdout, "\x1b")
}

func TestDemoWithARealModel(t *testing.T) {
	t.Parallel()
	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		{
			Expect: openaiserver.Expect{Model: "real", Offers: []string{"ada__list_tasks", "ben__add_task"}},
			Reply:  openaiserver.Message{Calls: []openaiserver.Call{calls("ada__list_tasks", `{}`)}},
		},
		{Expect: openaiserver.Expect{Contains: []string{"Fix the tap"}}, Reply: openaiserver.Message{Text: "The tap drips."}},
		{Reply: openaiserver.Message{Text: "It drips no more."}},
	}}, &openaiserver.Options{APIKey: "k3y-of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	o := run{env: []string{"REAL_KEY=k3y-of-the-test"}}.consort(t,
		"demo", "--base-url", server.URL(), "--model", "real", "--api-key", "env:REAL_KEY").expect(t, exit.Done)
	contains(t, "the screen", o.stdout, "real at http://", "The tap drips.", "It drips no more.")
	lacks(t, "the output", o.stdout+o.stderr, "k3y-of-the-test", "script")
}

func TestDemoRefusesFlagsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--base-url", "http://127.0.0.1:1/v1"},
		{"--api-key", "env:KEY"},
		{"--model", "m", "--api-key", "sk-secret"},
		{"--api", "smoke"},
	} {
		o := consort(t, append([]string{"demo"}, args...)...).expect(t, exit.Usage)
		lacks(t, "the complaint", o.stderr, "sk-secret")
	}
}
