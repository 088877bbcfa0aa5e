// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/exit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	adaToken = "ada-0123456789abcdef"
	benToken = "ben-0123456789abcdef"
	people   = "[serve]\nhttp = \"127.0.0.1:0\"\nconverse = true\nclients = [{token = \"" + adaToken +
		"\", trusted = {user = \"ada\"}}, {token = \"" + benToken + "\", trusted = {user = \"ben\"}}]\n"
)

// said and heard are the input and the output of the tool converse.
type said struct {
	Message      string `json:"message,omitempty"`
	Conversation string `json:"conversation,omitempty"`
}

type heard struct {
	Conversation, Answer string
	Reason               converse.Reason
	Waits                []struct{ For, Tool string }
}

// says calls the tool converse, and returns its answer or the text of its failure.
func (s *service) says(token, message, conversation string) (heard, string) {
	s.t.Helper()
	form, err := json.Marshal(said{message, conversation})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	result, err := s.connect(token).CallTool(ctx, &mcp.CallToolParams{Name: "converse", Arguments: json.RawMessage(form)})
	if err != nil {
		s.t.Fatalf("%v\nstandard error: %s", err, s.stderr.String())
	}
	if result.IsError {
		return heard{}, result.Content[0].(*mcp.TextContent).Text
	}
	var h heard
	text, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return h, ""
}

// Clients that have the same trusted values share their conversations, and the operator learns of it.
func TestServedClientsThatShare(t *testing.T) {
	t.Parallel()
	const note = "have the same trusted values"
	for _, c := range []struct{ ada, ben, want string }{
		{`name = "ada"`, `name = "ben"`, `the clients ["ada" "ben"] have the same trusted values`},
		{`name = "ada", trusted = {user = "x"}`, `name = "ben", trusted = {user = "x"}`, `the clients ["ada" "ben"] have the same trusted values`},
		{`name = "ada", trusted = {user = "ada"}`, `name = "ben"`, ""},
		{`trusted = {user = "x"}`, `trusted = {user = "x"}`, `the clients ["" ""] have the same trusted values`},
	} {
		clients := "[serve]\nhttp = \"127.0.0.1:0\"\nconverse = true\nclients = [{" + c.ada + ", token = \"" + adaToken + "\"}, {" + c.ben + ", token = \"" + benToken + "\"}]\n"
		s := serve(t, true, "--config", file(t, model(t), historyTable, clients))
		if got := s.stderr.String(); strings.Contains(got, note) != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%q and %q: %s", c.ada, c.ben, got)
		}
	}
}

