// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// farthest is the number of other words that may precede a word of a phrase.
const farthest = 5

//go:embed thesaurus.txt
var thesaurusText string

// thesaurus maps words and phrases of people to words of tools. All words are stems.
type thesaurus struct {
	synonyms map[string][]string
	phrases  map[string][]*phrase // by their first words
}

// phrase is a sequence of words with its synonyms.
type phrase struct {
	words, synonyms []string
}

// loadThesaurus returns the thesaurus. The first call parses it.
var loadThesaurus = sync.OnceValue(func() *thesaurus {
	t := &thesaurus{synonyms: map[string][]string{}, phrases: map[string][]*phrase{}}
	stems := map[string]string{}
	stemOf := func(word string) string {
		if _, known := stems[word]; !known {
			stems[word] = stem(word)
		}
		return stems[word]
	}
	for line := range strings.Lines(thesaurusText) {
		word, said, directed := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case strings.HasPrefix(line, "#"):
		case directed:
			for text := range strings.SplitSeq(said, ", ") {
				t.add(strings.Fields(text), stemOf(word), stemOf)
			}
		default:
			group := strings.Fields(line)
			for _, one := range group {
				for _, other := range group {
					t.add([]string{one}, stemOf(other), stemOf)
				}
			}
		}
	}
	return t
})

// add adds a word of tools as a synonym of a word or a phrase. A word of the set empty, such
// as "who", is a phrase.
func (t *thesaurus) add(said []string, word string, stemOf func(string) string) {
	first, single := stemOf(said[0]), len(said) == 1 && !empty[said[0]]
	if single && first != word && !slices.Contains(t.synonyms[first], word) {
		t.synonyms[first] = append(t.synonyms[first], word)
	}
	if single {
		return
	}
	words := make([]string, len(said))
	for i := range said {
		words[i] = stemOf(said[i])
	}
	same := func(p *phrase) bool { return slices.Equal(p.words, words) }
	if at := slices.IndexFunc(t.phrases[first], same); at >= 0 {
		p := t.phrases[first][at]
		p.synonyms = append(p.synonyms, word)
		return
	}
	t.phrases[first] = append(t.phrases[first], &phrase{words, []string{word}})
}

// phrasesIn returns the phrases of a query, each once.
func (t *thesaurus) phrasesIn(stems []string) (found []*phrase) {
	known := map[*phrase]bool{}
	for i, first := range stems {
		for _, p := range t.phrases[first] {
			if !known[p] && follow(stems[i+1:], p.words[1:]) {
				known[p] = true
				found = append(found, p)
			}
		}
	}
	return found
}

// follow reports whether a text has words in their order, with at most farthest others before each.
func follow(text, words []string) bool {
	for _, word := range words {
		at := slices.Index(text[:min(len(text), farthest+1)], word)
		if at < 0 {
			return false
		}
		text = text[at+1:]
	}
	return true
}
