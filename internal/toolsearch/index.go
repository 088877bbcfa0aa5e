// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"slices"
	"strings"
	"sync"
	"unicode"
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
	weights = [fields]float64{nameField: 1.7, titleField: 3.5, serverField: 2.1, summaryField: 0.75, descriptionField: 0.45, argumentField: 0.3, argumentTextField: 0.25}
	lengths = [fields]float64{nameField: 0.5, titleField: 0.9, serverField: 0.9, summaryField: 0.15, descriptionField: 0.6, argumentField: 0.25, argumentTextField: 0.5}
)

const (
	saturation = 0.8 // how much a second occurrence of a word adds: k1 of BM25
	synonym    = 0.5 // the share of a synonym of a word
	part       = 0.9 // the share of a word if the query has a part of it
	ofPhrase   = 0.6 // the share of a word of tools for a phrase
	ofName     = 0.5 // by how much an entry counts more if the query has its whole name
	ofNamed    = 2.5 // by how much a tool counts more if the query has the name of its server
	ofWriter   = 0.7 // the factor of a tool that changes something if the query is a question
	shortest   = 3   // characters of the shortest part of a word that finds it

	shortestMisspelled = 5 // bytes of the shortest word that finds words that are written like it

	looked      = 256 // how many words that begin with a part are looked at
	completions = 16  // how many of them, the shortest, are searched for
)

// Index finds entries by words. It never changes; its methods may be called concurrently.
type Index struct {
	names    []string         // of each entry, as spelled returns it: the name of its server and its own
	servers  []server         // in the order of their first entries
	of       []int32          // the server of each entry
	terms    map[string]int32 // from the stem of a word
	sorted   func() []string  // the words of all entries; made by the first search of a word that no entry has
	termOf   map[string]int32 // from a word
	postings [][]posting      // of each term
	writing  func() []bool    // reports of each entry whether it changes something; made by the first search
}

// server is a server that a query may name.
type server struct {
	words   []string // of its name
	spelled string   // its name, as spelled returns it
}

// noTerm is the term of a word that is not searched for.
const noTerm = -1

// posting is one entry that has a word, and the score of the word there.
type posting struct {
	entry  int32
	score  float32
	inName float32 // how much of the name the word is: 1 if the name is this word alone
}

// New returns an index of the entries.
func New(entries []Entry) *Index {
	all := countAll(entries)
	x := &Index{terms: all.termOfStem, termOf: all.termOf, postings: all.postings()}
	places := map[string]int32{}
	for i := range entries {
		place, known := places[entries[i].Server]
		if !known {
			place = int32(len(x.servers))
			places[entries[i].Server] = place
			x.servers = append(x.servers, newServer(entries[i].Server))
		}
		x.of = append(x.of, place)
		x.names = append(x.names, x.servers[place].spelled+spelled(entries[i].Name))
	}
	x.writing = sync.OnceValue(x.writers)
	x.sorted = sync.OnceValue(x.vocabulary)
	loadThesaurus() // so that the first search does not wait for it
	return x
}

// vocabulary returns the words of all entries, sorted.
func (x *Index) vocabulary() []string {
	vocabulary := make([]string, 0, len(x.termOf))
	for word, term := range x.termOf {
		if term != noTerm {
			vocabulary = append(vocabulary, word)
		}
	}
	slices.Sort(vocabulary)
	return vocabulary
}

// newServer returns the server with a name.
func newServer(name string) server {
	s := server{spelled: spelled(name)}
	words(name, func(word string) { s.words = append(s.words, word) })
	return s
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
