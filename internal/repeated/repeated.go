// SPDX-License-Identifier: Apache-2.0

// Package repeated leaves out of the result of a tool what it says twice. Tools
// give their answer as text and as structured content too, in shapes that differ:
// the JSON of the one is the text of the other (MCP 2025-11-25, server/tools,
// Structured Content), or the text is the value of a member.
package repeated

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/consort-go/consort/canister"
)

const (
	// longText is from how many bytes on a text stays as it is and the structured
	// content refers to it: as a JSON string it would be harder to read.
	longText = 256
	// maxDepth bounds how deep in structured content a value is looked for that a
	// text is the JSON of.
	maxDepth = 3
)

// Without returns contents with each thing said once. A text is left out if it is a
// string, or the JSON of a value, in a structured content; a structured content if
// a text is its JSON. Nothing that only one of them says is lost. The slice may be
// the one that was given, which is not changed.
func Without(contents []canister.Content) []canister.Content {
	for i, c := range contents {
		if structured, ok := c.(canister.StructuredContent); ok && len(contents) > 1 {
			contents = without(contents, i, structured)
			break // there is one at most
		}
	}
	return contents
}

func without(contents []canister.Content, at int, structured canister.StructuredContent) []canister.Content {
	value, err := decode(structured.JSON)
	if err != nil {
		return contents
	}
	whole, inner := canonical(value), map[string]bool{}
	collect(inner, value, maxDepth)
	f := &form{raw: structured.JSON, texts: map[string]int{}, found: map[string]bool{}}
	drop := map[int]bool{}
	for i, c := range contents {
		text, ok := c.(canister.TextContent)
		if !ok || text.Text == "" {
			continue
		}
		if value, err := decode([]byte(text.Text)); err == nil {
			switch form := canonical(value); {
			case form == whole:
				return slices.Delete(slices.Clone(contents), at, at+1)
			case inner[form]:
				drop[i] = true
				continue // a string that is the same keeps its words
			}
		}
		f.texts[text.Text] = i + 1
	}
	walk(f.raw, f.compare)
	f.number(contents, drop)
	out := make([]canister.Content, 0, len(contents))
	for i, c := range contents {
		switch {
		case i == at:
			structured.JSON = f.replaced()
			out = append(out, structured)
		case drop[i]:
		default:
			out = append(out, c)
		}
	}
	return out
}

// form is a structured content whose strings are compared with texts.
type form struct {
	raw   json.RawMessage
	texts map[string]int // the place of a text among the contents, from 1 up
	count int            // of the texts that stay

	found map[string]bool // texts that are strings in it
	spans []span          // of those that are long
}

// span is where a string stands in the JSON, and which text it is.
type span struct{ begin, end, text int }

// walk calls see with each string of a JSON text that is a value, and with where it
// begins and ends, separators before it included. It reports whether an object has
// a member twice.
func walk(text []byte, see func(text string, begin, end int)) (twice bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	type level struct {
		names map[string]bool // of the members of an object so far; nil in an array
		named bool            // the value of a member comes next
	}
	var levels []level
	for {
		begin := int(decoder.InputOffset())
		token, err := decoder.Token()
		if err != nil {
			return twice
		}
		delimiter, _ := token.(json.Delim)
		if delimiter == '}' || delimiter == ']' {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels) - 1; n >= 0 && levels[n].names != nil {
			if levels[n].named = !levels[n].named; levels[n].named {
				twice = twice || levels[n].names[token.(string)]
				levels[n].names[token.(string)] = true
				continue
			}
		}
		switch text, ok := token.(string); {
		case delimiter == '{':
			levels = append(levels, level{names: map[string]bool{}})
		case delimiter == '[':
			levels = append(levels, level{})
		case ok:
			see(text, begin, int(decoder.InputOffset()))
		}
	}
}

// number drops the short texts that were found, and numbers those that stay.
func (f *form) number(contents []canister.Content, drop map[int]bool) {
	numbers := map[int]int{}
	for i, c := range contents {
		text, ok := c.(canister.TextContent)
		if !ok || text.Text == "" {
			continue
		}
		if drop[i] = drop[i] || f.found[text.Text] && len(text.Text) < longText; !drop[i] {
			f.count++
			numbers[i+1] = f.count
		}
	}
	for i := range f.spans {
		f.spans[i].text = numbers[f.spans[i].text]
	}
}

// compare looks at a string of the JSON.
func (f *form) compare(text string, begin, end int) {
	n := f.texts[text]
	if n == 0 {
		return
	}
	f.found[text] = true
	if len(text) >= longText {
		begin += bytes.IndexByte(f.raw[begin:end], '"') // behind a comma, a colon and spaces
		f.spans = append(f.spans, span{begin, end, n})
	}
}

// replaced returns the JSON with a reference in place of each long text.
func (f *form) replaced() json.RawMessage {
	if len(f.spans) == 0 {
		return f.raw
	}
	var out []byte
	done := 0
	for _, s := range f.spans {
		out = append(out, f.raw[done:s.begin]...)
		reference := "[the text of this result]"
		if f.count > 1 {
			reference = fmt.Sprintf("[text %d of this result]", s.text)
		}
		out = append(append(append(out, '"'), reference...), '"')
		done = s.end
	}
	return append(out, f.raw[done:]...)
}

// collect adds the forms of a value, and of those in it down to a depth.
func collect(forms map[string]bool, value any, depth int) {
	forms[canonical(value)] = true
	if depth == 0 {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			collect(forms, member, depth-1)
		}
	case []any:
		for _, element := range value {
			collect(forms, element, depth-1)
		}
	}
}

// canonical is a text that is the same whenever a value is.
func canonical(value any) string {
	text, _ := json.Marshal(value) // which was JSON before
	return string(text)
}

var errNoValue = errors.New("no JSON, or an object that has a member twice")

// decode parses one JSON text, keeping numbers as they are written. A text in which
// an object has a member twice says more than its value, and is an error.
func decode(text []byte) (value any, err error) {
	if !json.Valid(text) || walk(text, func(string, int, int) {}) {
		return nil, errNoValue
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}
