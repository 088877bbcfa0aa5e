// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"cmp"
	"slices"
	"strings"
)

// search is one search of an index.
type search struct {
	index  *Index
	words  []queryWord // to search for, each stem once
	places map[string]int
	stems  []string        // of all words of the query, in their order
	said   map[string]bool // all words of the query
	exact  map[int32]bool  // the terms of the words themselves
	scores []float32       // of each entry
	inName []float32       // of each entry: how much of its name has been found
	best   []posting       // of each entry: the best score of the word that is counted now
	found  []int32         // the entries in best
}

// queryWord is a word that is searched for.
type queryWord struct {
	word, stem string
	weight     float32
}

func (x *Index) newSearch(query string) *search {
	s := &search{
		index: x, places: map[string]int{}, said: map[string]bool{}, exact: map[int32]bool{},
		scores: make([]float32, len(x.names)), inName: make([]float32, len(x.names)), best: make([]posting, len(x.names)),
	}
	before := ""
	pieces(query, func(text string, kind kindOfPiece) {
		if kind == link {
			s.word(linkWord, stem(linkWord), synonym)
		}
		words(text, func(word string) {
			stemmed := stem(word)
			s.said[word] = true
			s.stems = append(s.stems, stemmed)
			for long := range strings.FieldsSeq(abbreviations[word]) {
				s.word(long, stem(long), 1)
			}
			s.word(word, stemmed, weightOf[kind])
			if _, known := x.termOf[before+word]; known && before != "" {
				s.said[before+word] = true
				s.word(before+word, stem(before+word), 1)
			}
			before = word
		})
	})
	return s
}

// word adds a word to search for. A word that is added twice has the greater weight.
func (s *search) word(word, stem string, weight float32) {
	if term, known := s.index.termOf[word]; known && term == noTerm {
		return
	}
	if at, known := s.places[stem]; known {
		s.words[at].weight = max(s.words[at].weight, weight)
		return
	}
	s.places[stem] = len(s.words)
	s.words = append(s.words, queryWord{word, stem, weight})
	if term, known := s.index.terms[stem]; known {
		s.exact[term] = true
	}
}

// count adds a word of the query to the scores of the entries that have it, or
// a synonym of it, or a word that begins like it.
func (s *search) count(q queryWord) {
	x := s.index
	term, known := x.terms[q.stem]
	if known {
		s.add(term, q.weight)
	}
	s.addSynonyms(loadThesaurus().synonyms[q.stem], synonym*q.weight)
	if !known && len(q.word) >= shortest {
		terms := x.beginningWith(q.word)
		if len(terms) == 0 {
			terms = x.misspelled(q.word)
		}
		for _, term := range terms {
			s.add(term, part*q.weight)
		}
	}
	s.sum()
}

// sum adds the scores in best to the scores of the entries, and clears best.
func (s *search) sum() {
	for _, entry := range s.found {
		one := &s.best[entry]
		s.scores[entry] += one.score
		s.inName[entry] += one.inName
		*one = posting{}
	}
	s.found = s.found[:0]
}

// addSynonyms adds terms that are not words of the query.
func (s *search) addSynonyms(stems []string, factor float32) {
	for _, stem := range stems {
		if term, known := s.index.terms[stem]; known && !s.exact[term] {
			s.add(term, factor)
		}
	}
}

func (s *search) add(term int32, factor float32) {
	for _, p := range s.index.postings[term] {
		one := &s.best[p.entry]
		if one.score == 0 {
			s.found = append(s.found, p.entry)
		}
		one.score = max(one.score, p.score*factor)
		one.inName = max(one.inName, p.inName*factor)
	}
}

// Search returns the entries that have words of the query, at most n, best first. An entry
// whose name is the query is the first.
func (x *Index) Search(query string, n int) []Found {
	s := x.newSearch(query)
	for _, word := range s.words {
		s.count(word)
	}
	for _, p := range loadThesaurus().phrasesIn(s.stems) {
		s.addSynonyms(p.synonyms, ofPhrase)
		s.sum()
	}
	return best(s.all(query), n)
}

// all returns the entries with a score, in the order of the index.
func (s *search) all(query string) []Found {
	x, asked := s.index, asks(query)
	named, exact, writers := x.named(s.said), spelled(query), x.writing()
	var found []Found
	for i := range s.scores {
		score := float64(s.scores[i]) * (1 + ofName*float64(s.inName[i]))
		if asked && writers[i] {
			score *= ofWriter
		}
		switch {
		case exact != "" && (exact == x.names[i] || exact == x.names[i][len(x.servers[x.of[i]].spelled):]):
			found = append(found, Found{i, score + exactly})
		case score > 0 && named[x.of[i]]:
			found = append(found, Found{i, score * ofNamed})
		case score > 0:
			found = append(found, Found{i, score})
		}
	}
	return found
}

// beginningWith returns the terms of the shortest words that begin with a word, and of the
// words that the word begins with.
func (x *Index) beginningWith(word string) (terms []int32) {
	sorted := x.sorted()
	at, _ := slices.BinarySearch(sorted, word)
	end := at
	for end < len(sorted) && end < at+looked && strings.HasPrefix(sorted[end], word) {
		end++
	}
	longer := slices.Clone(sorted[at:end])
	slices.SortStableFunc(longer, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, one := range longer[:min(len(longer), completions)] {
		terms = append(terms, x.termOf[one])
	}
	for end := len(word) - 1; end > shortest; end-- {
		if term, ok := x.termOf[word[:end]]; ok && term != noTerm {
			terms = append(terms, term)
		}
	}
	return terms
}

// misspelled returns the terms of the words that differ from a word by one mistake, after
// its first character. Short words have too many neighbours.
func (x *Index) misspelled(word string) (terms []int32) {
	if len(word) < shortestMisspelled {
		return nil
	}
	sorted := x.sorted()
	at, _ := slices.BinarySearch(sorted, word[:1])
	for ; at < len(sorted) && sorted[at][0] == word[0] && len(terms) < completions; at++ {
		if oneMistake(word, sorted[at]) {
			terms = append(terms, x.termOf[sorted[at]])
		}
	}
	return terms
}

// oneMistake reports whether a becomes b if one byte is left out, added or replaced, or two
// that follow each other are swapped.
func oneMistake(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	same := 0
	for same < len(a) && a[same] == b[same] {
		same++
	}
	a, b = a[same:], b[same:]
	switch {
	case len(a) < len(b):
		return a == b[1:]
	case a == "":
		return true
	}
	return a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
}

// named reports of each server whether a query has all words of its name.
func (x *Index) named(said map[string]bool) []bool {
	named := make([]bool, len(x.servers))
	for i, s := range x.servers {
		named[i] = len(s.words) > 0 && !slices.ContainsFunc(s.words, func(word string) bool { return !names(said, word) })
	}
	return named
}

// best returns the n best, best first. Of two that are equal the first in the list is better.
func best(found []Found, n int) []Found {
	better := func(a, b Found) int { return cmp.Or(cmp.Compare(b.Score, a.Score), a.Entry-b.Entry) }
	n = max(0, min(n, len(found)))
	top := found[:0:0]
	for _, one := range found {
		switch {
		case len(top) < n:
			top = append(top, one)
		case n == 0 || better(one, top[n-1]) > 0:
			continue
		default:
			top[n-1] = one
		}
		at, _ := slices.BinarySearchFunc(top[:len(top)-1], one, better)
		copy(top[at+1:], top[at:])
		top[at] = one
	}
	return top
}

// exactly is the score of a name that is the query, which no sum of words reaches.
const exactly = 1e6