// TestServedConversationsLast: they continue after a restart, belong to the caller that
// started them, and not to the user who runs the program.
func TestServedConversationsLast(t *testing.T) {
	t.Parallel()
	table, _ := library(t, forPerson)
	path := file(t, table, model(t, says("", calls("library__echo", `{"text":"x"}`)),
		expecting("You are ada.", `"user_id":"ada"`), expecting("Still.", "And now?")),
		historyTable, people, "[trusted]\nuser = \"root\"\n")
	s := serve(t, true, "--config", path)
	first, failure := s.says(adaToken, "Who am I?", "")
	if first.Answer != "You are ada." || first.Reason != "answered" || first.Conversation == "" {
		t.Fatalf("%+v, %s", first, failure)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)

	s = serve(t, true, "--config", path)
	if again, failure := s.says(adaToken, "", first.Conversation); again.Answer != "You are ada." {
		t.Errorf("what was said last: %+v, %s", again, failure)
	}
	if now, failure := s.says(adaToken, "And now?", first.Conversation); now.Answer != "Still." {
		t.Errorf("after the restart: %+v, %s", now, failure)
	}
	for _, asked := range []string{first.Conversation, "nothing-like-it", "\x00"} {
		if h, failure := s.says(benToken, "What did she say?", asked); !strings.Contains(failure, "no such conversation") {
			t.Errorf("ben, of %q: %+v, %s", asked, h, failure)
		}
	}
	if _, failure := s.says(adaToken, "", ""); !strings.Contains(failure, "A message or a conversation is required") {
		t.Errorf("nothing: %s", failure)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	info, err := open(t, path).Info(t.Context(), first.Conversation)
	if err != nil || !strings.HasPrefix(info.Owner, "served-") || strings.Contains(info.Owner, "ada") {
		t.Errorf("%+v, %v", info, err)
	}
	if o := consort(t, "chat", "--continue", "--config", path).expect(t, exit.Usage); !strings.Contains(o.stderr, "no conversation to continue yet") {
		t.Errorf("%s", o.stderr)
	}
}

// TestServedConversationsOutliveTheServer: one that dies in a turn leaves it to the
// next, which carries it on for the same person, by itself, and leaves alone what
// others keep in the same store.
func TestServedConversationsOutliveTheServer(t *testing.T) {
	t.Parallel()
	table, folder := library(t, forPerson)
	path := file(t, table, model(t, says("", calls("library__wait", "{}"), calls("library__echo", `{"text":"x"}`)),
		expecting("It is done.", `"user_id":"ada"`), expecting("Yes.", "Sure?")), historyTable, people)
	begun(t, open(t, path), "of-others")
	s := serve(t, true, "--config", path)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	session := s.connect(adaToken)
	go func() {
		defer close(ended)
		session.CallTool(ctx, &mcp.CallToolParams{Name: "converse", Arguments: json.RawMessage(`{"message":"Go."}`)})
	}()
	waitFor(t, "a call", func() bool { return isThere(filepath.Join(folder, "waiting")) })
	store := open(t, path)
	var talk history.Info
	served := func() string {
		for _, info := range all(t, store) {
			if strings.HasPrefix(info.Owner, "served-") {
				talk = info
			}
		}
		return talk.ID
	}
	// The other call must not be in doubt: its result is what the model expects.
	waitFor(t, "a result", func() bool { return served() != "" && strings.Contains(kinds(t, store, talk.ID), "result") })
	s.cmd.Process.Signal(syscall.SIGKILL)
	s.cmd.Wait()
	cancel()
	<-ended
	touch(filepath.Join(folder, "go"))

	s = serve(t, true, "--config", path)
	waitFor(t, "an end to the turn", func() bool { return served() != "" && talk.Last == "assistant" && talk.Length > 3 })
	if h, failure := s.says(adaToken, "", talk.ID); h.Answer != "It is done." {
		t.Errorf("%+v, %s", h, failure)
	}
	if h, failure := s.says(adaToken, "Sure?", talk.ID); h.Answer != "Yes." {
		t.Errorf("%+v, %s", h, failure)
	}
	if got := kinds(t, store, "of-others"); got != "user assistant invocation intent" {
		t.Errorf("the conversation of others: %s", got)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	lacks(t, "the log", s.stderr.String(), "of-others")
}

// TestServedConversationsWait: for an approval that comes from another process, and
// go on then.
func TestServedConversationsWait(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	path := file(t, world, model(t, says("", calls("world__effect", `{"key":"a"}`)), expects("a", "Paid.")), historyTable, people, defers)
	s := serve(t, true, "--config", path)
	h, failure := s.says(adaToken, "Pay.", "")
	if h.Reason != "waiting" || len(h.Waits) != 1 || h.Waits[0].Tool != "world__effect" || h.Waits[0].For != "approval" || count() != 0 {
		t.Fatalf("%+v, %s", h, failure)
	}
	if _, failure := s.says(adaToken, "Hurry.", h.Conversation); !strings.Contains(failure, "waits for an answer") {
		t.Errorf("a message meanwhile: %s", failure)
	}
	consortBesideDone(t, "approve", h.Conversation, "--allow", "--config", path)
	waitFor(t, "the effect", func() bool { return count() == 1 })
	store := open(t, path)
	waitFor(t, "the end", func() bool {
		info, err := store.Info(t.Context(), h.Conversation)
		return err == nil && info.Last == "assistant"
	})
	if h, failure := s.says(adaToken, "", h.Conversation); h.Answer != "Paid." {
		t.Errorf("%+v, %s", h, failure)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}

// TestOnlyItsClientCarriesAServedConversationOn: no other command uses an approval that
// was given for a client, or suggests to.
func TestOnlyItsClientCarriesAServedConversationOn(t *testing.T) {
	t.Parallel()
	world, count := effects(t)
	path := file(t, world, model(t, says("", calls("world__effect", `{"key":"a"}`)), expects("a", "Paid.")), historyTable, people, defers)
	s := serve(t, true, "--config", path)
	h, failure := s.says(adaToken, "Pay.", "")
	if h.Reason != "waiting" {
		t.Fatalf("%+v, %s", h, failure)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)

	o := consort(t, "chat", "--conversation", h.Conversation, "--config", path).expect(t, exit.Done)
	contains(t, "chat", o.stderr, "answer its question with: consort approve "+h.Conversation)
	lacks(t, "chat", o.stderr, "asked again")
	o = consort(t, "approve", h.Conversation, "--allow", "--config", path).expect(t, exit.Done)
	contains(t, "approve", o.stderr, "belongs to a client of consort serve, which continues it")
	lacks(t, "approve", o.stderr, "resume")
	lacks(t, "approve", consort(t, "approve", h.Conversation, "--config", path).expect(t, exit.Done).stderr, "resume")
	store := open(t, path)
	info, err := store.Info(t.Context(), h.Conversation)
	if err == nil {
		err = store.Append(t.Context(), "cut", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Hello.")})
	}
	if err == nil {
		err = store.Describe(t.Context(), "cut", history.Change{Owner: &info.Owner})
	}
	if err != nil {
		t.Fatal(err)
	}
	before := kinds(t, store, h.Conversation)
	for _, id := range []string{h.Conversation, "cut"} {
		o := run{}.consort(t, "chat", "--conversation", id, "--config", path).expect(t, exit.Done)
		contains(t, "chat", o.stderr, "belongs to a client of consort serve, which continues it")
		lacks(t, "chat", o.stderr, "resume")
		lacks(t, "chat", o.stderr, "asked again")
		run{}.consort(t, "chat", "--conversation", id, "--document", "note:///x", "--config", path)
		o = run{stdin: "/resume\n"}.consort(t, "chat", "--conversation", id, "--config", path).expect(t, exit.Usage)
		contains(t, "/resume", o.stderr, "the conversation "+id+" belongs to a client of consort serve", "--trust")
	}
	if got := kinds(t, store, "cut"); got != "user" {
		t.Errorf("chat carried on a turn of a client: %s", got)
	}
	for _, trust := range [][]string{nil, {"--trust", "user=ben"}} {
		o := consort(t, append([]string{"resume", h.Conversation, "--config", path}, trust...)...).expect(t, exit.Usage)
		contains(t, "resume", o.stderr, "belongs to a client of consort serve", "--trust")
	}
	if now := kinds(t, store, h.Conversation); now != before || count() != 0 {
		t.Errorf("the log has %s, and had %s; %d effects", now, before, count())
	}
	consort(t, "resume", h.Conversation, "--trust", "user=ada", "--config", path).expect(t, exit.Done)
	if count() != 1 {
		t.Errorf("%d effects", count())
	}
}

// TestACallThatIsGivenUp: its turn is cancelled, and the conversation goes on.
func TestACallThatIsGivenUp(t *testing.T) {
	t.Parallel()
	table, folder := library(t, forPerson)
	path := file(t, table, model(t, says("", calls("library__wait", "{}"))), historyTable, people)
	s := serve(t, true, "--config", path)
	session := s.connect(adaToken)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "converse", Arguments: json.RawMessage(`{"message":"Go."}`)})
		ended <- err
	}()
	waitFor(t, "a call", func() bool { return isThere(filepath.Join(folder, "waiting")) })
	cancel()
	<-ended
	store := open(t, path)
	waitFor(t, "an end to the turn", func() bool { return all(t, store)[0].Last == "assistant" })
	touch(filepath.Join(folder, "go"))
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}

// TestEnginesThatAreNotThere: how to get one is told.
func TestEnginesThatAreNotThere(t *testing.T) {
	t.Parallel()
	path := file(t, model(t), historyTable, people)
	unkept := file(t, model(t), people)
	for args, want := range map[string]string{
		"serve --engine temporal --temporal 127.0.0.1:7233 --config " + path:         "go install -C converse/temporal ./cmd/consort",
		"worker --temporal 127.0.0.1:7233 --config " + path:                          "go install -C converse/temporal ./cmd/consort",
		"serve --converse --temporal 127.0.0.1:7233 --config " + path:                "the flag has no effect without --engine temporal",
		"serve --engine steam --config " + path:                                      `no engine "steam"`,
		"worker --config " + unkept:                                                  "--temporal 127.0.0.1:7233",
		"worker --temporal 127.0.0.1:7233 --trust x=y --config nothing-is-here.toml": "unknown flag",
	} {
		contains(t, args, consort(t, strings.Fields(args)...).expect(t, exit.Usage).stderr, want)
	}
}

// TestServePrunes: what need not be kept goes while the server stays.
func TestServePrunes(t *testing.T) {
	t.Parallel()
	path, store := shelved(t)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, "keep = \"1ns\"\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, true, "--http", "127.0.0.1:0", "--log-level", "info", "--config", path)
	waitFor(t, "an end of talk", func() bool { return len(all(t, store)) == 1 })
	waitFor(t, "a line", func() bool { return strings.Contains(s.stderr.String(), "history.pruned") })
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}
