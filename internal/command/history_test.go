// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// hostile is what somebody says who would like to be more than text.
const hostile = "<script>alert(1)</script>\n```\n# owned\n[x](javascript:alert(1)) ![i](http://evil.example/p.png)\n````\x1b]0;owned\a\u009b2J\u202e</pre></title>"

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
	var list conversationList
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
	path, _ := shelved(t)
	for args, want := range map[string]string{
		"list": "open talk", "list --open": "open", "list --tag travel": "talk", "list --tag travel --tag x": "",
		"list --limit 1": "open", "list --text snows": "talk", "search oslo": "open talk", "search oslo snows": "talk",
		"search oslo --limit 1": "open", "search Bergen": "",
	} {
		if got := listed(t, consort(t, append(append([]string{"history"}, strings.Fields(args)...), "--json", "--config", path)...).expect(t, statusDone)); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	o := consort(t, "history", "list", "--config", path).expect(t, statusDone)
	contains(t, "the list", o.stdout, "CHANGED", "talk", "#travel", "(open)")
	contains(t, "standard error", consort(t, "history", "list", "--limit", "-1", "--config", path).expect(t, statusUsage).stderr, "--limit -1")
}

func TestHistoryChanges(t *testing.T) {
	path, store := shelved(t)
	does := func(want status, args ...string) outcome {
		t.Helper()
		return consort(t, append(append([]string{"history"}, args...), "--config", path)...).expect(t, want)
	}
	does(statusDone, "rename", "talk", "A", "title")
	does(statusDone, "tag", "talk", "b", "a")
	info, err := store.Info(t.Context(), "talk")
	if err != nil || info.Title != "A title" || strings.Join(info.Tags, " ") != "a b" {
		t.Errorf("%+v, %v", info, err)
	}
	if does(statusDone, "tag", "talk"); all(t, store)[1].Tags != nil && len(all(t, store)[1].Tags) > 0 {
		t.Error("the tags are still there")
	}
	if o := does(statusDone, "fork", "talk", "--at", "2", "--id", "copy"); o.stdout != "copy\n" || kinds(t, store, "copy") != "user assistant" {
		t.Errorf("%q, %s", o.stdout, kinds(t, store, "copy"))
	}
	if id := strings.TrimSpace(does(statusDone, "fork", "talk").stdout); kinds(t, store, id) != kinds(t, store, "talk") {
		t.Errorf("%q: %s", id, kinds(t, store, id))
	}
	contains(t, "standard error", does(statusUsage, "fork", "talk", "--id", "copy").stderr, "conversation copy already", "--id")
	contains(t, "standard error", does(statusUsage, "fork", "talk", "--at", "6").stderr, "1 to 5")
	if does(statusDone, "delete", "talk"); kinds(t, store, "talk") != "" {
		t.Error("it is still there")
	}
	for _, args := range [][]string{{"delete", "talk"}, {"show", "talk"}, {"fork", "talk"}, {"rename", "talk", "x"}, {"tag", "talk", "x"}, {"export", "talk"}} {
		contains(t, "standard error", does(statusUsage, args...).stderr, "no conversation talk", "consort history list")
	}
}

func TestHistoryShows(t *testing.T) {
	path, _ := shelved(t)
	o := consort(t, "history", "show", "talk", "--config", path).expect(t, statusDone)
	contains(t, "the conversation", o.stdout, "1 user", "3 invocation atlas__weather", `"city": "<b>Oslo"`, "4 result EXECUTION_FAILED", "5 assistant", "It snows.")
	var shown conversationShown
	if err := json.Unmarshal([]byte(consort(t, "history", "show", "talk", "--json", "--config", path).expect(t, statusDone).stdout), &shown); err != nil {
		t.Fatal(err)
	}
	if first, err := canister.Unmarshal(shown.Canisters[0]); err != nil || len(shown.Canisters) != 5 || plain(first.(canister.User).Content) != "Oslo? "+hostile || shown.Conversation.Length != 5 {
		t.Errorf("%v, %+v", err, shown)
	}
}

// Nothing that somebody said reaches a terminal as more than text.
func TestHistoryIsSafeOnATerminal(t *testing.T) {
	path, _ := shelved(t)
	for _, args := range []string{"list", "list --json", "show talk", "show talk --json", "export talk", "export talk --format markdown", "export talk --format html"} {
		x := run{env: []string{"NO_COLOR=1"}}.onTerminal(t, append(append([]string{"history"}, strings.Fields(args)...), "--config", path)...)
		lacks(t, args, x.ends(statusDone), "\x1b", "\a", "\u009b", "\u202e")
	}
}

