// SPDX-License-Identifier: Apache-2.0

package toolsearch_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"github.com/consort-go/consort/internal/toolsearch"
)

// entries of three servers, in their words.
var entries = []toolsearch.Entry{
	{
		Server: "files", Name: "read_text_file", Description: "Read the complete contents of a file as text.",
		Schema: []byte(`{"properties":{"path":{"type":"string"},"head":{"type":"number","description":"only the first N lines"}}}`),
	},
	{Server: "files", Name: "delete_file", Description: "Remove a file from the disk."},
	{Server: "files", Name: "list_directory", Description: "List what is in a directory, with sizes."},
	{
		Server: "github", Name: "createPullRequest", Description: "Open a request to merge a branch.",
		Schema: []byte(`{"properties":{"base":{"type":"string"},"labels":{"type":"array","items":{"properties":{"colour":{"description":"hexadecimal"}}}}}}`),
	},
	{Server: "github", Name: "search_repositories", Description: "Search GitHub for repositories."},
	{Server: "chat", Name: "HTTPServerStatus", Title: "Server status", Description: "Says whether the chat server is up."},
	{Server: "chat", Name: "post_message", Description: "Sends text to a channel.", Schema: []byte(`{"properties":{"priority":{"enum":["urgent","normal"]}}}`)},
	{Server: "wetter", Name: "vorhersage", Description: "天気予報を取得します。 Température à Zürich."},
}

func names(found []toolsearch.Found) (list []string) {
	for _, one := range found {
		list = append(list, entries[one.Entry].Name)
	}
	return list
}

