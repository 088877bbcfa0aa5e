// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

const (
	historyTable = "[history]\npath = \"talks.db\"\n"
	keepsNothing = "[history]\nstore = \"none\"\n"
)

// open returns the store that a configuration at path has.
func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(filepath.Dir(path), "talks.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// all are the conversations of a store.
func all(t *testing.T, store history.Store) []history.Info {
	t.Helper()
	var infos []history.Info
	for info, err := range store.List(t.Context(), history.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	return infos
}

func kinds(t *testing.T, store history.Store, id string) string {
	t.Helper()
	var kinds []string
	for c, err := range store.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(c.Kind()))
	}
	return strings.Join(kinds, " ")
}

// expects is a step whose request has this text after the last answer.
func expects(text, answer string) openaiserver.Step {
	return openaiserver.Step{Expect: openaiserver.Expect{Contains: []string{text}}, Reply: openaiserver.Message{Text: answer}}
}

// The second step of the script is only answered where the first is in the
// history.
func TestRunCarriesOnWithAConversation(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, expects("My name is Ada", "Hello."), expects("What am I called", "Ada.")), historyTable)
	consort(t, "run", "--conversation", "ada", "My name is Ada, and I ask about many things that no title has the room for.",
		"--config", path).expect(t, exit.Done)
	o := consort(t, "run", "--conversation", "ada", "What am I called?", "--config", path).expect(t, exit.Done)
	if o.stdout != "Ada.\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	store := open(t, path)
	infos := all(t, store)
	if len(infos) != 1 || infos[0].ID != "ada" ||
		infos[0].Title != "My name is Ada, and I ask about many things that no title…" || kinds(t, store, "ada") != "user assistant user assistant" {
		t.Errorf("%+v, %s", infos, kinds(t, store, "ada"))
	}
}

func TestATitleThatSomebodyGaveStays(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("One."), says("Two.")), historyTable)
	consort(t, "run", "--conversation", "a", "first", "--config", path).expect(t, exit.Done)
	title := "Mine"
	if err := open(t, path).Describe(t.Context(), "a", history.Change{Title: &title}); err != nil {
		t.Fatal(err)
	}
	consort(t, "run", "--conversation", "a", "second", "--config", path).expect(t, exit.Done)
	if infos := all(t, open(t, path)); infos[0].Title != title {
		t.Errorf("%+v", infos)
	}
}

// A single turn without a name is stored only on request; the flag names a file of this
// directory.
func TestNothingOfARunIsKeptUnlessAsked(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Hello.")))
	consort(t, "run", "hi", "--config", path).expect(t, exit.Done)
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 || isThere(placeOf(t)) {
		t.Errorf("%v, %v, %v", entries, err, isThere(placeOf(t)))
	}
	dir := t.TempDir()
	run{dir: dir}.consort(t, "run", "hi", "--config", path, "--history", "mine.db").expect(t, exit.Done)
	if _, err := os.Stat(filepath.Join(dir, "mine.db")); err != nil {
		t.Error(err)
	}
	path = file(t, model(t, says("Hello.")), keepsNothing)
	for _, args := range [][]string{{"run", "--conversation", "a", "hi"}, {"chat", "--continue"}, {"resume", "a"}, {"history", "list"}, {"approve", "a"}} {
		o := consort(t, append(args, "--config", path)...).expect(t, exit.Usage)
		contains(t, "standard error", o.stderr, "stores no conversations", "[history]", "--history FILE")
		o = consort(t, append(args, "--config", path, "--history", "none")...).expect(t, exit.Usage)
		contains(t, "standard error", o.stderr, "--history none stores no conversations")
	}
	if isThere(placeOf(t)) {
		t.Error("there is a store")
	}
}

