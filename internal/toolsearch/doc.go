// SPDX-License-Identifier: Apache-2.0

// Package toolsearch finds tools by words, without a network and without a model.
//
// An [Index] ranks definitions with BM25F (Robertson and Zaragoza, "The Probabilistic
// Relevance Framework: BM25 and Beyond", 2009, section 3.6): a word counts more the fewer
// tools have it, and more in a name than in a description. Words are compared by their
// stems, so "deleting files" finds delete_file, and identifiers are split, so "pull
// request" finds createPullRequest. A thesaurus maps phrases of people to words of
// tools, so "get rid of it" finds delete_file. A part of a word finds it if no tool has that
// part as a word: "repo" finds "repository".
//
//	index := toolsearch.New(entries)
//	for _, found := range index.Search("send a message to a channel", 5) {
//		fmt.Println(entries[found.Entry].Name, found.Score)
//	}
package toolsearch
