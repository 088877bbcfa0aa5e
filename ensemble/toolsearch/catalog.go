// SPDX-License-Identifier: Apache-2.0

package toolsearch

import "github.com/consort-go/consort/ensemble"

// Catalog finds the tools of an [ensemble.Catalog]. It never changes; its methods may be
// called concurrently.
type Catalog struct {
	tools []*ensemble.Tool
	index *Index
}

// Match is a tool that has a word of a query.
type Match struct {
	Tool *ensemble.Tool
	// Score is greater than 0. Scores of one query can be compared, and no others.
	Score float64
}

// Of returns the tools of a catalog. It makes the index once for each catalog.
func Of(catalog *ensemble.Catalog) *Catalog {
	type key struct{}
	return catalog.Derive(key{}, func() any { return newCatalog(catalog.Tools()) }).(*Catalog)
}

func newCatalog(tools []*ensemble.Tool) *Catalog {
	entries := make([]Entry, len(tools))
	for i, tool := range tools {
		d := tool.Definition()
		entries[i] = Entry{Name: d.Name, Title: d.Title, Description: d.Description, Schema: d.InputSchema, Server: tool.Ensemble().Name()}
	}
	return &Catalog{tools, New(entries)}
}

// Search returns the tools that have words of the query, at most n, best first.
func (c *Catalog) Search(query string, n int) []Match {
	var matches []Match
	for _, found := range c.index.Search(query, n) {
		matches = append(matches, Match{c.tools[found.Entry], found.Score})
	}
	return matches
}
