// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"math"
	"strings"
)

// counter counts the words of entries.
type counter struct {
	index         *Index
	counted       []counted          // of all entries, one after the other
	ends          []int              // where in counted the words of each entry end
	length        [][fields]int32    // the number of words in each field of each entry
	last          []int32            // of each term: where in counted it was seen last, plus one
	termsOf       map[string][]int32 // of each run
	argumentTerms map[string][]int32 // of each name and text of an argument
}

// counted is how often the fields of an entry have a term.
type counted struct {
	term  int32
	times [fields]uint8 // 255 stands for more
}

// newCounter returns a counter for n entries.
func newCounter(x *Index, n int) *counter {
	return &counter{
		index: x, counted: make([]counted, 0, 64*n), length: make([][fields]int32, 0, n),
		termsOf: make(map[string][]int32, 2*n), argumentTerms: make(map[string][]int32, 2*n),
	}
}

func (c *counter) add(e *Entry) {
	begin := len(c.counted)
	c.length = append(c.length, [fields]int32{})
	c.text(nameField, e.Name, begin)
	c.text(titleField, e.Title, begin)
	c.text(serverField, e.Server, begin)
	summary, rest := firstSentence(e.Description)
	c.text(summaryField, summary, begin)
	c.text(descriptionField, rest, begin)
	schema := schemaScanner{counter: c, begin: begin, text: string(e.Schema)}
	schema.value(schemaRole, 0)
	c.ends = append(c.ends, len(c.counted))
}

// firstSentence returns the first sentence of a description, or its first line.
func firstSentence(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	for i, c := range text {
		if c == '\n' || (c == '.' || c == ':' || c == ';') && strings.HasPrefix(text[i+1:], " ") && i > 10 {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// text counts the words of a field of the entry whose words begin in counted at begin.
func (c *counter) text(field int, text string, begin int) {
	runs(text, func(run string) {
		for _, term := range c.termsIn(run) {
			c.count(field, term, begin)
		}
	})
}

// argument is text for the names and texts of arguments. A server has many that are equal.
func (c *counter) argument(field int, text string, begin int) {
	terms, known := c.argumentTerms[text]
	if !known {
		runs(text, func(run string) { terms = append(terms, c.termsIn(run)...) })
		c.argumentTerms[text] = terms
	}
	for _, term := range terms {
		c.count(field, term, begin)
	}
}

// termsIn returns the terms of a run.
func (c *counter) termsIn(run string) []int32 {
	terms, known := c.termsOf[run]
	if !known {
		words(run, func(word string) { terms = append(terms, c.term(word)) })
		c.termsOf[run] = terms
	}
	return terms
}

// count counts a term of a field.
func (c *counter) count(field int, term int32, begin int) {
	if term == noTerm {
		return
	}
	if int(c.last[term]) <= begin {
		c.counted = append(c.counted, counted{term: term})
		c.last[term] = int32(len(c.counted))
	}
	if times := &c.counted[c.last[term]-1].times[field]; *times < math.MaxUint8 {
		*times++
	}
	c.length[len(c.length)-1][field]++
}

// term returns the term of a word.
func (c *counter) term(word string) int32 {
	if term, known := c.index.termOf[word]; known {
		return term
	}
	return c.newTerm(word)
}

// newTerm returns the number of the term of a word that is seen for the first time.
func (c *counter) newTerm(word string) int32 {
	x := c.index
	stemmed := stem(word)
	term, ok := x.terms[stemmed]
	if !ok {
		term = int32(len(c.last))
		x.terms[stemmed] = term
		c.last = append(c.last, 0)
	}
	x.termOf[word] = term
	return term
}

// finish computes the scores of the words in the entries.
func (c *counter) finish() {
	average := c.averages()
	entries := make([]int, len(c.last)) // that have each term
	for _, one := range c.counted {
		entries[one.term]++
	}
	c.index.postings = make([][]posting, len(entries))
	all := make([]posting, len(c.counted))
	rare := make([]float64, len(entries))
	for term, n := range entries {
		c.index.postings[term], all = all[:0:n], all[n:]
		rare[term] = math.Log(1 + (float64(len(c.ends)-n)+0.5)/(float64(n)+0.5))
	}
	begin := 0
	for entry, end := range c.ends {
		name := c.nameWeight(c.counted[begin:end], rare)
		for i := range c.counted[begin:end] {
			one := &c.counted[begin+i]
			often := c.frequency(one, entry, &average)
			score := rare[one.term] * often * (saturation + 1) / (often + saturation)
			c.index.postings[one.term] = append(c.index.postings[one.term], posting{int32(entry), float32(score), inName(one, rare, name)})
		}
		begin = end
	}
}

// nameWeight returns how rare the words of a name are, together.
func (c *counter) nameWeight(words []counted, rare []float64) (sum float64) {
	for i := range words {
		if words[i].times[nameField] > 0 && words[i].times[serverField] == 0 {
			sum += rare[words[i].term]
		}
	}
	return sum
}

func inName(one *counted, rare []float64, name float64) float32 {
	if one.times[nameField] == 0 || one.times[serverField] > 0 || name == 0 {
		return 0
	}
	return float32(rare[one.term] / name)
}

// averages returns the average number of words in each field.
func (c *counter) averages() (average [fields]float64) {
	for i := range c.length {
		for field, n := range c.length[i] {
			average[field] += float64(n) / float64(len(c.length))
		}
	}
	return average
}

// frequency returns how often an entry has a term, by the weights of its fields.
func (c *counter) frequency(one *counted, entry int, average *[fields]float64) (often float64) {
	for field, times := range one.times {
		if times > 0 {
			often += weights[field] * float64(times) / (1 - lengths[field] + lengths[field]*float64(c.length[entry][field])/average[field])
		}
	}
	return often
}
