// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history/sqlite"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/testing/openaiserver"
)

// ownOf is the default store of the commands of a test.
func ownOf(t *testing.T) string { return filepath.Join(placeOf(t), "consort", "history.db") }

// openOwn opens it, and makes it if need be.
func openOwn(t *testing.T) *sqlite.Store {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(ownOf(t)), 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(ownOf(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// TestChatIsKept: without a word about it in the configuration, for its user
// alone, and every command finds it.
func TestChatIsKept(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, expects("My name is Ada", "Hello."), expects("What am I called", "Ada.")))
	o := run{stdin: "My name is Ada.\n"}.consort(t, "chat", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "Conversations are stored in "+ownOf(t)+"; --history none turns this off.")
	for place, want := range map[string]fs.FileMode{filepath.Dir(ownOf(t)): 0o700, ownOf(t): 0o600} {
		if info, err := os.Stat(place); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", place, info.Mode(), err)
		}
	}
	id := regexp.MustCompile(`consort chat --conversation (\S+)`).FindStringSubmatch(o.stderr)[1]
	o = run{stdin: "What am I called?\n"}.consort(t, "chat", "--continue", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "Continuing conversation "+id)
	contains(t, "standard output", o.stdout, "Ada.")
	// Also without a configuration.
	elsewhere := run{dir: t.TempDir()}
	contains(t, "the list", elsewhere.consort(t, "history", "list").expect(t, exit.Done).stdout, id, "My name is Ada.")
	contains(t, "the conversation", elsewhere.consort(t, "history", "show", id).expect(t, exit.Done).stdout, "4 assistant")
	contains(t, "standard error", elsewhere.consort(t, "approve", id, "--allow").expect(t, exit.Usage).stderr, "waits for nothing")
	contains(t, "standard error", consort(t, "resume", id, "--config", path).expect(t, exit.Done).stderr, "Nothing is left to do")
	contains(t, "the report", consort(t, "check", "--offline", "--config", path).expect(t, exit.Done).stdout, "stored in "+ownOf(t))
}

// TestChatIsNotKept: on request.
func TestChatIsNotKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		table string
		args  []string
	}{
		"the table": {keepsNothing, nil},
		"the flag":  {"", []string{"--history", "none"}},
		"both":      {historyTable, []string{"--history", "none"}},
	} {
		path := file(t, model(t, says("Hello.")), test.table)
		o := run{stdin: "hi\n/history\n"}.consort(t, append([]string{"chat", "--config", path}, test.args...)...).expect(t, exit.Done)
		contains(t, name, o.stderr, "Conversations are not stored; they end with this program.")
		contains(t, name, o.stdout, "user        hi")
		if lacks(t, name, o.stderr, "consort chat --conversation"); isThere(placeOf(t)) || isThere(filepath.Join(filepath.Dir(path), "talks.db")) {
			t.Errorf("%s: there is a store", name)
		}
	}
}

// TestNothingIsMadeInPassing: commands that only read, or fail, create no files.
func TestNothingIsMadeInPassing(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Never said.")))
	for args, want := range map[string]exit.Status{
		"history list": exit.Done, "history prune --keep 1h": exit.Done, "check --offline": exit.Done, "tools": exit.Done, "history show a": exit.Usage,
		"resume a": exit.Usage, "approve a": exit.Usage, "chat --continue": exit.Usage, "chat --conversation a": exit.Usage,
	} {
		o := consort(t, append(strings.Fields(args), "--config", path)...).expect(t, want)
		if isThere(placeOf(t)) {
			t.Fatalf("%s has made a store: %s", args, o.stderr)
		}
	}
	consort(t, "chat", "--config", file(t)).expect(t, exit.Usage) // no model
	consort(t, "demo").expect(t, exit.Done)
	if isThere(placeOf(t)) {
		t.Error("there is a store")
	}
	contains(t, "standard error", consort(t, "chat", "--continue", "--config", path).stderr, "no conversation yet in "+ownOf(t), "start one with consort chat --config "+path)
	contains(t, "standard error", consort(t, "history", "list", "--config", path).stderr, "There is no "+ownOf(t)+" yet.")
}

