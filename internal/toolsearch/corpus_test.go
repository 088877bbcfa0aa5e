// SPDX-License-Identifier: Apache-2.0

package toolsearch_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/toolsearch"
)

// collected is a server of the corpus that .ci/collect-tools has written.
type collected struct {
	Server, Package, Version, Licence string
	Tools                             []struct {
		Name, Title, Description string
		InputSchema              json.RawMessage
	}
}

func corpus(t testing.TB) (servers []collected) {
	t.Helper()
	file, err := os.Open("testdata/tools.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := json.NewDecoder(unzipped); decoder.More(); {
		var server collected
		if err := decoder.Decode(&server); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, server)
	}
	return servers
}

// collectedEntries returns the tools of the corpus.
func collectedEntries(t testing.TB) (entries []toolsearch.Entry) {
	for _, server := range corpus(t) {
		for _, tool := range server.Tools {
			entries = append(entries, toolsearch.Entry{
				Name: tool.Name, Title: tool.Title, Description: tool.Description, Schema: tool.InputSchema, Server: server.Server,
			})
		}
	}
	return entries
}

// The corpus has what the other tests need, and only texts that may be copied.
func TestCorpus(t *testing.T) {
	servers, tools := corpus(t), 0
	for _, server := range servers {
		if server.Package == "" || server.Version == "" || !slices.Contains([]string{"MIT", "Apache-2.0", "ISC", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Unlicense", "CC0-1.0"}, server.Licence) {
			t.Errorf("%s is of %s %s with the licence %q", server.Server, server.Package, server.Version, server.Licence)
		}
		tools += len(server.Tools)
	}
	t.Logf("%d tools of %d servers", tools, len(servers))
	if len(servers) < 50 || tools < 500 {
		t.Error("there are too few")
	}
}

// question is a request of a person, the words with which a model looks for a tool that
// fulfils it, and the tools that do, as server/tool.
type question struct {
	request, search string
	tools           []string
}

func questions(t *testing.T, name string) (all []question) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		columns := strings.Split(lines.Text(), "\t")
		all = append(all, question{columns[0], columns[1], strings.Fields(columns[2])})
	}
	return all
}

// The ranking and the synonyms are chosen with every second question of a file, whose failures
// are printed; the others are held out. See decision 56.
func TestRecall(t *testing.T) {
	entries, inCorpus := collectedEntries(t), map[string]bool{}
	for _, e := range entries {
		inCorpus[e.Server+"/"+e.Name] = true
	}
	index := toolsearch.New(entries)
	isFound := func(text string, tools []string) bool {
		return slices.ContainsFunc(index.Search(text, 5), func(one toolsearch.Found) bool {
			return slices.Contains(tools, entries[one.Entry].Server+"/"+entries[one.Entry].Name)
		})
	}
	for _, set := range []struct {
		name            string
		request, search int // of 100 held out, at least
	}{{"questions.tsv", 84, 95}, {"drawn.tsv", 70, 95}} {
		var asked, byRequest, bySearch [2]int // for tuning, and held out
		for i, q := range questions(t, set.name) {
			for _, tool := range q.tools {
				if !inCorpus[tool] {
					t.Errorf("question %d of %s is about %s, which is not in the corpus", i+1, set.name, tool)
				}
			}
			asked[i%2]++
			if isFound(q.request, q.tools) {
				byRequest[i%2]++
			}
			if isFound(q.search, q.tools) {
				bySearch[i%2]++
			} else if i%2 == 0 {
				t.Logf("%q finds none of %q", q.search, q.tools)
			}
		}
		for i, what := range []string{"chosen with", "held out"} {
			t.Logf("%s, %s: %d questions, %d found by the request, %d by the search", set.name, what, asked[i], byRequest[i], bySearch[i])
		}
		if asked[1] < 60 || byRequest[1]*100 < asked[1]*set.request || bySearch[1]*100 < asked[1]*set.search {
			t.Errorf("too few of %s are found", set.name)
		}
	}
}
