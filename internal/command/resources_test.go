// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/reports"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

func TestResourcesAreListedAndRead(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	path := file(t, table, atlas(0), broken)
	o := consort(t, "resources", "--config", path).expect(t, exit.Done)
	contains(t, "the list", o.stdout, "library\n", "  note:///welcome", "A welcome", "note:///by/{name}", "notes by name")
	lacks(t, "the list", o.stdout, "atlas")
	contains(t, "standard error", o.stderr, "away: ", "broken")

	found := consort(t, "tools", "--search", "welcome", "--config", path).expect(t, exit.Done).stdout
	contains(t, "what a search finds", found, "note:///welcome", "resource of ")
	o = consort(t, "resources", "--json", "--config", path).expect(t, exit.Done)
	var list reports.ResourceList
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Resources) != 3 || len(list.Templates) != 1 || len(list.Away) != 1 || list.Templates[0].URI != "note:///by/{name}" {
		t.Errorf("%s", o.stdout)
	}

	path = file(t, table)
	for uri, want := range map[string]string{
		"note:///welcome": "You are welcome at note:///welcome.",
		"note:///by/ada":  "You are welcome at note:///by/ada.",
		"note:///picture": "[resource note:///picture, image/png, 3 bytes]\n",
		"note:///secret":  "The password is [secret].",
	} {
		if o := consort(t, "resources", "--read", uri, "--config", path).expect(t, exit.Done); o.stdout != want {
			t.Errorf("%s holds %q, want %q", uri, o.stdout, want)
		}
	}
	o = consort(t, "resources", "--read", "note:///welcome", "--json", "--config", path).expect(t, exit.Done)
	held, err := canister.Unmarshal([]byte(o.stdout))
	if document, ok := held.(canister.Document); err != nil || !ok || document.Title != "A welcome" || document.URI != "note:///welcome" {
		t.Errorf("%v: %s", err, o.stdout)
	}
	o = consort(t, "resources", "--read", "note:///by/nobody", "--config", path).expect(t, exit.Tool)
	contains(t, "standard error", o.stderr, "NOT_FOUND")
	consort(t, "resources", "--read", "other:///", "--config", file(t, broken)).expect(t, exit.Tool)
}

func TestPromptsAreListedAndGot(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	path := file(t, table)
	o := consort(t, "prompts", "--config", path).expect(t, exit.Done)
	contains(t, "the list", o.stdout, "library\n", "  library__greet name [tone]  A greeting", "library__over")
	o = consort(t, "prompts", "--json", "--config", path).expect(t, exit.Done)
	var list reports.PromptList
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Prompts) != 2 || list.Prompts[0].Prompt != "greet" || !list.Prompts[0].Arguments[0].Required || list.Prompts[0].Arguments[1].Required {
		t.Errorf("%s", o.stdout)
	}
	greet := []string{"prompts", "library__greet", "--argument", "name=Ada", "--argument", "tone=in verse = a=b", "--config", path}
	if o = consort(t, greet...).expect(t, exit.Done); o.stdout != "user: Greet Ada, in verse = a=b.\n" {
		t.Errorf("the prompt is %q", o.stdout)
	}
	shown := run{}.onTerminal(t, greet...).ends(exit.Done)
	contains(t, "the screen", colour.ReplaceAllString(shown, ""), "user: Greet Ada, in verse = a=b.")
	o = consort(t, append(greet, "--json")...).expect(t, exit.Done)
	if held, err := canister.Unmarshal([]byte(o.stdout)); err != nil || held.Kind() != canister.KindUser {
		t.Errorf("%v: %s", err, o.stdout)
	}
	consort(t, "prompts", "library__none", "--config", path).expect(t, exit.Tool)
	consort(t, "prompts", "library__greet", "--argument", "name", "--config", path).expect(t, exit.Usage)
	contains(t, "no name", consort(t, "prompts", "--argument", "tone=kind", "--config", path).expect(t, exit.Usage).stderr, "--argument needs the NAME of a prompt")
	if o := consort(t, "prompts", "--config", file(t, "")).expect(t, exit.Done); o.stdout != "no prompts\n" {
		t.Errorf("of nobody: %q", o.stdout)
	}
}

// expecting is a step that wants to be asked with texts.
func expecting(reply string, contains ...string) openaiserver.Step {
	return openaiserver.Step{Expect: openaiserver.Expect{Contains: contains}, Reply: openaiserver.Message{Text: reply}}
}

func TestConversationsBeginWithDocumentsAndPrompts(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	o := consort(t, "run", "And?", "--document", "note:///welcome", "--document", "note:///secret",
		"--config", file(t, table, model(t, expecting("Fine.", "You are welcome at note", "The password is [secret].", "And?")))).expect(t, exit.Done)
	if o.stdout != "Fine.\n" {
		t.Errorf("standard output: %q, standard error: %s", o.stdout, o.stderr)
	}
	o = run{stdin: "is not read"}.consort(t, "run", "--prompt", "library__greet", "--argument", "name=Ada",
		"--config", file(t, table, model(t, expecting("Hello, Ada.", "Greet Ada, .")))).expect(t, exit.Done)
	if o.stdout != "Hello, Ada.\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	over := file(t, table, model(t, says("the prompt has said it"), expecting("Mine.", "So be it.")))
	o = consort(t, "run", "--prompt", "library__over", "--config", over).expect(t, exit.Usage)
	contains(t, "standard error", o.stderr, `the prompt "library__over" ends with a reply`)
	consort(t, "run", "So be it.", "--prompt", "library__over", "--config", over).expect(t, exit.Done)

	o = run{stdin: "More.\n"}.consort(t, "chat", "--prompt", "library__greet", "--argument", "name=Bob",
		"--config", file(t, table, model(t, expecting("Hello, Bob.", "Greet Bob"), expecting("Enough.", "More.")))).expect(t, exit.Done)
	if o.stdout != "Hello, Bob.\nEnough.\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
}

// Ctrl-C does not wait for a document that does not come.
func TestCtrlCEndsAnOpening(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	for _, command := range [][]string{{"chat"}, {"run", "hi"}} {
		x := run{}.onTerminal(t, append(command, "--document", "note:///by/sloth", "--config", file(t, table, model(t)))...)
		x.expect("reading note:///by/sloth")
		x.types("\x03")
		x.ends(exit.Failed)
	}
}

func TestOpeningsThatCannotBe(t *testing.T) {
	t.Parallel()
	table, _ := library(t, "")
	path := file(t, table, model(t))
	for _, test := range []struct {
		want exit.Status
		says string
		args []string
	}{
		{exit.Usage, "--argument needs a prompt", []string{"--argument", "a=b"}},
		{exit.Usage, "--argument: expected NAME=VALUE", []string{"--prompt", "library__greet", "--argument", "=b"}},
		{exit.Tool, "NOT_FOUND", []string{"--prompt", "greet"}},
		{exit.Tool, "NOT_FOUND", []string{"--document", "note:///by/nobody"}},
	} {
		for _, command := range []string{"run", "chat"} {
			args := append([]string{command, "--config", path}, test.args...)
			if command == "run" {
				args = append(args, "hi")
			}
			o := run{stdin: "hi\n"}.consort(t, args...).expect(t, test.want)
			contains(t, strings.Join(args, " "), o.stderr, test.says)
		}
	}
}