func TestFirst(t *testing.T) {
	index := toolsearch.New(entries)
	for query, want := range map[string]string{
		"deleting files":               "delete_file",       // stems
		"pull request":                 "createPullRequest", // identifiers are split
		"createpullrequest":            "createPullRequest",
		"pullrequest":                  "createPullRequest",   // it begins with a word of it
		"repo":                         "search_repositories", // the beginning of a word, and an abbreviation
		"repositor":                    "search_repositories",
		"repoistories":                 "search_repositories", // a mistake
		"mesage":                       "post_message",
		"priorityx":                    "post_message",
		"xpriority":                    "",
		"remove":                       "delete_file",
		"folder":                       "list_directory", // a synonym
		"github":                       "search_repositories",
		"http status":                  "HTTPServerStatus",
		"server":                       "HTTPServerStatus",
		"hexadecimal colour":           "createPullRequest", // arguments at any depth
		"urgent":                       "post_message",      // their values
		"予報":                           "vorhersage",
		"temperature in zurich":        "vorhersage", // without accents
		"read_text_file":               "read_text_file",
		" FILES__read_text_file ":      "read_text_file",
		"Read text file":               "read_text_file",
		"http server-status":           "HTTPServerStatus",
		"how do I say it to a channel": "post_message",
		"":                             "",
		"the of a":                     "",
		"xyzzy":                        "",
		"\xff\xfe\x00":                 "",
	} {
		got := ""
		if found := index.Search(query, 1); len(found) > 0 {
			got = entries[found[0].Entry].Name
		}
		if got != want {
			t.Errorf("%q finds %q first, not %q", query, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	index := toolsearch.New(entries)
	if got := names(index.Search("file", 10)); !slices.Equal(got[:2], []string{"delete_file", "read_text_file"}) {
		t.Errorf("file finds %q", got)
	}
	for _, n := range []int{-1, 0, 1, 2, 1000} {
		found := index.Search("list the files of github", n)
		if len(found) > max(n, 0) {
			t.Errorf("%d entries of at most %d", len(found), n)
		}
		for i, one := range found {
			if one.Score <= 0 || i > 0 && one.Score > found[i-1].Score {
				t.Errorf("entry %d has the score %f after %+v", i, one.Score, found[:i])
			}
		}
	}
	if found := toolsearch.New(nil).Search("file", 5); len(found) != 0 {
		t.Errorf("an empty index finds %v", found)
	}
	if found := toolsearch.New(make([]toolsearch.Entry, 3)).Search("file", 5); len(found) != 0 {
		t.Errorf("an index of empty entries finds %v", found)
	}
}

// A word counts once for an entry, as itself or as one of its synonyms.
func TestSynonymsCountOnce(t *testing.T) {
	list := []toolsearch.Entry{{Name: "shape", Description: "Add, insert, make or new."}, {Name: "create"}, {Name: "rename"}, {Name: "move"}}
	if found := toolsearch.New(list).Search("register", 1); len(found) == 0 || found[0].Entry != 1 {
		t.Errorf("it finds %+v", found)
	}
}

// A product's name finds its server, whether it is written as one word or as two.
// Who gives something away asks for a change, and who says "give me" for a list.
func TestGive(t *testing.T) {
	members := toolsearch.New([]toolsearch.Entry{
		{Name: "add_collaborator", Description: "Adds a collaborator to a repository with a permission", Server: "github"},
		{Name: "list_collaborators", Description: "Lists the collaborators of a repository and their permission", Server: "github"},
	})
	for query, want := range map[string]int{"give bob access to the repository as collaborator": 0, "give me the collaborators of the repository": 1} {
		if found := members.Search(query, 1); len(found) == 0 || found[0].Entry != want {
			t.Errorf("%q finds %v", query, found)
		}
	}
}

// Quotation marks that are not closed are passed over, however many there are: searching for the
// end of each would take minutes here.
func TestLongQuery(t *testing.T) {
	x := toolsearch.New(entries)
	if found := x.Search(strings.Repeat("“„«", 300_000)+" delete", 1); len(found) != 1 || entries[found[0].Entry].Name != "delete_file" {
		t.Errorf("it finds %v", found)
	}
}

func TestJoinedWords(t *testing.T) {
	list := []toolsearch.Entry{{Server: "argocd", Name: "sync"}, {Server: "compactdisc", Name: "sync", Description: "Writes a CD."}}
	if found := toolsearch.New(list).Search("sync with Argo CD", 1); len(found) == 0 || found[0].Entry != 0 {
		t.Errorf("it finds %+v", found)
	}
}

// What people say finds the words of tools: phrases, other names of products, abbreviations.
func TestWhatPeopleSay(t *testing.T) {
	list := []toolsearch.Entry{
		{Server: "files", Name: "delete_file"}, {Server: "files", Name: "move_file"}, {Server: "site", Name: "logout"},
		{Server: "notes", Name: "mongo_lookup"}, {Server: "mongodb", Name: "lookup"},
		{Server: "android", Name: "screenshot"}, {Server: "ios", Name: "screenshot"},
		{Server: "code", Name: "merge_pull_request"}, {Server: "code", Name: "pull_branch"},
		{Server: "shop", Name: "ready_order", Description: "Cooks a cake."}, {Server: "chat", Name: "post_text"},
		{Server: "box", Name: "set_label"}, {Server: "box", Name: "label_page"}, {Server: "web", Name: "url_reader"},
	}
	index := toolsearch.New(list)
	for query, want := range map[string]string{
		"get rid of the old file":                              "files/delete_file",
		"sign me out":                                          "site/logout",
		"sign the other one there out":                         "site/logout", // other words in between
		"sign the one that you and I and they had out":         "",
		"lookup in Mongo":                                      "mongodb/lookup", // the beginning of the name of a server
		"screenshot of the iPhone":                             "ios/screenshot",
		"the PR":                                               "code/merge_pull_request",
		"https://example.com/order":                            "web/url_reader",
		`post the text "ready order, cook the cake"`:           "chat/post_text", // a value
		"post the text “ready order, cook the cake”":           "chat/post_text",
		`ready order, cook the "cake`:                          "shop/ready_order",
		"sign me out sign me out sign me out delete that file": "files/delete_file", // a phrase counts once
		"label 3":         "box/set_label",
		"label 3?":        "box/label_page", // a question
		"what is label 3": "box/label_page",
	} {
		got := ""
		if found := index.Search(query, 1); len(found) > 0 {
			got = list[found[0].Entry].Server + "/" + list[found[0].Entry].Name
		}
		if got != want {
			t.Errorf("%q finds %q first, not %q", query, got, want)
		}
	}
}

// The thesaurus has words that a search can have, each once in a line.
func TestThesaurus(t *testing.T) {
	text, err := os.ReadFile("thesaurus.txt")
	if err != nil {
		t.Fatal(err)
	}
	words, before := regexp.MustCompile(`^[a-z0-9]+( [a-z0-9]+)*$`), ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		word, said, directed := strings.Cut(line, ": ")
		list := strings.Split(said, ", ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case !directed:
			list = strings.Split(line, " ")
		case word <= before:
			t.Errorf("%q stands after %q", word, before)
		default:
			before = word
			list = append(list, word)
		}
		slices.Sort(list)
		odd := slices.ContainsFunc(list, func(s string) bool { return !words.MatchString(s) })
		if n := len(list); odd || n < 2 || len(slices.Compact(list)) != n {
			t.Errorf("%q has too few words, one twice, or something that is no word", line)
		}
	}
}

// The order of the words and their number do not matter, and each entry is found by its
// own name and its own description.
func TestFindsItself(t *testing.T) {
	index := toolsearch.New(entries)
	for i, e := range entries {
		for _, query := range []string{e.Name, strings.ToUpper(e.Name), e.Description} {
			if found := index.Search(query, 1); len(found) == 0 || found[0].Entry != i {
				t.Errorf("%q finds %q", query, names(found))
			}
		}
	}
	a, b := index.Search("read a file", 5), index.Search("file FILE files read", 5)
	if !slices.Equal(names(a), names(b)) {
		t.Errorf("%q and %q", names(a), names(b))
	}
}

func TestDoesNotPanic(t *testing.T) {
	index := toolsearch.New(entries)
	if err := quick.Check(func(query string, name, description, schema string) bool {
		toolsearch.New([]toolsearch.Entry{{Name: name, Description: description, Schema: []byte(schema)}}).Search(query, 5)
		return len(index.Search(query, 3)) <= 3
	}, nil); err != nil {
		t.Error(err)
	}
}

// many returns n tools: those of the corpus, again and again under other servers' names.
func many(t testing.TB, n int) (list []toolsearch.Entry) {
	real := collectedEntries(t)
	for i := range n {
		e := real[i%len(real)]
		if i >= len(real) {
			e.Server += fmt.Sprint(i / len(real))
		}
		list = append(list, e)
	}
	return list
}

// However many processors make an index, it finds the same.
func TestProcessors(t *testing.T) {
	list := many(t, 800)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	alone := toolsearch.New(list)
	runtime.GOMAXPROCS(3)
	index := toolsearch.New(list)
	for i := range 20 {
		query := list[i*39].Description + " folders " + list[i*7].Server
		if want, got := alone.Search(query, 50), index.Search(query, 50); !slices.Equal(got, want) {
			t.Fatalf("three processors find %v for %q, and one finds %v", got, query, want)
		}
	}
}

// Neither an index of 5,000 tools nor a search of them does more for a tool than it has to:
// the limits are about twice what is needed.
func TestWork(t *testing.T) {
	list := many(t, 5000)
	var index *toolsearch.Index
	if n := testing.AllocsPerRun(1, func() { index = toolsearch.New(list) }); n > 250_000 {
		t.Errorf("an index takes %.0f allocations", n)
	}
	if n := testing.AllocsPerRun(10, func() { index.Search("update the order of file names listing servers", 5) }); n > 150 {
		t.Errorf("a search takes %.0f allocations", n)
	}
}

func BenchmarkNew(b *testing.B) {
	list := many(b, 5000)
	for b.Loop() {
		toolsearch.New(list)
	}
}

func BenchmarkRequest(b *testing.B) {
	index, asked := toolsearch.New(many(b, 5000)), questions(b, "questions.tsv")
	for i := 0; b.Loop(); i++ {
		index.Search(asked[i%len(asked)].request, 5)
	}
}

func BenchmarkSearch(b *testing.B) {
	index := toolsearch.New(many(b, 5000))
	for b.Loop() {
		index.Search("update the order of file names listing servers", 5)
	}
}