func TestChatContinues(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, expects("My name is Ada", "Hello."), expects("What am I called", "Ada.")), historyTable)
	o := run{stdin: "My name is Ada.\n"}.consort(t, "chat", "--config", path).expect(t, exit.Done)
	id := regexp.MustCompile(`consort chat --conversation (\S+)`).FindStringSubmatch(o.stderr)
	if id == nil {
		t.Fatalf("no identity in %s", o.stderr)
	}
	// Somebody else's is newer, and not this person's to continue.
	store, owner := open(t, path), "ben"
	if err := store.Append(t.Context(), "bens", 0, canister.User{Content: canister.Texts("hi")}); err != nil {
		t.Fatal(err)
	}
	if err := store.Describe(t.Context(), "bens", history.Change{Owner: &owner}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--continue"}, {"--conversation", id[1]}} {
		if err := store.Fork(t.Context(), id[1], 2, "copy"+args[0]); err != nil {
			t.Fatal(err)
		}
		o := run{stdin: "What am I called?\n"}.consort(t, append([]string{"chat", "--config", path}, args...)...).expect(t, exit.Done)
		contains(t, "standard output", o.stdout, "Ada.")
		contains(t, "standard error", o.stderr, `"My name is Ada."`)
		var carried string
		for _, info := range all(t, store) {
			if info.Length == 4 {
				carried = info.ID
				contains(t, "standard error", o.stderr, "Continuing conversation "+display.Word(info.ID))
			}
		}
		if err := store.Delete(t.Context(), carried, history.AnyLength); err != nil || carried == "" {
			t.Fatalf("none was carried on with: %v", err)
		}
		if err := store.Fork(t.Context(), "copy"+args[0], 2, id[1]); err != nil && carried == id[1] {
			t.Fatal(err)
		}
	}
	contains(t, "standard error", consort(t, "chat", "--conversation", "adda", "--config", path).expect(t, exit.Usage).stderr,
		"no conversation adda", "consort history list")
	contains(t, "standard error", consort(t, "chat", "--conversation", "a", "--continue", "--config", path).expect(t,
		exit.Usage).stderr, "continue", "conversation")
	contains(t, "standard error", consort(t, "run", "--conversation", "a\nb", "hi", "--config", path).expect(t, exit.Usage).stderr, "control")
}

// A chat without a message leaves nothing behind.
func TestAChatOfNothingIsNotKept(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Hello.")), historyTable, "[conversation]\ninstructions = \"Be short.\"\n")
	o := run{stdin: "/quit\n"}.consort(t, "chat", "--config", path).expect(t, exit.Done)
	lacks(t, "standard error", o.stderr, "conversation")
	if infos := all(t, open(t, path)); len(infos) != 0 {
		t.Errorf("%+v", infos)
	}
	contains(t, "standard error", consort(t, "chat", "--continue", "--config", path).expect(t, exit.Usage).stderr, "no conversation to continue")
}

// What was left open is carried on with, once.
func TestResume(t *testing.T) {
	t.Parallel()
	path := file(t, model(t,
		says("", calls("atlas__weather", `{"city":"Oslo"}`)),
		openaiserver.Step{Expect: openaiserver.Expect{ToolMessages: 1, Contains: []string{"snow"}}, Reply: openaiserver.Message{Text: "It snows."}},
	), atlas(0), historyTable)
	store := open(t, path)
	left := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo?")},
		canister.Assistant{Head: canister.Head{ID: "m"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "c", Name: "atlas__weather", Arguments: `{"city":"Oslo"}`},
	}
	if err := store.Append(t.Context(), "left", 0, left...); err != nil {
		t.Fatal(err)
	}
	o := run{stdin: "/quit\n"}.consort(t, "chat", "--continue", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "Calls of tools without a result: 1", "type /resume")
	if got := kinds(t, store, "left"); got != "user assistant invocation" {
		t.Errorf("chat has made the call: %s", got)
	}
	o = consort(t, "resume", "left", "--config", path).expect(t, exit.Done)
	if o.stdout != "It snows.\n" || kinds(t, store, "left") != "user assistant invocation intent result assistant" {
		t.Errorf("%q, %s", o.stdout, kinds(t, store, "left"))
	}
	o = consort(t, "resume", "left", "--config", path).expect(t, exit.Done)
	if contains(t, "standard error", o.stderr, "Nothing is left to do"); o.stdout != "" {
		t.Errorf("standard output: %q", o.stdout)
	}
	if infos := all(t, store); infos[0].Title != "Oslo?" {
		t.Errorf("%+v", infos)
	}
	contains(t, "standard error", consort(t, "resume", "lost", "--config", path).expect(t, exit.Usage).stderr, "no conversation lost")
}

