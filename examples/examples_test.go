// SPDX-License-Identifier: Apache-2.0

// Package examples_test runs the examples as processes: against a scripted
// OpenAI-compatible server on this machine, and real MCP servers.
package examples_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/internal/demoserver"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/raced"
	"github.com/creack/pty"
)

var (
	bin  string // where the examples were built
	self string // this program, which is also an MCP server: see TestMain
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "mcp-server" {
		if err := demoserver.ServeStdio(context.Background(), demoserver.New(os.Args[2], 0), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	status, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// build runs the tests with the examples built.
func build(m *testing.M) (status int, err error) {
	if self, err = os.Executable(); err != nil {
		return 0, err
	}
	if bin, err = os.MkdirTemp("", "examples"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "./...").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// says is a step in which the model answers after it has received some words.
func says(text string, told ...string) openaiserver.Step {
	return openaiserver.Step{Expect: openaiserver.Expect{Contains: told}, Reply: openaiserver.Message{Text: text}}
}

// asks is a step in which the model calls tools, given as name and arguments.
func asks(calls ...string) openaiserver.Step {
	var step openaiserver.Step
	var message openaiserver.Message
	for pair := range slices.Chunk(calls, 2) {
		step.Expect.Offers = append(step.Expect.Offers, pair[0])
		message.Calls = append(message.Calls, openaiserver.Call{Name: pair[0], Arguments: pair[1]})
	}
	step.Reply = message
	return step
}

// stage is what an example runs on.
type stage struct {
	t     *testing.T
	model *openaiserver.Server
}

func newStage(t *testing.T, steps ...openaiserver.Step) *stage {
	t.Helper()
	model, err := openaiserver.Start(openaiserver.Script{Steps: steps}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		model.Close()
		for _, fault := range model.Faults() {
			t.Error(fault)
		}
		if !t.Failed() && len(model.Requests()) != len(steps) {
			t.Errorf("the model was asked %d times, not %d", len(model.Requests()), len(steps))
		}
	})
	return &stage{t, model}
}

// run runs an example and returns its output.
func (s *stage) run(input, example string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, example), args...)
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL="+s.model.URL())
	cmd.Stdin = strings.NewReader(input)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%s: %v\n%s%s", example, err, &stdout, &stderr)
	}
	return stdout.String()
}

// onTerminal runs an example on a terminal, types an answer after the question, and
// returns all that was shown.
func (s *stage) onTerminal(question, answer, example string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, example), args...)
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL="+s.model.URL())
	terminal, err := pty.Start(cmd)
	if errors.Is(err, pty.ErrUnsupported) {
		s.t.Skip("there are no terminals here")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer terminal.Close()
	var shown bytes.Buffer
	for answered, buffer := false, make([]byte, 4096); ; {
		n, err := terminal.Read(buffer)
		shown.Write(buffer[:n])
		if err != nil { // the terminal is gone
			break
		}
		if !answered && strings.Contains(shown.String(), question) {
			answered = true
			if _, err := terminal.WriteString(answer); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		s.t.Fatalf("%s: %v\n%s", example, err, &shown)
	}
	return shown.String()
}

func contains(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// same compares what an example printed, line by line.
func same(t *testing.T, got string, want ...string) {
	t.Helper()
	if expected := strings.Join(want, "\n") + "\n"; got != expected {
		t.Errorf("printed\n%swant\n%s", got, expected)
	}
}

func TestEmbed(t *testing.T) {
	s := newStage(t,
		asks("local__clock", `{"zone":"UTC"}`, "mcp__weather", `{"city":"Oslo"}`),
		says("It snows in Oslo.", "UTC", "Oslo: -3 °C, snow"))
	same(t, s.run("", "embed", "What is the weather in Oslo?", self, "mcp-server", "atlas"), "It snows in Oslo.")
}

// A server that cannot be started is an error before the model is asked.
func TestServerThatCannotBeStarted(t *testing.T) {
	const question, server = "What is the weather in Oslo?", "no-such-server"
	file := filepath.Join(t.TempDir(), "consort.toml")
	text := "[model]\nname = \"m\"\nbase_url = \"${OPENAI_BASE_URL}\"\n[mcp.atlas]\ntransport = \"stdio\"\ncommand = [\"" + server + "\"]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for example, arguments := range map[string][]string{"embed": {question, server}, "mixed": {question, server}, "fromtoml": {file, question}} {
		s := newStage(t) // the model is not asked
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, example), arguments...)
		cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL="+s.model.URL())
		said, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(said), "no-such-server") {
			t.Errorf("%s: %v, and it says %q", example, err, said)
		}
	}
}

// The file is used as it is: its server is started with the go command.
func TestFromTOML(t *testing.T) {
	t.Setenv("HOME", raced.Home(t))
	t.Setenv("GOENV", "")
	s := newStage(t,
		asks("atlas__weather", `{"city":"Oslo"}`),
		says("It snows in Oslo.", "Oslo: -3 °C, snow"))
	same(t, s.run("", "fromtoml", filepath.Join("fromtoml", "consort.toml"), "What is the weather in Oslo?"), "It snows in Oslo.")
	if body := string(s.model.Requests()[0].Body); !strings.Contains(body, "Answer in one sentence.") || strings.Contains(body, "local_time") {
		t.Errorf("the file was not heeded: %s", body)
	}
}

