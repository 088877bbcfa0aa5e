// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// effects is the table of a server whose tool effect leaves a trace, and what
// counts the traces.
func effects(t *testing.T) (table string, count func() int) {
	t.Helper()
	dir := t.TempDir()
	server, err := faultserver.StartHTTP(faultserver.Script{Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return fmt.Sprintf("[mcp.world]\ntransport = \"http\"\nurl = %q\n", server.URL()), func() int {
		ledger, err := faultserver.ReadLedger(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(ledger.Effects())
	}
}

const defers = "[approval]\ndefault = \"defer\"\n"

// waitsFor are what approve --json lists.
func waitsFor(t *testing.T, path, id string) []histories.WaitJSON {
	t.Helper()
	var list histories.WaitList
	if err := json.Unmarshal([]byte(consort(t, "approve", id, "--json", "--config", path).expect(t, exit.Done).stdout), &list); err != nil {
		t.Fatal(err)
	}
	return list.Waits
}

// TestAnApprovalThatWaits: the turn ends without an effect, and another process answers;
// the name of the approver is stored.
func TestAnApprovalThatWaits(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	path := file(t, model(t, says("", calls("world__effect", `{"key":"a"}`)), expects("a", "Paid.")), world, historyTable, defers)
	o := consort(t, "run", "--conversation", "pay", "Pay.", "--config", path).expect(t, exit.Waits)
	contains(t, "standard error", o.stderr, "waits for an answer", "consort approve pay")
	if count() != 0 {
		t.Fatal("it happened before anybody was asked")
	}
	o = consort(t, "resume", "pay", "--config", path).expect(t, exit.Waits)
	contains(t, "standard error", o.stderr, "consort approve pay")
	o = consort(t, "chat", "--conversation", "pay", "--config", path).expect(t, exit.Waits)
	contains(t, "standard error", o.stderr, "consort approve pay")
	lacks(t, "standard error", o.stderr, "asked again")
	o = consort(t, "approve", "pay", "--config", path).expect(t, exit.Done)
	contains(t, "the list", o.stdout, "approval until", "world__effect", `"key": "a"`)
	contains(t, "standard error", o.stderr, "--allow, --deny, --arguments")
	waits := waitsFor(t, path, "pay")
	if len(waits) != 1 || waits[0].Tool != "world__effect" || waits[0].For != "approval" || time.Until(waits[0].Deadline) < 23*time.Hour {
		t.Fatalf("%+v", waits)
	}
	consort(t, "approve", "pay", "nothing-like-it", "--config", path).expect(t, exit.Usage)
	contains(t, "standard error", consort(t, "approve", "pay", "", "--config", path).expect(t, exit.Usage).stderr,
		"argument 2 is empty; expected: consort approve [ID [WAIT]]")
	contains(t, "standard error", consort(t, "approve", "pay", "--again", "--config", path).expect(t, exit.Usage).stderr,
		"--again does not answer a wait for approval", "--allow, --deny")
	o = consort(t, "approve", "pay", waits[0].ID[:6], "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "consort resume pay")
	if count() != 0 {
		t.Error("an answer alone does nothing")
	}
	contains(t, "standard error", consort(t, "approve", "pay", "--allow", "--deny", "x", "--config", path).expect(t,
		exit.Usage).stderr, "--allow and --deny exclude each other")
	contains(t, "standard error", consort(t, "approve", "pay", waits[0].ID, "--deny", "x", "--config", path).expect(t,
		exit.Usage).stderr, "already answered", ": allow")
	o = consort(t, "resume", "pay", "--config", path).expect(t, exit.Done)
	if count() != 1 || o.stdout != "Paid.\n" {
		t.Errorf("%d effects; standard output: %q", count(), o.stdout)
	}
	contains(t, "standard error", consort(t, "approve", "pay", "--config", path).expect(t, exit.Done).stderr, "waits for nothing")
	consort(t, "approve", "pay", "--allow", "--config", path).expect(t, exit.Usage)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if by := answers(t, open(t, path), "pay")[0].By; by != me.Username {
		t.Errorf("answered by %q", by)
	}
	contains(t, "the conversation", consort(t, "history", "show", "pay", "--config", path).stdout, "allowed by "+me.Username)
}

// answers returns the answers in a conversation.
func answers(t *testing.T, store history.Store, id string) (found []canister.Answer) {
	t.Helper()
	for c, err := range store.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if answer, ok := c.(canister.Answer); ok {
			found = append(found, answer)
		}
	}
	return found
}

// TestAnswersToSeveral: each is answered by itself, and carried on with at the end.
func TestAnswersToSeveral(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	path := file(t, model(t,
		says("", calls("world__effect", `{"key":"one"}`), calls("world__effect", `{"key":"two"}`), calls("world__effect", `{"key":"three"}`)),
		openaiserver.Step{Expect: openaiserver.Expect{Contains: []string{"too dear"}}, Reply: openaiserver.Message{Text: "Two of them."}},
	), world, historyTable, "[[approval.rules]]\naction = \"defer\"\nwithin = \"1h\"\nwho = \"ann\"\n")
	consort(t, "run", "--conversation", "many", "Go.", "--config", path).expect(t, exit.Waits)
	waits := waitsFor(t, path, "many")
	if len(waits) != 3 || waits[0].Who != "ann" || time.Until(waits[0].Deadline) > time.Hour {
		t.Fatalf("%+v", waits)
	}
	does := func(want exit.Status, args ...string) outcome {
		t.Helper()
		return consort(t, append([]string{"approve", "many", "--config", path}, args...)...).expect(t, want)
	}
	contains(t, "standard error", does(exit.Usage, "--deny", "too dear").stderr, "3 waits match")
	contains(t, "standard error", does(exit.Usage, waits[0].ID, "--as", "ben").stderr, "ann", "ben")
	contains(t, "standard error", does(exit.Usage, waits[0].ID, "--arguments", "[]", "--as", "ann").stderr, "--arguments: expected one JSON object")
	contains(t, "standard error", does(exit.Usage, "--resume").stderr, "consort resume many")
	contains(t, "standard error", does(exit.Usage, "--as", "ann").stderr, "--as needs an answer, such as --allow or --deny REASON")
	var answered histories.Answered
	if err := json.Unmarshal([]byte(does(exit.Done, waits[0].ID, "--deny", "too dear", "--as", "ann", "--json").stdout),
		&answered); err != nil || answered != (histories.Answered{Conversation: "many", Wait: waits[0].ID, Verdict: "deny", By: "ann"}) {
		t.Errorf("%+v, %v", answered, err)
	}
	does(exit.Done, waits[1].ID, "--as", "ann")
	o := does(exit.Done, waits[2].ID, "--arguments", `{"key":"four"}`, "--as", "ann", "--resume")
	if o.stdout != "Two of them.\n" || count() != 2 {
		t.Errorf("%q, %d effects", o.stdout, count())
	}
	contains(t, "standard error", o.stderr, "Answered as ann.")
}

// TestAnswersThatComeTooLate: nothing happens, and the error says why.
func TestAnswersThatComeTooLate(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	path := file(t, model(t, says("", calls("world__effect", `{"key":"a"}`)),
		expects("none was given before", "Nobody answered.")), world, historyTable, defers+"within = \"1ms\"\n")
	ran := consort(t, "run", "--conversation", "late", "Go.", "--config", path) // waits, or has waited already
	var wait string
	for c, err := range open(t, path).Read(t.Context(), "late", 0) {
		if w, ok := c.(canister.Wait); ok && err == nil {
			wait = w.ID
		}
	}
	contains(t, "standard error", consort(t, "approve", "late", wait, "--config", path).expect(t, exit.Usage).stderr, "the time to answer "+wait+" ended at")
	contains(t, "without its name", consort(t, "approve", "late", "--allow", "--config", path).expect(t, exit.Usage).stderr,
		"the conversation late waits for nothing: the time to answer "+wait+" ended at")
	if list := consort(t, "approve", "late", "--config", path).expect(t, exit.Done).stderr; ran.status == int(exit.Waits) {
		contains(t, "the list", list, "waits for nothing", "consort resume late --config "+path)
	}
	consort(t, "resume", "late", "--config", path).expect(t, exit.Done)
	lacks(t, "the list", consort(t, "approve", "late", "--config", path).expect(t, exit.Done).stderr, "consort resume")
	if count() != 0 {
		t.Error("it happened")
	}
}

// TestARuleThatDeniesByNow: wins over an answer that was given under other rules.
func TestARuleThatDeniesByNow(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	tables := []string{model(t, says("", calls("world__effect", `{"key":"a"}`)), expects("Not on a Friday.", "It may not be.")), world, historyTable}
	path := file(t, append(tables, defers)...)
	consort(t, "run", "--conversation", "pay", "Pay.", "--config", path).expect(t, exit.Waits)
	denies := "[[approval.rules]]\naction = \"deny\"\ntools = [\"effect\"]\nreason = \"Not on a Friday.\"\n"
	if err := os.WriteFile(path, []byte(strings.Join(append(tables, defers, denies), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	consort(t, "approve", "pay", "--allow", "--resume", "--config", path).expect(t, exit.Done)
	if count() != 0 {
		t.Errorf("%d effects, which the rule denies", count())
	}
}

// begun is a conversation whose process died in a call.
func begun(t *testing.T, store history.Store, id string) {
	t.Helper()
	err := store.Append(t.Context(), id, 0,
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Pay.")},
		canister.Assistant{Head: canister.Head{ID: "m"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "c", Name: "world__effect", Arguments: `{"key":"a"}`},
		canister.Intent{Head: canister.Head{ID: "n"}, Invocation: "i", Attempt: 1, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDoubt: for a call that may have been made, a person gives its outcome or has it
// repeated.
func TestDoubt(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	asks := historyTable + "doubt = \"ask\"\n"
	for _, test := range []struct {
		flag    []string
		result  string
		effects int
	}{
		{[]string{"--happened", "receipt 4711"}, "receipt 4711", 0},
		{[]string{"--again"}, "a", 1},
		{[]string{"--unknown"}, "may or may not", 1},
	} {
		const id = "pay"
		path := file(t, model(t, says(""), expects(test.result, "So be it.")), world, asks)
		begun(t, open(t, path), id)
		contains(t, "standard error", consort(t, "resume", id, "--config", path).expect(t, exit.Waits).stderr, "consort approve "+id)
		contains(t, "the list", consort(t, "approve", id, "--config", path).expect(t, exit.Done).stdout, "outcome until", "world__effect")
		o := consort(t, append([]string{"approve", id, "--resume", "--config", path}, test.flag...)...).expect(t, exit.Done)
		if o.stdout != "So be it.\n" || count() != test.effects {
			t.Errorf("%s: %q, %d effects", test.flag, o.stdout, count())
		}
	}
	reports := file(t, model(t, says(""), expects("may or may not", "Who knows.")), world, historyTable)
	begun(t, open(t, reports), "pay")
	consort(t, "resume", "pay", "--config", reports).expect(t, exit.Done)
}

// TestAQuestionIsAnswered: of a tool, which is asked for in a form.
func TestAQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	path := file(t, model(t), historyTable)
	store := open(t, path)
	err := store.Append(t.Context(), "ask", 0,
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Book.")},
		canister.Assistant{Head: canister.Head{ID: "m"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "c", Name: "world__book", Arguments: `{}`},
		canister.Wait{Head: canister.Head{ID: "w1"}, For: canister.WaitElicitation, Invocation: "i", Deadline: time.Now().Add(time.Hour), Conversation: "ask",
			Question: json.RawMessage(`{"message":"Which \u001b[31mseat?","schema":{"type":"object","properties":{"seat":{"type":"string"}}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the list", consort(t, "approve", "ask", "--config", path).expect(t, exit.Done).stdout, "elicitation until", "asks: Which <U+001B>[31mseat?")
	consort(t, "approve", "ask", "--answer", `{"seat":"4A"}`, "--config", path, "--as", "ann").expect(t, exit.Done)
	if got := answers(t, store, "ask"); len(got) != 1 || got[0].Verdict != canister.VerdictAccept ||
		string(got[0].Arguments) != `{"seat":"4A"}` || got[0].By != "ann" {
		t.Errorf("%+v", got)
	}
	contains(t, "standard error", consort(t, "approve", "none", "--config", path).expect(t, exit.Usage).stderr, "no conversation none")
}

// TestChatPutsOff: whoever is there is asked, and can answer later.
func TestChatPutsOff(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	path := file(t, model(t,
		says("", calls("world__effect", `{"key":"a"}`)), expects("a", "One."),
		says("", calls("world__effect", `{"key":"b"}`))), world, historyTable, defers)
	x := run{}.chats(t, 80, 24, "--config", path)
	for _, turn := range [][]string{{"First.", "y", "once", "One."}, {"Second.", "l", "later", "waits for an answer"}} {
		x.says(turn[0])
		x.See("y once", "l later")
		x.chooses(turn[1], turn[2])
		x.See(turn[3])
	}
	x.leaves()
	infos := all(t, open(t, path))
	if count() != 1 || len(infos) != 1 {
		t.Fatalf("%d effects, %+v", count(), infos)
	}
	if waits := waitsFor(t, path, infos[0].ID); len(waits) != 1 || !strings.Contains(string(waits[0].Arguments), `"b"`) {
		t.Errorf("%+v", waits)
	}
	nothing := file(t, model(t, says("", calls("world__effect", `{"key":"c"}`)), expects("later", "Not now.")), world, defers)
	x = run{}.chats(t, 80, 24, "--history", "none", "--config", nothing)
	x.says("First.")
	x.See("y once", "n no")
	if strings.Contains(x.Screen(), "l later") {
		t.Errorf("an answer can be given later, and nothing keeps the question:\n%s", x.Screen())
	}
	x.Type("dlater\r")
	x.See("Not now.")
	x.leaves()
	if count() != 1 {
		t.Error("it happened")
	}
}

// TestCopiesCarryKeysOfTheirOwn: an approved call in a fork, or in a conversation
// imported under another identity, is a different call for its server than the one of the
// parent.
func TestCopiesCarryKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := faultserver.StartHTTP(faultserver.Script{Dir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	path := file(t, model(t, says("", calls("world__effect", `{"key":"a"}`)), says("Paid.")),
		fmt.Sprintf("[mcp.world]\ntransport = \"http\"\nurl = %q\n", server.URL()), historyTable, defers)
	consort(t, "run", "--conversation", "pay", "Pay.", "--config", path).expect(t, exit.Waits)
	bundle := filepath.Join(dir, "pay.jsonl")
	consort(t, "history", "fork", "pay", "--id", "fork", "--config", path).expect(t, exit.Done)
	consort(t, "history", "export", "pay", "--output", bundle, "--config", path).expect(t, exit.Done)
	consort(t, "history", "import", bundle, "--id", "copy", "--config", path).expect(t, exit.Done)
	for _, id := range []string{"pay", "fork", "copy"} {
		consort(t, "resume", id, "--config", path).expect(t, exit.Waits)
		consort(t, "approve", id, "--allow", "--resume", "--config", path).expect(t, exit.Done)
	}
	ledger, err := faultserver.ReadLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, effect := range ledger.Effects() {
		keys[effect.Key] = true
	}
	if len(keys) != 3 || keys[""] {
		t.Errorf("the effects of three conversations have the keys %v", keys)
	}
}

// TestAMessageGoesOn: a message instead of an answer prints which work is not finished.
func TestAMessageGoesOn(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	path := file(t, model(t, says("", calls("world__effect", `{"key":"a"}`)), expects("Never mind", "All right.")), world, historyTable, defers)
	consort(t, "run", "--conversation", "pay", "Pay.", "--config", path).expect(t, exit.Waits)
	o := consort(t, "run", "--conversation", "pay", "Never mind.", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "waiting for an answer and continues without it")
	if count() != 0 {
		t.Error("the call was made")
	}
}
