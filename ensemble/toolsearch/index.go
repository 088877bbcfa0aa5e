// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
)

// Entry is what an [Index] knows of a tool, or of anything else that has a name and a
// description, such as a resource or a prompt. Each field may be empty.
type Entry struct {
	// Name is the name at its source, such as read_text_file.
	Name string
	// Title is a name for people.
	Title string
	// Description says what it does.
	Description string
	// Schema is the JSON Schema of the arguments: their names and descriptions are
	// searched, at any depth. What is not JSON is not searched.
	Schema []byte
	// Server is what is known of the server: its name, and its title.
	Server string
}

// Found is an entry that has a word of a query.
type Found struct {
	// Entry is the place of the entry in the list that the index was made of.
	Entry int
	// Score is greater than 0. Scores of one query can be compared, and no others.
	Score float64
}

// The fields of an entry.
const (
	nameField = iota
	titleField
	serverField
	summaryField // the first sentence of the description
	descriptionField
	argumentField     // the name of an argument
	argumentTextField // its title, its description and the values it may have
	fields
)

// What a word in a field counts, and how much the length of the field matters: a word is
// telling in a short name, and less so in a long description.
var (
	weights = [fields]float64{nameField: 1.7, titleField: 3.5, serverField: 3.5, summaryField: 0.75, descriptionField: 0.35, argumentField: 0.5, argumentTextField: 0.25}
	lengths = [fields]float64{nameField: 0.3, titleField: 0.9, serverField: 0.55, summaryField: 0.25, descriptionField: 0.6, argumentField: 0.25, argumentTextField: 0.5}
)

const (
	saturation = 0.8 // how much a second occurrence of a word adds: k1 of BM25
	synonym    = 0.5 // what a synonym of a word counts
	part       = 0.9 // what a word counts of which the query has a part
	ofNamed    = 2.5 // by how much a tool counts more if the query has the name of its server
	shortest   = 3   // characters of the shortest part of a word that finds it

	looked      = 256 // how many words that begin with a part are looked at
	completions = 16  // how many of them, the shortest, are searched for
)

// Index finds entries by words. It never changes; its methods may be called concurrently.
type Index struct {
	names    [][2]string      // of each entry, as spelled returns them: its name, and the name with its server
	servers  []server         // in the order of their first entries
	of       []int32          // the server of each entry
	terms    map[string]int32 // from the stem of a word
	sorted   []string         // the words of all entries
	termOf   map[string]int32 // from a word
	postings [][]posting      // of each term
}

// server is a server that a query may name.
type server struct {
	words []string // of its name; sorted
}

// noTerm is the term of a word that is not searched for.
const noTerm = -1

// posting is one entry that has a word, and what the word counts there.
type posting struct {
	entry int32
	score float32
}

// New returns an index of the entries.
func New(entries []Entry) *Index {
	x := &Index{terms: make(map[string]int32, 4*len(entries)), termOf: make(map[string]int32, 4*len(entries))}
	for word := range empty {
		x.termOf[word] = noTerm
	}
	c := counter{index: x, termsOf: make(map[string][]int32, 4*len(entries)), counted: make([]counted, 0, 32*len(entries))}
	places := map[string]int32{}
	for i := range entries {
		place, known := places[entries[i].Server]
		if !known {
			place = int32(len(x.servers))
			places[entries[i].Server] = place
			x.servers = append(x.servers, newServer(entries[i].Server))
		}
		x.of = append(x.of, place)
		x.names = append(x.names, [2]string{spelled(entries[i].Name), spelled(entries[i].Server + " " + entries[i].Name)})
		c.add(&entries[i])
	}
	c.finish()
	x.sorted = make([]string, 0, len(x.termOf))
	for word, term := range x.termOf {
		if term != noTerm {
			x.sorted = append(x.sorted, word)
		}
	}
	slices.Sort(x.sorted)
	return x
}

// Search returns the entries that have words of the query, at most n, best first. An entry
// whose name is the query is the first.
func (x *Index) Search(query string, n int) []Found {
	scores := make([]float32, len(x.names))
	asked, said := map[int32]bool{}, map[string]bool{}
	words(query, func(word string) {
		said[word] = true
		if term, known := x.termOf[word]; !known || term != noTerm {
			x.count(word, scores, asked)
		}
	})
	named := x.named(said)
	exact := spelled(query)
	var found []Found
	for i, score := range scores {
		switch {
		case exact != "" && (exact == x.names[i][0] || exact == x.names[i][1]):
			found = append(found, Found{i, float64(score) + exactly})
		case score > 0 && named[x.of[i]]:
			found = append(found, Found{i, float64(score) * ofNamed})
		case score > 0:
			found = append(found, Found{i, float64(score)})
		}
	}
	return best(found, n)
}

