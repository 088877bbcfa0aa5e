// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/internal/display"
	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/histories"
)

// hostile is a text that tries to be more than text.
const hostile = "<script>alert(1)</script>\n```\n# owned\n[x](javascript:alert(1)) ![i](http://evil.example/p.png)\n" +
	"````\x1b]0;owned\a\u009b2J\u202e</pre></title>" + unseen

// unseen are invisible characters that can hide parts of a text.
const unseen = "\u200b\ufeff\u2028\u2066\u00ad\U000e0041\U000e0100\ue000"

// lacksUnseen checks that none of them is there.
func lacksUnseen(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range unseen + "\u009b\u202e\a" {
		if strings.ContainsRune(text, r) {
			t.Errorf("%s has a raw %U: %q", what, r, text)
		}
	}
}

// shelved is a configuration with a store of conversations: talk, which is done
// and has hostile texts everywhere, and open.
func shelved(t *testing.T) (path string, store history.Store) {
	t.Helper()
	path = file(t, historyTable)
	s := open(t, path)
	talk := []canister.Canister{
		canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo? " + hostile)},
		canister.Assistant{Head: canister.Head{ID: "m"}},
		canister.Invocation{Head: canister.Head{ID: "i"}, Message: "m", CallID: "c", Name: "atlas__weather", Arguments: `{"city":"<b>Oslo"}`},
		canister.Result{Head: canister.Head{ID: "r"}, Invocation: "i", Code: "EXECUTION_FAILED", Content: canister.Texts(hostile)},
		canister.Assistant{Head: canister.Head{ID: "n"}, Content: canister.Texts("It snows.")},
	}
	title, tags := hostile, []string{"travel"}
	if err := s.Append(t.Context(), "talk", 0, talk...); err != nil {
		t.Fatal(err)
	}
	if err := s.Describe(t.Context(), "talk", history.Change{Title: &title, Tags: &tags}); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), "open", 0, talk[0]); err != nil {
		t.Fatal(err)
	}
	return path, s
}

// listed are the identities that history list --json, or search, prints.
func listed(t *testing.T, o outcome) string {
	t.Helper()
	var list histories.ConversationList
	if err := json.Unmarshal([]byte(o.stdout), &list); err != nil {
		t.Fatalf("%v: %s", err, o.stdout)
	}
	var ids []string
	for _, c := range list.Conversations {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, " ")
}