// A turn that fails says how to carry on with it.
func TestAFailedTurnIsResumed(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, openaiserver.Step{
		Before: []openaiserver.Reply{openaiserver.Failure{Status: 400, Message: "not today"}}, Reply: openaiserver.Message{Text: "Hello."},
	}), historyTable)
	o := consort(t, "run", "--conversation", "it's", "hi", "--config", path).expect(t, exit.Failed)
	contains(t, "standard error", o.stderr, "not today", "consort resume "+display.Word("it's"))
	if o = consort(t, "resume", "it's", "--config", path).expect(t, exit.Done); o.stdout != "Hello.\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	lacks(t, "standard error", o.stderr, "consort resume")
}

// Somebody else goes on with the conversation while the model answers.
func TestSomebodyElseWasFaster(t *testing.T) {
	t.Parallel()
	talks := filepath.Join(t.TempDir(), "consort.toml")
	store := open(t, talks)
	path := file(t, model(t, openaiserver.Step{Reply: openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
		theirs := canister.Assistant{Head: canister.Head{ID: "theirs"}, Content: canister.Texts("Theirs.")}
		if err := store.Append(t.Context(), "a", 1, theirs); err != nil {
			t.Error(err)
		}
		return openaiserver.Message{Text: "Mine."}
	})}, expects("again", "Carried on.")), "[history]\npath = \""+filepath.Dir(talks)+"/talks.db\"\n")
	o := consort(t, "run", "--conversation", "a", "hi", "--config", path).expect(t, exit.Failed)
	again := " --config " + path
	contains(t, "standard error", o.stderr, "another program continued this conversation", "consort history show a"+again,
		"consort chat --conversation a"+again)
	lacks(t, "standard error", o.stderr, "consort resume")
	if got := kinds(t, store, "a"); got != "user assistant" {
		t.Errorf("%s", got)
	}
	if err := store.Delete(t.Context(), "a", history.AnyLength); err != nil {
		t.Fatal(err)
	}
	if err := store.Append(t.Context(), "a", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("hi")}); err != nil {
		t.Fatal(err)
	}
	o = run{stdin: "again\n"}.consort(t, "chat", "--conversation", "a", "--config", path).expect(t, exit.Failed)
	if told := strings.Count(o.stderr, "another program continued this"); told != 1 {
		t.Errorf("told %d times:\n%s", told, o.stderr)
	}
	contains(t, "standard output", o.stdout, "Carried on.")
}

// Somebody deletes the conversation while the model answers.
func TestSomebodyDeletedIt(t *testing.T) {
	t.Parallel()
	talks := filepath.Join(t.TempDir(), "consort.toml")
	store := open(t, talks)
	path := file(t, model(t, openaiserver.Step{Reply: openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
		if err := store.Delete(t.Context(), "a", history.AnyLength); err != nil {
			t.Error(err)
		}
		return openaiserver.Message{Text: "Mine."}
	})}), "[history]\npath = \""+filepath.Dir(talks)+"/talks.db\"\n")
	o := consort(t, "run", "--conversation", "a", "hi", "--config", path).expect(t, exit.Failed)
	contains(t, "standard error", o.stderr, "another program deleted this conversation")
	lacks(t, "standard error", o.stderr, "consort history show", "consort chat", "consort resume")
}