// TestAPlaceThatCannotBe: a chat goes on without it, and says so; who asks for
// the store is told. A file is in the way, which stops root too.
func TestAPlaceThatCannotBe(t *testing.T) {
	t.Parallel()
	inTheWay := filepath.Join(t.TempDir(), "file")
	touch(inTheWay)
	damaged := t.TempDir()
	if err := os.Mkdir(filepath.Join(damaged, "consort"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "consort", "history.db"), []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	path := file(t, model(t, says("Hello.")))
	for name, env := range map[string][]string{
		"a file in the way": {"XDG_STATE_HOME=" + inTheWay},
		"no home":           {"XDG_STATE_HOME=", "HOME="},
		"a home that is no": {"XDG_STATE_HOME=relative", "HOME=relative"},
		"no database":       {"XDG_STATE_HOME=" + damaged},
	} {
		o := run{stdin: "hi\n", env: env}.consort(t, "chat", "--config", path).expect(t, exit.Done)
		contains(t, name, o.stderr, "Conversations cannot be stored and end with this program: ", "--history FILE")
		if contains(t, name, o.stdout, "Hello."); strings.Contains(o.stderr, "consort chat --conversation") {
			t.Errorf("%s: %s", name, o.stderr)
		}
		o = run{env: env}.consort(t, "run", "--conversation", "a", "hi", "--config", path).expect(t, exit.Usage)
		contains(t, name, o.stderr, "conversations cannot be stored: ", "--history FILE")
	}
	o := run{stdin: "hi\n"}.consort(t, "chat", "--history", filepath.Join(inTheWay, "talks.db"), "--config", path).expect(t, exit.Usage)
	contains(t, "a place that was asked for", o.stderr, "consort: --history: ", inTheWay)
	for name, args := range map[string][]string{"list": {"history", "list"}, "approve": {"approve", "a"}} {
		o := run{env: []string{"XDG_STATE_HOME=" + damaged}}.consort(t, args...).expect(t, exit.Usage)
		contains(t, name, o.stderr, "consort: history: "+damaged) // and no configuration is named, since there is none
	}
}

// TestCheckLooksAtTheOwnStore: chat and serve would go on without it, and say so.
func TestCheckLooksAtTheOwnStore(t *testing.T) {
	t.Parallel()
	path, own := file(t, model(t)), ownOf(t)
	contains(t, "none yet", consort(t, "check", "--offline", "--config", path).expect(t, exit.Done).stdout, "✓ conversations of chat and serve are stored in ")
	if isThere(placeOf(t)) {
		t.Fatal("there is a store")
	}
	openOwn(t).Close()
	contains(t, "one", consort(t, "check", "--offline", "--config", path).expect(t, exit.Done).stdout, "✓ conversations of chat and serve are stored in ")
	if err := os.WriteFile(own, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(
		t, "none", consort(t, "check", "--offline", "--config", path).expect(t, exit.Done).stdout,
		"✗ conversations of chat and serve cannot be stored: history: "+own,
	)
	contains(t, "as JSON", consort(t, "check", "--json", "--offline", "--config", path).expect(t, exit.Done).stdout, `"error": "history: `+own)
	inTheWay := filepath.Join(t.TempDir(), "file")
	touch(inTheWay)
	o := run{env: []string{"XDG_STATE_HOME=" + filepath.Join(inTheWay, "state")}}.consort(t, "check", "--offline", "--config", path).expect(t, exit.Done)
	contains(t, "a file in the way", o.stdout, "✗ conversations of chat and serve cannot be stored: ", inTheWay)
	o = run{env: []string{"XDG_STATE_HOME=", "HOME="}}.consort(t, "check", "--offline", "--config", path).expect(t, exit.Done)
	contains(t, "no home", o.stdout, "✗ conversations of chat and serve cannot be stored: ")
}

// TestAReadOnlyPlace: the file is there, and cannot be written.
func TestAReadOnlyPlace(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	folder := filepath.Dir(ownOf(t))
	openOwn(t).Close()
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(folder, 0o700) })
	o := run{stdin: "hi\n"}.consort(t, "chat", "--config", file(t, model(t, says("Hello.")))).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "Conversations cannot be stored")
	contains(t, "standard output", o.stdout, "Hello.")
}

// TestAKilledChatIsCarriedOn: killed in its first turn, which has a title.
func TestAKilledChatIsCarriedOn(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	hold := make(chan struct{})
	path := file(t, model(t, openaiserver.Step{Reply: openaiserver.Respond(func(*openaiserver.Request) openaiserver.Reply {
		select {
		case asked <- struct{}{}:
			<-hold
		default:
		}
		return openaiserver.Message{Text: "Here I am."}
	})}))
	cmd := run{}.command(t.Context(), t, "chat", "--config", path)
	cmd.Stdin = strings.NewReader("Are you there?\n")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	close(hold)
	contains(t, "the list", consort(t, "history", "list", "--open", "--config", path).expect(t, exit.Done).stdout, "Are you there?", "(open)")
	o := run{stdin: "/quit\n"}.consort(t, "chat", "--continue", "--config", path).expect(t, exit.Done)
	contains(t, "standard error", o.stderr, `"Are you there?"`)
	contains(t, "standard output", o.stdout, "Here I am.")
}