func TestHistoryListsAndSearches(t *testing.T) {
	t.Parallel()
	path, _ := shelved(t)
	for args, want := range map[string]string{
		"list": "open talk", "list --open": "open", "list --tag travel": "talk", "list --tag travel --tag x": "",
		"list --limit 1": "open", "list --text snows": "talk", "search oslo": "open talk", "search oslo snows": "talk",
		"search oslo --limit 1": "open", "search Bergen": "",
	} {
		if got := listed(t, consort(t, append(append([]string{"history"}, strings.Fields(args)...), "--json", "--config",
			path)...).expect(t, exit.Done)); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	o := consort(t, "history", "list", "--config", path).expect(t, exit.Done)
	contains(t, "the list", o.stdout, "CHANGED", "talk", "#travel", "(open)")
	contains(t, "standard error", consort(t, "history", "list", "--limit", "-1", "--config", path).expect(t, exit.Usage).stderr, "--limit -1")
}

func TestHistoryChanges(t *testing.T) {
	t.Parallel()
	path, store := shelved(t)
	does := func(want exit.Status, args ...string) outcome {
		t.Helper()
		return consort(t, append(append([]string{"history"}, args...), "--config", path)...).expect(t, want)
	}
	does(exit.Done, "rename", "talk", "A", "title")
	does(exit.Done, "tag", "talk", "b", "a")
	info, err := store.Info(t.Context(), "talk")
	if err != nil || info.Title != "A title" || strings.Join(info.Tags, " ") != "a b" {
		t.Errorf("%+v, %v", info, err)
	}
	if does(exit.Done, "tag", "talk"); all(t, store)[1].Tags != nil && len(all(t, store)[1].Tags) > 0 {
		t.Error("the tags are still there")
	}
	if o := does(exit.Done, "fork", "talk", "--at", "2", "--id", "copy"); o.stdout != "copy\n" || kinds(t, store, "copy") != "user assistant" {
		t.Errorf("%q, %s", o.stdout, kinds(t, store, "copy"))
	}
	if id := strings.TrimSpace(does(exit.Done, "fork", "talk").stdout); kinds(t, store, id) != kinds(t, store, "talk") {
		t.Errorf("%q: %s", id, kinds(t, store, id))
	}
	contains(t, "standard error", does(exit.Usage, "fork", "talk", "--id", "copy").stderr, "conversation copy already", "--id")
	for _, at := range []string{"6", "0", "-1"} {
		contains(t, "standard error", does(exit.Usage, "fork", "talk", "--at", at).stderr, "--at "+at, "1 to 5")
	}
	does(exit.Done, "fork", "talk", "--id", "whole")
	if kinds(t, store, "whole") != kinds(t, store, "talk") {
		t.Errorf("all of it: %s", kinds(t, store, "whole"))
	}
	does(exit.Done, "delete", "whole")
	if does(exit.Done, "delete", "talk"); kinds(t, store, "talk") != "" {
		t.Error("it is still there")
	}
	for _, args := range [][]string{{"delete", "talk"}, {"show", "talk"}, {"fork", "talk"}, {"rename", "talk", "x"}, {"tag", "talk", "x"}, {"export", "talk"}} {
		contains(t, "standard error", does(exit.Usage, args...).stderr, "no conversation talk", "consort history list")
	}
}

// A damaged conversation can be deleted: nothing else can remove it.
func TestHistoryDeletesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, place := filepath.Join(dir, "consort.toml"), filepath.Join(dir, "talks")
	if err := os.WriteFile(path, []byte("[history]\nstore = \"files\"\npath = \"talks\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := files.Open(place, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Append(t.Context(), "talk", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Well?")}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, "talk", "info.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	consort(t, "history", "delete", "talk", "--config", path).expect(t, exit.Done)
	if _, err := os.Stat(filepath.Join(place, "talk")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestHistoryShows(t *testing.T) {
	t.Parallel()
	path, _ := shelved(t)
	o := consort(t, "history", "show", "talk", "--config", path).expect(t, exit.Done)
	contains(t, "the conversation", o.stdout, "1 user", "3 invocation atlas__weather", `"city": "<b>Oslo"`,
		"4 result EXECUTION_FAILED", "5 assistant", "It snows.")
	var all histories.ConversationShown
	if err := json.Unmarshal([]byte(consort(t, "history", "show", "talk", "--json", "--config", path).expect(t, exit.Done).stdout), &all); err != nil {
		t.Fatal(err)
	}
	if first, err := canister.Unmarshal(all.Canisters[0]); err != nil || len(all.Canisters) != 5 ||
		display.Contents(first.(canister.User).Content) != "Oslo? "+hostile || all.Conversation.Length != 5 {
		t.Errorf("%v, %+v", err, all)
	}
}

// No message reaches a terminal as more than text.
func TestHistoryIsSafeOnATerminal(t *testing.T) {
	t.Parallel()
	path, _ := shelved(t)
	for _, args := range []string{
		"list", "list --json", "search oslo", "search oslo --json", "search execution", "show talk", "show talk --full", "show talk --json", "export talk", "export talk --format markdown", "export talk --format html",
	} {
		x := run{env: []string{"NO_COLOR=1"}}.onTerminal(t, append(append([]string{"history"}, strings.Fields(args)...), "--config", path)...)
		text := x.ends(exit.Done)
		lacks(t, args, text, "\x1b")
		lacksUnseen(t, args, text)
	}
}

// The two forms to read render what people and models wrote, and nothing else.
func TestHistoryIsExportedToRead(t *testing.T) {
	t.Parallel()
	path, _ := shelved(t)
	page := filepath.Join(t.TempDir(), "page.html")
	consort(t, "history", "export", "talk", "--format", "html", "-o", page, "--config", path).expect(t, exit.Done)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the page", string(text), "&lt;script&gt;", "&lt;/pre&gt;", "&lt;/title&gt;", "Content-Security-Policy",
		"default-src 'none'", "Call of <code>atlas__weather</code>", "4 Result · EXECUTION_FAILED", "<p>It snows.</p>", "</html>")
	lacks(t, "the page", strings.ToLower(string(text)), "<script", "<b>", "<img", "href=\"javascript", "\x1b")
	lacksUnseen(t, "the page", string(text))

	o := consort(t, "history", "export", "talk", "--format", "markdown", "--config", path).expect(t, exit.Done)
	lacksUnseen(t, "the text", o.stdout)
	contains(t, "the text", o.stdout, `# \<script>`, "## 1 User", "## 3 Call of `atlas__weather`", "4 Result · EXECUTION_FAILED:", "\n\nIt snows.\n")
	all := consort(t, "history", "export", "--all", "--format", "markdown", "--config", path).expect(t, exit.Done).stdout
	if all != consort(t, "history", "export", "open", "talk", "--format", "markdown", "--config", path).expect(t,
		exit.Done).stdout || strings.Count(all, "\n## ") != 4 {
		t.Errorf("all of them:\n%s", all)
	}
	if tagged := consort(t, "history", "export", "--tag", "travel", "--format", "markdown", "--config", path).expect(t, exit.Done).stdout; tagged != o.stdout {
		t.Errorf("those with the tag:\n%s", tagged)
	}
	for _, args := range []string{"", "talk --all", "--tag none"} {
		consort(t, append(strings.Fields("history export "+args), "--config", path)...).expect(t, exit.Usage)
	}
	contains(t, "standard error", consort(t, "history", "export", "talk", "--format", "pdf", "--config", path).expect(t, exit.Usage).stderr, "markdown or html")
}

// What was exported is taken up by another store, as it was.
func TestHistoryIsImported(t *testing.T) {
	t.Parallel()
	path, store := shelved(t)
	bundle := filepath.Join(t.TempDir(), "talk.jsonl")
	consort(t, "history", "export", "talk", "--output", bundle, "--config", path).expect(t, exit.Done)
	refused := consort(t, "history", "export", "talk", "--output", bundle, "--config", path).expect(t, exit.Usage)
	contains(t, "standard error", refused.stderr, "exists already; to replace it, add --force")
	consort(t, "history", "export", "talk", "--output", bundle, "--force", "--config", path).expect(t, exit.Done)
	dir := t.TempDir()
	if o := (run{dir: dir}).consort(t, "history", "import", bundle, "--history", "other.db").expect(t, exit.Done); o.stdout != "talk\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	again := run{dir: dir}.consort(t, "history", "export", "talk", "--history", "other.db").expect(t, exit.Done).stdout
	text, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	_, was, _ := strings.Cut(string(text), "\n")
	head, is, _ := strings.Cut(again, "\n")
	if was != is || !strings.Contains(head, `"tags":["travel"]`) || !strings.Contains(head, `"consort_conversation":1`) {
		t.Errorf("it was\n%s\nand is\n%s\n%s", was, head, is)
	}
	contains(t, "standard error", consort(t, "history", "import", bundle, "--config", path).expect(t, exit.Usage).stderr, "conversation talk already", "--id")
	run{stdin: string(text)}.consort(t, "history", "import", "-", "--id", "second", "--config", path).expect(t, exit.Done)
	if kinds(t, store, "second") != kinds(t, store, "talk") {
		t.Errorf("%s", kinds(t, store, "second"))
	}
	lines := strings.SplitAfter(string(text), "\n")
	for name, test := range map[string]struct{ text, want string }{
		"empty":       {"", "line 1: this line does not begin a conversation"},
		"newer":       {strings.Replace(string(text), `tion":1`, `tion":2`, 1), "newer program"},
		"in a line":   {string(text[:len(text)-20]), "line 6"},
		"no history":  {strings.Replace(string(text), lines[3], "", 1) + lines[3], "not a valid history"},
		"no identity": {strings.Replace(string(text), `"id":"talk"`, `"id":""`, 1), "the ID of the conversation is empty"},
	} {
		o := run{stdin: test.text}.consort(t, "history", "import", "-", "--history", "x.db").expect(t, exit.Usage)
		contains(t, name, o.stderr, test.want)
	}
}

// Several conversations are imported together; existing ones stay unchanged.
func TestHistoryMoves(t *testing.T) {
	t.Parallel()
	path, _ := shelved(t)
	dir := t.TempDir()
	all := filepath.Join(dir, "all.jsonl")
	consort(t, "history", "export", "--all", "-o", all, "--config", path).expect(t, exit.Done)
	in := run{dir: dir}
	if o := in.consort(t, "history", "import", all, "--history", "other.db").expect(t, exit.Done); o.stdout != "open\ntalk\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	in.consort(t, "history", "delete", "talk", "--history", "other.db").expect(t, exit.Done)
	o := in.consort(t, "history", "import", all, "--history", "other.db").expect(t, exit.Usage)
	contains(t, "standard error", o.stderr, "conversation open already")
	if o.stdout != "talk\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	o = in.consort(t, "history", "import", all, "--id", "mine", "--history", "third.db").expect(t, exit.Usage)
	contains(t, "standard error", o.stderr, "--id is for a file with one conversation")
}

// TestHistoryPrunes: the configuration decides what is kept, and --dry-run deletes
// nothing.
func TestHistoryPrunes(t *testing.T) {
	t.Parallel()
	path, store := shelved(t)
	contains(t, "standard error", consort(t, "history", "prune", "--config", path).expect(t, exit.Usage).stderr, "--keep DURATION", "history.keep")
	for _, keep := range []string{"-1h", "0"} { // also if the configuration has another one
		contains(t, "--keep "+keep, consort(t, "history", "prune", "--keep", keep, "--set", "history.keep=1ns", "--config", path).expect(t, exit.Usage).stderr,
			"--keep", "expected a duration longer than 0")
	}
	if got := listed(t, consort(t, "history", "prune", "--keep", "1h", "--json", "--config", path).expect(t, exit.Done)); got != "" {
		t.Errorf("young ones are gone: %q", got)
	}
	for _, test := range []struct{ args, want, left string }{
		{"--keep 1ns --dry-run", "talk", "open talk"},
		{"--keep 1ns --dry-run --open", "open talk", "open talk"},
		{"--keep 1ns", "talk", "open"},
		{"--keep 1ns --open", "open", ""},
	} {
		args := append([]string{"history", "prune", "--json", "--config", path}, strings.Fields(test.args)...)
		if got := listed(t, consort(t, args...).expect(t, exit.Done)); got != test.want {
			t.Errorf("%s: %q, want %q", test.args, got, test.want)
		}
		var left []string
		for _, info := range all(t, store) {
			left = append(left, info.ID)
		}
		if strings.Join(left, " ") != test.left {
			t.Errorf("%s: %q are left, want %q", test.args, left, test.left)
		}
	}

	path, _ = shelved(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rules := "keep = \"1ns\"\nprune_open = true\nrules = [{tag = \"travel\"}]\n"
	if err := os.WriteFile(path, append(text, rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	o := consort(t, "history", "prune", "--config", path).expect(t, exit.Done)
	contains(t, "the list", o.stdout, "open")
	lacks(t, "the list", o.stdout, "talk")
}

// Listing creates no store, and shows no secrets.
func TestHistoryOnlyLooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := run{dir: dir}.consort(t, "history", "list", "--history", "none.db").expect(t, exit.Done)
	contains(t, "standard error", o.stderr, "no none.db yet")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	contains(t, "standard error", consort(t, "history", "list", "--config", file(t, keepsNothing)).expect(t, exit.Usage).stderr, "stores no conversations")

	path := file(t, historyTable, "[trusted]\nkey = {value = \"hunter2-4711\", secret = true}\n")
	store := open(t, path)
	if err := store.Append(t.Context(), "a", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("It is hunter2-4711.")}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	consort(t, "history", "export", "a", "-o", out, "--config", path).expect(t, exit.Done)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, seen := range []string{
		string(text), consort(t, "history", "show", "a", "--config", path).stdout, consort(t, "history", "export", "a", "--config", path).stdout,
	} {
		contains(t, "what is shown", seen, "It is [secret].")
	}
}

func TestCheckOpensTheStore(t *testing.T) {
	t.Parallel()
	path := file(t, historyTable)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "talks.db"), []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	o := consort(t, "check", "--offline", "--config", path).expect(t, exit.Usage)
	contains(t, "the report", o.stdout, "history.path")
}

// One conversation that cannot be read hides no other.
func TestADamagedConversationHidesNoOther(t *testing.T) {
	t.Parallel()
	path := file(t, echo(t), "[history]\nstore = \"files\"\npath = \"talks\"\n")
	folder := filepath.Join(filepath.Dir(path), "talks")
	store, err := files.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, id := range []string{"good", "bad"} {
		if err := store.Append(t.Context(), id, 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo?")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "bad", "info.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"list"}, {"search", "Oslo"}, {"list", "--json"}, {"export", "--all"}} {
		o := consort(t, append(append([]string{"history"}, args...), "--config", path)...).expect(t, exit.Failed)
		contains(t, "standard output", o.stdout, "good")
		contains(t, "standard error", o.stderr, "bad", "info.json")
	}
	chat := run{stdin: "one\n/resume"}
	o := chat.consort(t, "chat", "--config", path)
	contains(t, "the conversations of the chat", o.stdout+o.stderr, "good", "/resume ID continues one of them", "info.json")
	o = consort(t, "approve", "--json", "--config", path).expect(t, exit.Failed)
	contains(t, "the list of waits", o.stdout, `"conversations": []`)
	contains(t, "standard error", o.stderr, "bad", "info.json")
}

// One that is damaged in the middle is left out of an export as a whole, which is
// told when the others are written.
func TestExportLeavesOutWhatIsDamaged(t *testing.T) {
	t.Parallel()
	path := file(t, "[history]\nstore = \"files\"\npath = \"talks\"\n")
	folder := filepath.Join(filepath.Dir(path), "talks")
	store, err := files.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, id := range []string{"first", "bad", "last"} {
		said := canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo?")}
		if err := store.Append(t.Context(), id, 0, said,
			canister.Assistant{Head: canister.Head{ID: "m"}, Content: canister.Texts("It snows. " + strings.Repeat("And snows. ", 200))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(folder, "bad", "contents")); err != nil { // where the answer is
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "all.jsonl")
	for _, args := range []string{"--all -o " + out, "bad last first"} {
		o := consort(t, append(strings.Fields("history export "+args), "--config", path)...).expect(t, exit.Failed)
		contains(t, args, o.stderr, "bad is omitted: ", "history.jsonl")
		lacks(t, args, o.stderr, "first", "last")
	}
	o := run{dir: t.TempDir()}.consort(t, "history", "import", out, "--history", "other.db").expect(t, exit.Done)
	if len(strings.Fields(o.stdout)) != 2 || strings.Contains(o.stdout, "bad") {
		t.Errorf("what can be read: %q", o.stdout)
	}
	contains(t, "none is left", consort(t, "history", "export", "bad", "-o", out+"2", "--config", path).expect(t, exit.Failed).stderr, "bad is omitted")
	if isThere(out + "2") {
		t.Error("an empty file was written")
	}
}

// Deleting or pruning a conversation also deletes its spilled results.
func TestDeleteAndPruneRemoveWhatWasSpilled(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"sqlite", "files"} {
		folder := t.TempDir()
		path := filepath.Join(folder, "consort.toml")
		text := "[history]\npath = \"kept\"\nstore = \"" + store + "\"\n[conversation]\nresult_bytes = 10\nspill = \"spill\"\n"
		text += atlas(0) + model(t, says("", calls("atlas__weather", `{"city":"Oslo"}`)), says("It snows."))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		consort(t, "run", "--config", path, "--conversation", "c", "Oslo?").expect(t, exit.Done)
		pieces := func() []string {
			names, _ := filepath.Glob(filepath.Join(folder, "spill", "*.*"))
			return names
		}
		if len(pieces()) == 0 {
			t.Fatal("nothing was spilled")
		}
		consort(t, "history", "fork", "c", "--id", "f", "--config", path).expect(t, exit.Done)
		consort(t, "history", "delete", "c", "--config", path).expect(t, exit.Done)
		if len(pieces()) == 0 {
			t.Errorf("%s: the fork has lost its pieces", store)
		}
		consort(t, "history", "prune", "--keep", "1ns", "--config", path).expect(t, exit.Done)
		if left := pieces(); len(left) > 0 {
			t.Errorf("%s: left are %q", store, left)
		}
	}
}

// A list tells of damage at the end of a conversation; damage in the middle of one
// is found by an export of all, wherever that goes.
func TestAListAndAnExportFindDamage(t *testing.T) {
	t.Parallel()
	path := file(t, "[history]\nstore = \"files\"\npath = \"talks\"\n")
	folder := filepath.Join(filepath.Dir(path), "talks")
	store, err := files.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for id, damaged := range map[string]string{"middle": "Oslo", "end": "snows", "good": ""} {
		said := canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("Oslo?")}
		if err := store.Append(t.Context(), id, 0, said, canister.Assistant{Head: canister.Head{ID: "m"}, Content: canister.Texts("It snows.")}); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, id, "history.jsonl")
		text, err := os.ReadFile(name)
		if err == nil && damaged != "" {
			err = os.WriteFile(name, []byte(strings.Replace(string(text), damaged, strings.ToUpper(damaged), 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	list := consort(t, "history", "list", "--config", path).expect(t, exit.Failed)
	contains(t, "the list", list.stdout, "good", "middle")
	contains(t, "standard error", list.stderr, "end", "history.jsonl: line 2")
	o := consort(t, "history", "export", "--all", "-o", os.DevNull, "--config", path).expect(t, exit.Failed)
	contains(t, "standard error", o.stderr, "middle is omitted", "history.jsonl: line 1", "end/history.jsonl: line 2")
}
