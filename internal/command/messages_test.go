// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// The reader of standard output may close it: that is not an error.
func TestAClosedPipeIsNoError(t *testing.T) {
	t.Parallel()
	path, _ := shelved(t)
	for _, args := range []string{"history show talk", "history list --json", "history export --all", "version", "tools"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		arguments := strings.Fields(args)
		if args != "version" {
			arguments = append(arguments, "--config", path)
		}
		cmd := run{}.command(ctx, t, arguments...)
		stderr := temporary(t)
		cmd.Stdout, cmd.Stderr = w, stderr
		_ = cmd.Run()
		cancel()
		w.Close()
		if got := cmd.ProcessState.ExitCode(); got != int(exit.Pipe) || written(t, stderr) != "" {
			t.Errorf("%s: exit status %d, standard error %q", args, got, written(t, stderr))
		}
	}
}

// A chat takes no further lines when the reader of its answers has left.
func TestAClosedPipeEndsAChat(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("One."), says("Two.")), historyTable)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := run{}.command(ctx, t, "chat", "--config", path)
	stderr := temporary(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("first\nsecond\n/save Third\n"), w, stderr
	_ = cmd.Run()
	w.Close()
	if got := cmd.ProcessState.ExitCode(); got != int(exit.Pipe) {
		t.Errorf("status %d, want %d", got, exit.Pipe)
	}
	lacks(t, "standard error", written(t, stderr), "consort: ", "Third")
	store := open(t, path)
	talks := all(t, store)
	if len(talks) != 1 || talks[0].Title != "first" {
		t.Fatalf("the conversations are %+v", talks)
	}
	if got := kinds(t, store, talks[0].ID); strings.Count(got, "user") != 1 {
		t.Errorf("the conversation has %s, want one message of the user", got)
	}
}

// Commands that ask no person report the question, and where it can be answered.
func TestADeclinedQuestionIsTold(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("", calls("elicitor__book", `{}`)), says("Not booked.")), elicitor(t), allows)
	for _, args := range [][]string{{"call", "elicitor", "book"}, {"run", "Book."}} {
		o := consort(t, append(args, "--config", path)...).expect(t, exit.Done)
		contains(t, "standard error", o.stderr, "elicitor asked: Which seat?", "declined", "consort chat")
	}
}

// mortal is the table of a server that dies in its first call.
const mortal = `[mcp.mortal]
transport = "stdio"
protocol = "2025-11-25"
command = ["sh", "-c", '''
read a; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"1"}}}'
read b; read c; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"die","inputSchema":{"type":"object"}}]}}'
read d; echo "KeyError: no key" >&2; exit 3
''']
`

// How a server ended stands once, on the line below the call that failed.
func TestTheEndOfAServerIsTold(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("", calls("mortal__die", `{}`)), says("It died.")), mortal, allows)
	o := consort(t, "call", "mortal", "die", "--config", path).expect(t, exit.Tool)
	contains(t, "standard error of call", o.stderr, "OUTCOME_UNKNOWN", "exit status 3", "KeyError: no key")
	shown := run{env: []string{"NO_COLOR=1"}}.onTerminal(t, "run", "Die.", "--config", path).ends(exit.Done)
	contains(t, "the screen", shown, "✗ mortal__die", "exit status 3", "KeyError: no key")
	if n := strings.Count(shown, "KeyError"); n != 1 {
		t.Errorf("it is told %d times: %q", n, shown)
	}
}

func TestCheckOfflineSaysThatTheModelWasNotAsked(t *testing.T) {
	t.Parallel()
	path := file(t, "[model]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"k-4711\"\n",
		"[[model.fallback]]\nname = \"claude-x\"\napi_key = \"k-4712\"\n", "[[model.fallback]]\nname = \"n\"\nbase_url = \"http://127.0.0.1:2/v1\"\n")
	contains(t, "the report", consort(t, "check", "--offline", "--config", path).expect(t, exit.Done).stdout,
		"✓ model m at http://127.0.0.1:1/v1 (", "✓ fallback claude-x (", "✓ fallback n at http://127.0.0.1:2/v1 (", "no request was sent")
	var form struct {
		Model reports.Model `json:"model"`
	}
	if err := json.Unmarshal([]byte(consort(t, "check", "--json", "--offline", "--config", path).expect(t, exit.Done).stdout), &form); err != nil {
		t.Fatal(err)
	}
	if f := form.Model.Fallbacks; len(f) != 2 || f[0] != (reports.Link{Name: "claude-x"}) || f[1].BaseURL != "http://127.0.0.1:2/v1" {
		t.Errorf("the fallbacks are %+v", f)
	}
}

// When the model is down, run says so in a line, goes on with the fallback, and shows
// nothing of it on standard output.
func TestRunMovesToTheFallback(t *testing.T) {
	t.Parallel()
	down := model(t, openaiserver.Step{Reply: openaiserver.Failure{Status: 529, Message: "Overloaded"}})
	up := strings.Replace(model(t, says("Hello.")), "[model]", "[[model.fallback]]", 1)
	path := file(t, down, strings.Replace(up, `"scripted"`, `"second"`, 1))
	o := consort(t, "run", "Hi", "--config", path).expect(t, exit.Done)
	if o.stdout != "Hello.\n" {
		t.Errorf("it says %q", o.stdout)
	}
	contains(t, "standard error", o.stderr, "scripted did not answer, asking second: model: Overloaded (status 529")
	o = consort(t, "run", "--json", "Hi", "--config", path).expect(t, exit.Done)
	contains(t, "the events", o.stdout, `{"event":"exchange_moved","error":"model: Overloaded (status 529`,
		`"from":"scripted","to":"second"}`, `"model":"second"`)
}

// A prompt from a pipe has no line break at its end.
func TestAPipedPromptHasNoLastLineBreak(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Read.")), historyTable)
	run{stdin: "one\ntwo\n"}.consort(t, "run", "--conversation", "c", "--config", path).expect(t, exit.Done)
	contains(t, "the history", consort(t, "history", "show", "c", "--json", "--config", path).expect(t, exit.Done).stdout, `"one\ntwo"`)
}

// A turn that broke off is carried on, and that is said.
func TestContinueSaysThatTheModelIsAskedAgain(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("It snows.")), historyTable)
	s := open(t, path)
	if err := s.Append(t.Context(), "c", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo?")}); err != nil {
		t.Fatal(err)
	}
	o := consort(t, "chat", "--continue", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "ended without an answer", "asked again")
}

func TestHelpNamesCompletion(t *testing.T) {
	t.Parallel()
	contains(t, "the help", consort(t, "--help").expect(t, exit.Done).stdout, "completion ")
}
