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
// fulfils it, if there are any, and the tools that do, as server/tool: those that its author
// listed, and those that were judged to do it when a ranking had found them.
type question struct {
	request, search string
	tools, judged   []string
}

func questions(t testing.TB, name string) (all []question) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		columns := append(strings.Split(lines.Text(), "\t"), "")
		all = append(all, question{columns[0], columns[1], strings.Fields(columns[2]), strings.Fields(columns[3])})
	}
	return all
}

// recall counts questions, and those for which one of the first five is right.
type recall struct{ asked, byRequest, judged, searched, bySearch int }

// check fails unless so many of 100 requests and searches find a tool that their author listed.
func (r *recall) check(t *testing.T, what string, request, search int) {
	t.Helper()
	t.Logf("%s: %d of %d found by the request (%d with those judged later), %d of %d by the search", what,
		r.byRequest, r.asked, r.judged, r.bySearch, r.searched)
	if r.asked < 50 || r.byRequest*100 < r.asked*request || r.bySearch*100 < r.searched*search {
		t.Errorf("%s: less than %d %% are found by the request, or less than %d %% by the search", what, request, search)
	}
}

// The ranking and the thesaurus are chosen with the questions for tuning, whose failures are
// printed; the others are held out. See decision 67.
func TestRecall(t *testing.T) {
	entries, inCorpus := collectedEntries(t), map[string]bool{}
	for _, e := range entries {
		inCorpus[e.Server+"/"+e.Name] = true
	}
	index := toolsearch.New(entries)
	isFound := func(text string, tools ...string) bool {
		return slices.ContainsFunc(index.Search(text, 5), func(one toolsearch.Found) bool {
			return slices.Contains(tools, entries[one.Entry].Server+"/"+entries[one.Entry].Name)
		})
	}
	count := func(r *recall, q question, log func(string, ...any)) {
		r.asked++
		if isFound(q.request, q.tools...) {
			r.byRequest++
		}
		if isFound(q.request, append(q.judged, q.tools...)...) {
			r.judged++
		} else {
			log("%q finds none of %q", q.request, q.tools)
		}
		if q.search != "" {
			r.searched++
			if isFound(q.search, q.tools...) {
				r.bySearch++
			} else {
				log("%q finds none of %q", q.search, q.tools)
			}
		}
	}
	for _, set := range []struct {
		name            string
		tuning          func(i int) bool
		request, search int // of 100 held out, at least; of tuning.tsv, of 100
	}{
		{"questions.tsv", every2nd, 90, 98},
		{"drawn.tsv", every2nd, 85, 98},
		{"drawn2.tsv", every2nd, 95, 98},
		{"drawn3.tsv", func(int) bool { return false }, 87, 98},
		{"tuning.tsv", func(int) bool { return true }, 95, 0},
	} {
		var chosen, heldOut recall
		for i, q := range questions(t, set.name) {
			for _, tool := range append(q.judged, q.tools...) {
				if !inCorpus[tool] {
					t.Errorf("question %d of %s is about %s, which is not in the corpus", i+1, set.name, tool)
				}
			}
			if set.tuning(i) {
				count(&chosen, q, t.Logf)
			} else {
				count(&heldOut, q, func(string, ...any) {})
			}
		}
		if chosen.asked > 0 {
			chosen.check(t, set.name+", for tuning", set.request, set.search)
		}
		if heldOut.asked > 0 {
			heldOut.check(t, set.name+", held out", set.request, set.search)
		}
	}
}

func every2nd(i int) bool { return i%2 == 0 }