// TestServedIsKept: also without a word about it, under titles, and it goes on
// after a restart, for the same configuration alone.
func TestServedIsKept(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, expects("I am Ada", "Hello."), expects("Who am I", "Ada.")), people)
	s := serve(t, true, "--config", path)
	first, failure := s.says(adaToken, "I am Ada, and I have a question.", "")
	if first.Answer != "Hello." {
		t.Fatalf("%+v, %s", first, failure)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	contains(t, "standard error", s.stderr.String(), "Conversations are stored in "+ownOf(t))

	other := serve(t, true, "--config", file(t, model(t, says("Never said.")), people))
	if _, failure := other.says(adaToken, "Who am I?", first.Conversation); !strings.Contains(failure, "no such conversation") {
		t.Errorf("of another configuration: %s", failure)
	}
	other.signal(os.Interrupt)
	other.ends(exit.Done)

	s = serve(t, true, "--config", path)
	if again, failure := s.says(adaToken, "Who am I?", first.Conversation); again.Answer != "Ada." {
		t.Errorf("after the restart: %+v, %s", again, failure)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	contains(t, "the list", consort(t, "history", "list", "--config", path).expect(t, exit.Done).stdout, "I am Ada, and I have a question.")
	s = serve(t, true, "--config", file(t, model(t, says("Hello.")), people, keepsNothing))
	if h, failure := s.says(adaToken, "hi", ""); h.Answer != "Hello." {
		t.Errorf("not kept: %+v, %s", h, failure)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	contains(t, "standard error", s.stderr.String(), "Conversations are not stored")
	if n := len(all(t, openOwn(t))); n != 1 {
		t.Errorf("%d are kept", n)
	}
}

// TestWhatIsUnfinishedIsForItsConfiguration: another one that is served starts,
// and leaves it alone.
func TestWhatIsUnfinishedIsForItsConfiguration(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("It is done."), says("Now too.")), people)
	s := serve(t, true, "--config", path)
	h, failure := s.says(adaToken, "Go.", "")
	if failure != "" {
		t.Fatal(failure)
	}
	s.signal(os.Interrupt)
	s.ends(exit.Done)
	store := openOwn(t)
	if err := store.Append(t.Context(), h.Conversation, 2, canister.User{Head: canister.Head{ID: "left"}, Content: canister.Texts("And now?")}); err != nil {
		t.Fatal(err)
	}
	other := serve(t, true, "--config", file(t, model(t, says("Not mine.")), people))
	if h, failure := other.says(adaToken, "hi", ""); failure != "" { // by then it has looked
		t.Fatalf("%+v, %s", h, failure)
	}
	other.signal(os.Interrupt)
	other.ends(exit.Done)
	if got := kinds(t, store, h.Conversation); got != "user assistant user" {
		t.Errorf("another configuration has carried it on: %s", got)
	}
	s = serve(t, true, "--config", path)
	waitFor(t, "an end to the turn", func() bool { return kinds(t, store, h.Conversation) == "user assistant user assistant" })
	s.signal(os.Interrupt)
	s.ends(exit.Done)
}

// TestTitlesOfAll: the default title is the user's first words, wherever a title is
// shown.
func TestTitlesOfAll(t *testing.T) {
	t.Parallel()
	path := file(t, historyTable)
	store := open(t, path)
	first := []canister.Canister{
		canister.Supervisor{Head: canister.Head{ID: "s"}, Content: canister.Texts("Be short.")},
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo?")},
	}
	if err := store.Append(t.Context(), "a", 0, first...); err != nil {
		t.Fatal(err)
	}
	if err := store.Append(t.Context(), "silent", 0, first[0]); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"list", "search Oslo", "show a", "export a --format markdown", "export a --format html", "prune --keep 1ns --open --dry-run",
	} {
		contains(t, args, consort(t, append(strings.Fields("history "+args), "--config", path)...).expect(t, exit.Done).stdout, "Oslo?")
	}
	var list histories.ConversationList
	if err := json.Unmarshal([]byte(consort(t, "history", "list", "--json", "--config", path).expect(t, exit.Done).stdout), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Conversations {
		if want := map[string]string{"a": "Oslo?", "silent": ""}[c.ID]; c.Title != want {
			t.Errorf("%s: %q", c.ID, c.Title)
		}
	}
}

// TestChatTellsAll: /history also shows messages that are no longer sent to the model.
func TestChatTellsAll(t *testing.T) {
	t.Parallel()
	path := file(t, model(t, says("Never said.")), historyTable)
	store := open(t, path)
	old := []canister.Canister{canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("What was long ago.")}}
	for i := range 500 {
		old = append(old, canister.Assistant{Head: canister.Head{ID: fmt.Sprint("m", i)}, Content: canister.Texts("Yes.")},
			canister.User{Head: canister.Head{ID: fmt.Sprint("u", i)}, Content: canister.Texts("And?")})
	}
	mark := canister.Fields{"io.github.consort-go/compaction": json.RawMessage(`{"through":"m498","tokens":9,"place":997,"instructions":[]}`)}
	old = append(old, canister.Document{
		Head: canister.Head{ID: "d", Extra: canister.Extra{Metadata: mark}}, Title: "Summary", Content: canister.Texts("They said hello."),
	},
		canister.Assistant{Head: canister.Head{ID: "last"}, Content: canister.Texts("So it is.")})
	if err := store.Append(t.Context(), "a", 0, old...); err != nil {
		t.Fatal(err)
	}
	o := run{stdin: "/history\n"}.consort(t, "chat", "--conversation", "a", "--config", path).expect(t, exit.Done)
	contains(t, "the history", o.stdout, "What was long ago.", "Summary They said hello.")
}