// A turn that waits for a decision has no answer, which the example reports.
func TestFromTOMLThatWaits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "consort.toml")
	text := "[model]\nname = \"m\"\nbase_url = \"${OPENAI_BASE_URL}\"\n[mcp.atlas]\ntransport = \"stdio\"\ncommand = ['" + self +
		"', \"mcp-server\", \"atlas\"]\n[[approval.rules]]\naction = \"defer\"\n[history]\npath = \"history.db\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, asks("atlas__weather", `{"city":"Oslo"}`))
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "fromtoml"), file, "What is the weather in Oslo?")
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL="+s.model.URL())
	said, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the example succeeded")
	}
	contains(t, string(said), "the turn waits for 1 answer")
}

func TestApproval(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"new", "old"} {
		if err := os.WriteFile(filepath.Join(directory, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	request := []string{directory, "Tidy up."}
	ask := []openaiserver.Step{asks("files__list", `{}`), asks("files__remove", `{"name":"old"}`)}

	for _, refused := range []struct{ answer, told string }{{"\r", "The person said no."}, {"too early\r", "The person said no: too early"}} {
		no := newStage(t, append(ask, says("It stays.", refused.told))...)
		contains(
			t, no.onTerminal("a reason for no] ", refused.answer, "approval", request...),
			"files__remove, which may destroy something", `"name": "old"`, "It stays.",
		)
	}
	nobody := newStage(t, append(ask, says("It stays.", "no person can be asked"))...)
	same(t, nobody.run("y\n", "approval", request...), "It stays.")
	if _, err := os.Stat(filepath.Join(directory, "old")); err != nil {
		t.Errorf("the file was removed against the person's word: %v", err)
	}

	yes := newStage(t, append(ask, says("It is gone.", "removed old"))...)
	contains(t, yes.onTerminal("a reason for no] ", "y\r", "approval", request...), "It is gone.")
	if left, err := os.ReadDir(directory); err != nil || len(left) != 1 || left[0].Name() != "new" {
		t.Errorf("left are %v, %v", left, err)
	}
}

// Each step is made by a process of its own.
func TestResume(t *testing.T) {
	var rolled string
	s := newStage(t, asks("dice__roll", `{}`), openaiserver.Step{Reply: openaiserver.Respond(func(r *openaiserver.Request) openaiserver.Reply {
		rolled = r.Messages[len(r.Messages)-1].Text
		return openaiserver.Message{Text: "You rolled " + rolled + "."}
	})})
	folder := filepath.Join(t.TempDir(), "talks")
	same(t, s.run("", "resume", folder, "Roll a die."), "model: ", "asked for dice__roll", "next: converse.Invoke")
	result := s.run("", "resume", folder)
	same(t, s.run("", "resume", folder), "model: You rolled "+rolled+".", "next: converse.Done")
	same(t, result, "result: "+rolled, "next: converse.Exchange")
	same(t, s.run("", "resume", folder), "next: converse.Done")
}

func TestMixed(t *testing.T) {
	s := newStage(t,
		asks("luggage__pack", `{"items":["hat"]}`),
		asks("luggage__weigh", `{}`),
		asks("desk__check_in", `{"items":["hat","coat"]}`),
		asks("desk__check_in", `{"items":["1","2","3","4","5","6"]}`),
		says("Done.", "6 items are too many: 5 may fly"))
	same(t, s.run("", "mixed", "Check my hat in.", self, "mcp-server", "satchel"),
		`luggage__pack: in the satchel: hat`,
		`luggage__weigh: 1 of 1, hat`,
		`luggage__weigh: 1 items, 280 g`,
		`desk__check_in: 1 of 2, hat`,
		`desk__check_in: 2 of 2, coat`,
		`desk__check_in: 2 items are checked in`,
		`desk__check_in: 6 items are too many: 5 may fly`,
		`Done.`)
}

func TestFakes(t *testing.T) {
	s := newStage(t, asks("weather__weather", `{"city":"Oslo"}`), says("Boots.", "snow"))
	same(t, s.run("", "fakes", "Oslo", self, "mcp-server", "atlas"), "Boots.")
}

// What it prints is compared with its README.md by a test of its own.
func TestTasks(t *testing.T) {
	out := newStage(t).run("", "tasks")
	for _, want := range []string{"Ada: What is left for me to do?", "model: The milk.", "is not let in", "mcp    for 2  delete_task", "forged user_id"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}
}

// No example is left out here.
func TestAllExamplesAreRun(t *testing.T) {
	entries, err := os.ReadDir(bin)
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for _, entry := range entries {
		built = append(built, strings.TrimSuffix(entry.Name(), ".exe"))
	}
	if want := []string{"approval", "embed", "fakes", "fromtoml", "mixed", "resume", "tasks"}; !slices.Equal(built, want) {
		t.Errorf("there are the examples %q; those with a test are %q", built, want)
	}
}