// The two forms to read have no markup but their own.
func TestHistoryIsExportedToRead(t *testing.T) {
	path, _ := shelved(t)
	page := filepath.Join(t.TempDir(), "page.html")
	consort(t, "history", "export", "talk", "--format", "html", "-o", page, "--config", path).expect(t, statusDone)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the page", string(text), "&lt;script&gt;", "&lt;/pre&gt;", "&lt;/title&gt;", "Content-Security-Policy", "default-src 'none'", "It snows.", "</html>")
	lacks(t, "the page", strings.ToLower(string(text)), "<script", "<b>", "<img", "href=", "\x1b", "\u202e")

	o := consort(t, "history", "export", "talk", "--format", "markdown", "--config", path).expect(t, statusDone)
	outside, fence := "", ""
	for line := range strings.Lines(o.stdout) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence = line
		case fence != "" && strings.HasPrefix(line, fence) && strings.Trim(line, "`") == "":
			fence = ""
		case fence == "":
			outside += line + "\n"
		}
	}
	contains(t, "outside of the fences", outside, `# \<script\>`, "## 1 user", `atlas\_\_weather`)
	lacks(t, "outside of the fences", strings.ReplaceAll(outside, `\<`, ""), "<", "\n# owned", "](", "It snows.")
	if strings.Count(outside, "\n## ") != 5 || fence != "" {
		t.Errorf("the canisters do not stand apart:\n%s", o.stdout)
	}
	contains(t, "standard error", consort(t, "history", "export", "talk", "--format", "pdf", "--config", path).expect(t, statusUsage).stderr, "markdown or html")
}

// What was exported is taken up by another store, as it was.
func TestHistoryIsImported(t *testing.T) {
	path, store := shelved(t)
	bundle := filepath.Join(t.TempDir(), "talk.jsonl")
	consort(t, "history", "export", "talk", "--output", bundle, "--config", path).expect(t, statusDone)
	dir := t.TempDir()
	if o := (run{dir: dir}).consort(t, "history", "import", bundle, "--history", "other.db").expect(t, statusDone); o.stdout != "talk\n" {
		t.Errorf("standard output: %q", o.stdout)
	}
	again := run{dir: dir}.consort(t, "history", "export", "talk", "--history", "other.db").expect(t, statusDone).stdout
	text, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	_, was, _ := strings.Cut(string(text), "\n")
	head, is, _ := strings.Cut(again, "\n")
	if was != is || !strings.Contains(head, `"tags":["travel"]`) || !strings.Contains(head, `"consort_conversation":1`) {
		t.Errorf("it was\n%s\nand is\n%s\n%s", was, head, is)
	}
	contains(t, "standard error", consort(t, "history", "import", bundle, "--config", path).expect(t, statusUsage).stderr, "conversation talk already", "--id")
	run{stdin: string(text)}.consort(t, "history", "import", "-", "--id", "second", "--config", path).expect(t, statusDone)
	if kinds(t, store, "second") != kinds(t, store, "talk") {
		t.Errorf("%s", kinds(t, store, "second"))
	}
	lines := strings.SplitAfter(string(text), "\n")
	for name, test := range map[string]struct{ text, want string }{
		"empty":       {"", "no export"},
		"other":       {"{}\n", "no export"},
		"newer":       {strings.Replace(string(text), `tion":1`, `tion":2`, 1), "newer program"},
		"cut off":     {strings.Join(lines[:4], ""), "3 canisters, and its first line says 5"},
		"in a line":   {string(text[:len(text)-20]), "line 5"},
		"no history":  {strings.Replace(string(text), lines[3], "", 1) + lines[3], "no history"},
		"no identity": {strings.Replace(string(text), `"id":"talk"`, `"id":""`, 1), "identity"},
	} {
		o := run{stdin: test.text}.consort(t, "history", "import", "-", "--history", "x.db").expect(t, statusUsage)
		contains(t, name, o.stderr, test.want)
	}
}

// Looking makes no store, and what is a secret is not shown.
func TestHistoryOnlyLooks(t *testing.T) {
	dir := t.TempDir()
	o := run{dir: dir}.consort(t, "history", "list", "--history", "none.db").expect(t, statusDone)
	contains(t, "standard error", o.stderr, "no none.db yet")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	contains(t, "standard error", consort(t, "history", "list", "--config", file(t)).expect(t, statusUsage).stderr, "keeps no conversations")

	path := file(t, historyTable, "[trusted]\nkey = {value = \"hunter2-4711\", secret = true}\n")
	store := open(t, path)
	if err := store.Append(t.Context(), "a", 0, canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts("It is hunter2-4711.")}); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	consort(t, "history", "export", "a", "-o", out, "--config", path).expect(t, statusDone)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(text), consort(t, "history", "show", "a", "--config", path).stdout, consort(t, "history", "export", "a", "--config", path).stdout} {
		contains(t, "what is shown", shown, "It is [secret].")
	}
}

func TestCheckOpensTheStore(t *testing.T) {
	path := file(t, historyTable)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "talks.db"), []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	o := consort(t, "check", "--config", path).expect(t, statusUsage)
	contains(t, "the report", o.stdout, "history.path")
}
