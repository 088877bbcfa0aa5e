// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"strings"
	"unicode"
)

// kindOfPiece is the kind of a piece of a query.
type kindOfPiece int

const (
	plain  kindOfPiece = iota
	quoted             // within quotation marks
	number             // it begins with a digit
	link               // a URL
)

// weightOf has the weights of the words of a piece: values are seldom in the definition of a tool.
var weightOf = [...]float32{plain: 1, quoted: 0.3, number: 0.3, link: 0.3}

// linkWord is a word of tools for a URL.
const linkWord = "url"

// quotes maps opening to closing quotation marks.
var quotes = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '`': '`'}

// pieces yields the parts of a query that are separated by spaces or quotation marks.
func pieces(query string, yield func(text string, kind kindOfPiece)) {
	start, end, in := -1, rune(0), false
	last := map[rune]int{} // of each closing mark, so that no mark is searched for twice
	closes := func(after int, mark rune) bool {
		if _, known := last[mark]; !known {
			last[mark] = strings.LastIndex(query, string(mark))
		}
		return last[mark] > after
	}
	piece := func(to int) {
		if start >= 0 {
			yield(query[start:to], kindOfText(query[start:to], in))
		}
		start = -1
	}
	for i, r := range query {
		closing, opens := quotes[r]
		switch {
		case in && r == end:
			piece(i)
			in = false
		case !in && opens && closes(i, closing):
			piece(i)
			in, end = true, closing
		case unicode.IsSpace(r):
			piece(i)
		case start < 0:
			start = i
		}
	}
	piece(len(query))
}

func kindOfText(text string, inQuotes bool) kindOfPiece {
	first := strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	switch {
	case inQuotes:
		return quoted
	case strings.Contains(text, "://"):
		return link
	case first >= 0 && text[first] >= '0' && text[first] <= '9':
		return number
	}
	return plain
}

// questions has the words with which people begin to ask for something that exists.
var questions = set("what which who whom whose when where how why is are was were do does did has have")

// asks reports whether a query asks for something that exists, so that a tool that changes
// something is less likely meant.
func asks(query string) bool {
	query = strings.TrimSpace(query)
	first, _, _ := strings.Cut(query, " ")
	lower := strings.ToLower(query)
	for _, begins := range []string{"show ", "tell me ", "tell us ", "give me ", "give us "} {
		if strings.HasPrefix(lower, begins) {
			return true
		}
	}
	return strings.HasSuffix(query, "?") || questions[strings.ToLower(strings.TrimSuffix(first, "'s"))]
}

// Verbs in the names of tools that change something, and of tools that only read.
var (
	writing = set("add apply approve archive assign attach broadcast cancel click close configure convert copy create delete deploy disable drag " +
		"drop duplicate edit enable execute fill hover import insert install kill link lock make mark merge move patch play post press promote " +
		"protect publish push put remove rename reset restart retry revert rotate run send set share start stop submit subscribe terminate transfer " +
		"type unarchive uninstall unlock unprotect unsubscribe update upgrade upload write")
	reading = set("analyze check count describe fetch find get info inspect list lookup preview query read retrieve search show status summary view")
)

// writers reports of each entry whether its name says that it changes something.
func (x *Index) writers() []bool {
	writers := make([]bool, len(x.names))
	mark := func(verbs map[string]bool, writes bool) {
		for verb := range verbs {
			term, known := x.terms[stem(verb)]
			if !known {
				continue
			}
			for _, p := range x.postings[term] {
				if p.inName > 0 {
					writers[p.entry] = writes
				}
			}
		}
	}
	mark(writing, true)
	mark(reading, false)
	return writers
}

// abbreviations maps abbreviations to their words.
var abbreviations = map[string]string{"mr": "merge request", "mrs": "merge request", "pr": "pull request", "prs": "pull request"}

// products maps words in the names of products to their synonyms.
var products = map[string][]string{
	"excel": {"xls", "xlsx"}, "ios": {"ipad", "iphone"}, "kubernetes": {"k8s", "kubectl"},
	"postgres": {"postgresql", "psql"}, "reddit": {"redditor", "subreddit"},
}

// A query may abbreviate the name of a product: "mongo" is mongodb. The limits are in bytes.
const (
	shortestOfName = 5
	missingOfName  = 2
)

// names reports whether a query has a word of a product's name, in one of its forms.
func names(said map[string]bool, word string) bool {
	if said[word] {
		return true
	}
	for _, other := range products[word] {
		if said[other] {
			return true
		}
	}
	for end := len(word) - 1; end >= max(shortestOfName, len(word)-missingOfName); end-- {
		if said[word[:end]] {
			return true
		}
	}
	return false
}