// newServer returns the server with a name.
func newServer(name string) server {
	s := server{}
	words(name, func(word string) { s.words = append(s.words, word) })
	return s
}

// named reports of each server whether a query has all words of its name.
func (x *Index) named(said map[string]bool) []bool {
	named := make([]bool, len(x.servers))
	for i, s := range x.servers {
		named[i] = len(s.words) > 0 && !slices.ContainsFunc(s.words, func(word string) bool { return !said[word] })
	}
	return named
}

// spelled returns the letters and digits of a text in lower case: list_files, listFiles and
// "List files" are equal.
func spelled(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
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

// count adds what a word of the query counts to the scores of the entries that have it, or
// a synonym of it, or a word that begins like it. Asked are the words that were counted.
func (x *Index) count(word string, scores []float32, asked map[int32]bool) {
	stemmed := stem(word)
	term, known := x.terms[stemmed]
	if known {
		x.addOnce(term, 1, scores, asked)
	}
	for _, other := range synonyms[stemmed] {
		if term, ok := x.terms[other]; ok {
			x.addOnce(term, synonym, scores, asked)
		}
	}
	if known || len(word) < shortest {
		return
	}
	for _, term := range x.beginningWith(word) {
		x.addOnce(term, part, scores, asked)
	}
}

func (x *Index) addOnce(term int32, factor float32, scores []float32, asked map[int32]bool) {
	if asked[term] {
		return
	}
	asked[term] = true
	for _, p := range x.postings[term] {
		scores[p.entry] += p.score * factor
	}
}

// beginningWith returns the terms of the shortest words that begin with a word, and of the
// words that the word begins with.
func (x *Index) beginningWith(word string) (terms []int32) {
	at, _ := slices.BinarySearch(x.sorted, word)
	end := at
	for end < len(x.sorted) && end < at+looked && strings.HasPrefix(x.sorted[end], word) {
		end++
	}
	longer := slices.Clone(x.sorted[at:end])
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

// counter counts the words of entries.
type counter struct {
	index   *Index
	counted []counted          // of all entries, one after the other
	ends    []int              // where in counted the words of each entry end
	length  [][fields]int32    // the number of words in each field of each entry
	last    []int32            // of each term: where in counted it was seen last, plus one
	termsOf map[string][]int32 // of each run
}

// counted is how often the fields of an entry have a term.
type counted struct {
	term  int32
	times [fields]uint16
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
	c.schema(gjson.ParseBytes(e.Schema), begin, 0)
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
		terms, known := c.termsOf[run]
		if !known {
			words(run, func(word string) { terms = append(terms, c.term(word)) })
			c.termsOf[run] = terms
		}
		for _, term := range terms {
			c.count(field, term, begin)
		}
	})
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
	if times := &c.counted[c.last[term]-1].times[field]; *times < math.MaxUint16 {
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

// deepest is how deep in a schema arguments are looked for.
const deepest = 32

// schema counts the names and the texts of arguments.
func (c *counter) schema(schema gjson.Result, begin, depth int) {
	if depth == deepest {
		return
	}
	schema.ForEach(func(key, value gjson.Result) bool {
		switch {
		case value.IsObject() && key.Str == "properties":
			value.ForEach(func(name, of gjson.Result) bool {
				c.text(argumentField, name.Str, begin)
				c.schema(of, begin, depth+1)
				return true
			})
		case value.IsObject(), value.IsArray() && key.Str != "enum" && key.Str != "required" && key.Str != "examples":
			c.schema(value, begin, depth+1)
		case value.IsArray() && key.Str == "enum":
			value.ForEach(func(_, one gjson.Result) bool {
				c.text(argumentTextField, one.Str, begin)
				return true
			})
		case key.Str == "description", key.Str == "title":
			c.text(argumentTextField, value.Str, begin)
		}
		return true
	})
}

// finish computes what each word counts in each entry.
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
		for i := range c.counted[begin:end] {
			one := &c.counted[begin+i]
			often := c.frequency(one, entry, &average)
			score := rare[one.term] * often * (saturation + 1) / (often + saturation)
			c.index.postings[one.term] = append(c.index.postings[one.term], posting{int32(entry), float32(score)})
		}
		begin = end
	}
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