// Suggested commands repeat the store that the user named.
func TestAdviceNamesThePlace(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Hello.")))
	talks := filepath.Join(filepath.Dir(path), "my talks.db")
	o := run{stdin: "hi\n"}.consort(t, "chat", "--history", talks, "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, " --config "+display.Word(path)+" --history "+display.Word(talks)+"\n")
	here := run{stdin: "hi\n", dir: filepath.Dir(path)}.consort(t, "chat").expect(t, exit.Done)
	contains(t, "in its folder", here.stderr, "Continue it with: consort chat --conversation ")
	if strings.Contains(here.stderr, "--config") {
		t.Errorf("%s", here.stderr)
	}
}

// With too few or too many arguments, the error lists the expected ones.
func TestArgumentsThatDoNotFit(t *testing.T) {
	t.Parallel()
	for line, args := range map[string][]string{
		"resume ID":            {"resume"},
		"approve [ID [WAIT]]":  {"approve", "a", "b", "c"},
		"history show ID":      {"history", "show"},
		"history delete ID":    {"history", "delete", "a", "b"},
		"history search WORDS": {"history", "search"},
		"version":              {"version", "now"},
	} {
		contains(t, line, consort(t, args...).expect(t, exit.Usage).stderr, "; expected: consort "+line+"\n")
	}
}

// The most recently changed conversation belongs to another user, and is not continued.
func TestChatContinuesNobodyElses(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Hello.")), historyTable)
	store, owner := open(t, path), "ben"
	for _, id := range []string{"mine", "bens"} {
		if err := store.Append(t.Context(), id, 0, canister.Supervisor{Head: canister.Head{ID: "s"}, Content: canister.Texts("hi")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Describe(t.Context(), "bens", history.Change{Owner: &owner}); err != nil {
		t.Fatal(err)
	}
	o := run{stdin: "/quit\n"}.consort(t, "chat", "--continue", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "Continuing conversation mine")
}

// A name that is empty is a variable of a shell that is not set, and a URL in
// the place of a file may have a password.
func TestNamesThatAreNone(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Never said.")), historyTable)
	for _, args := range []string{
		"run hello --conversation", "chat --conversation", "approve some --as", "history fork some --id", "history list --history",
	} {
		o := consort(t, append(strings.Fields(args), "", "--config", path)...).expect(t, exit.Usage)
		contains(t, args, o.stderr, strings.Fields(args)[len(strings.Fields(args))-1]+" is empty")
	}
	contains(t, "standard error", consort(t, "resume", "", "--config", path).expect(t, exit.Usage).stderr, "the ID of the conversation is empty")
	contains(t, "standard error", consort(t, "chat", "--continue", "--conversation", "a", "--config", path).expect(t,
		exit.Usage).stderr, "--continue and --conversation exclude each other")
	o := consort(t, "history", "list", "--history", "postgres://me:hunter2@localhost/talks", "--config", path).expect(t, exit.Usage)
	contains(t, "standard error", o.stderr, "--history: expected a file", "dsn")
	lacks(t, "standard error", o.stderr, "hunter2")
	if infos := all(t, open(t, path)); len(infos) != 0 {
		t.Errorf("a conversation has begun: %+v", infos)
	}
}

// TestJSONNamesTheConversation: the first event says where the conversation is kept, so
// that a program can carry it on; without a store there is nothing to name.
func TestJSONNamesTheConversation(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "history.db")
	path := file(t, model(t, says("One."), says("Two."), says("Three.")))
	started := func(args ...string) (id string, named bool) {
		o := consort(t, append(args, "--json", "--config", path)...).expect(t, exit.Done)
		first, _, _ := strings.Cut(o.stdout, "\n")
		var event map[string]any
		if err := json.Unmarshal([]byte(first), &event); err != nil || event["event"] != "turn_started" {
			t.Fatalf("%v: %s", err, o.stdout)
		}
		id, named = event["conversation"].(string)
		return id, named
	}
	id, named := started("run", "Go.", "--history", store)
	if !named || id == "" {
		t.Fatal("the conversation is not named")
	}
	if again, _ := started("run", "On.", "--history", store, "--conversation", id); again != id {
		t.Errorf("conversation %q was carried on as %q", id, again)
	}
	if id, named := started("run", "Go.", "--history", "none"); named {
		t.Errorf("a conversation that is not kept is named %q", id)
	}
}

// chat says what it does about a turn that broke off: it asks the model again, or leaves the
// calls until the next message.
func TestChatSaysHowItContinuesABrokenTurn(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("It snows.")), historyTable)
	asked := canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo?")}
	if err := open(t, path).Append(t.Context(), "broken", 0, asked); err != nil {
		t.Fatal(err)
	}
	o := consort(t, "chat", "--continue", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "Continuing conversation broken", "Its last turn ended without an answer: the model is asked again.")
	contains(t, "standard output", o.stdout, "It snows.")

	path = file(t, model(t), historyTable)
	if err := open(t, path).Append(t.Context(), "called", 0, asked,
		canister.Assistant{Head: canister.Head{ID: "a"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "a", CallID: "c", Name: "atlas__weather", Arguments: "{}"},
		canister.Intent{Head: canister.Head{ID: "n"}, Invocation: "i", Attempt: 1, Key: "k"},
	); err != nil {
		t.Fatal(err)
	}
	o = consort(t, "chat", "--continue", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "Calls of tools without a result: 1.", "type /resume")
	lacks(t, "standard error", o.stderr, "asked again")
}
