// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"math"
	"runtime"
	"strings"
	"sync"
)

// fewest is how many entries one processor counts at least.
const fewest = 256

// counter counts the words of entries that follow each other. It numbers their terms in the
// order in which it sees them.
type counter struct {
	counted    []counted       // of all entries, one after the other
	ends       []int           // where in counted the words of each entry end
	length     [][fields]int32 // the number of words in each field of each entry
	last       []int32         // of each term: where in counted it was seen last, plus one
	stems      []string        // of each term
	termOfStem map[string]int32
	termOf     map[string]int32 // from a word
	read       []int32          // the terms of the text that is read now
	kept       []int32          // the terms of other texts, one after the other
	runs       map[string]span  // where in kept the terms of a run are, unless it is one word
	arguments  map[string]span  // where in kept the terms of the name or a text of an argument are
}

// span is a part of a list.
type span struct{ begin, end int32 }

// counted is how often the fields of an entry have a term.
type counted struct {
	term  int32
	times [fields]uint8 // 255 stands for more
}

// newCounter counts the words of entries.
func newCounter(entries []Entry) *counter {
	n := len(entries)
	c := &counter{
		counted: make([]counted, 0, 64*n), ends: make([]int, 0, n), length: make([][fields]int32, 0, n),
		termOfStem: make(map[string]int32, 3*n), termOf: make(map[string]int32, 4*n),
		runs: make(map[string]span, 2*n), arguments: make(map[string]span, 4*n),
	}
	for word := range empty {
		c.termOf[word] = noTerm
	}
	for i := range entries {
		c.add(&entries[i])
	}
	return c
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
	for _, term := range c.terms(text) {
		c.count(field, term, begin)
	}
}

// argument is text for the names and texts of arguments. A server has many that are equal.
func (c *counter) argument(field int, text string, begin int) {
	at, known := c.arguments[text]
	if !known {
		at = c.keep(c.terms(text))
		c.arguments[text] = at
	}
	for _, term := range c.kept[at.begin:at.end] {
		c.count(field, term, begin)
	}
}

func (c *counter) keep(terms []int32) span {
	begin := len(c.kept)
	c.kept = append(c.kept, terms...)
	return span{int32(begin), int32(len(c.kept))}
}

// terms returns the terms of a text. They are valid until the next call.
func (c *counter) terms(text string) []int32 {
	c.read = c.read[:0]
	runs(text, func(run string, plain bool) {
		if plain {
			c.read = append(c.read, c.term(run))
			return
		}
		at, known := c.runs[run]
		if known {
			c.read = append(c.read, c.kept[at.begin:at.end]...)
			return
		}
		begin := len(c.read)
		words(run, func(word string) { c.read = append(c.read, c.term(word)) })
		c.runs[run] = c.keep(c.read[begin:])
	})
	return c.read
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
	if term, known := c.termOf[word]; known {
		return term
	}
	word = strings.Clone(word) // a map with a part of a text would keep all of it
	term := c.numberOf(stem(word))
	c.termOf[word] = term
	return term
}

// numberOf returns the term of a stem.
func (c *counter) numberOf(stem string) int32 {
	term, known := c.termOfStem[stem]
	if !known {
		term = int32(len(c.stems))
		c.termOfStem[stem] = term
		c.stems = append(c.stems, stem)
		c.last = append(c.last, 0)
	}
	return term
}

// join adds the counts of the entries that follow those of c. The terms have the numbers
// that they would have if c had counted all.
func (c *counter) join(next *counter) {
	terms := make([]int32, len(next.stems))
	for i, stem := range next.stems {
		terms[i] = c.numberOf(stem)
	}
	for word, term := range next.termOf {
		if term != noTerm {
			c.termOf[word] = terms[term]
		}
	}
	for i := range next.counted {
		next.counted[i].term = terms[next.counted[i].term]
	}
	for _, end := range next.ends {
		c.ends = append(c.ends, len(c.counted)+end)
	}
	c.counted = append(c.counted, next.counted...)
	c.length = append(c.length, next.length...)
}

// countAll counts the words of entries on all processors. The result does not depend on
// their number.
func countAll(entries []Entry) *counter {
	n := max(1, min(runtime.GOMAXPROCS(0), len(entries)/fewest))
	parts := make([]*counter, n)
	var counting sync.WaitGroup
	for i := range parts {
		counting.Go(func() { parts[i] = newCounter(entries[i*len(entries)/n : (i+1)*len(entries)/n]) })
	}
	counting.Wait()
	for _, next := range parts[1:] {
		parts[0].join(next)
	}
	return parts[0]
}
