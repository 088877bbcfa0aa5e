// SPDX-License-Identifier: Apache-2.0

// Package dedupe removes duplicate information from tool results. Tools give
// their answer both as text and as structured content, in different shapes: the
// text can be the JSON of the structured content (MCP 2025-11-25, server/tools,
// Structured Content), or the value of one of its members.
package dedupe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/consort-go/consort/canister"
)

const (
	// longText is the minimum length in bytes of texts that stay as they are, with a
	// reference in the structured content: as a JSON string they would be harder to
	// read.
	longText = 256
	// maxDepth limits how deep in structured content values are compared with the
	// JSON of texts.
	maxDepth = 3
)

// Contents returns contents without duplicates. It removes a text that is a
// string, or the JSON of a value, in a structured content, and a structured
// content whose JSON is a text. A long text stays, and the structured content
// refers to it. No information is lost. The result may be the slice contents,
// which is not changed.
func Contents(contents []canister.Content) []canister.Content {
	for i, c := range contents {
		if structured, ok := c.(canister.StructuredContent); ok && len(contents) > 1 {
			contents = without(contents, i, structured)
			break // there is at most one
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
				continue // do not also compare it with the strings
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
	texts map[string]int // text to its position among the contents, from 1
	count int            // number of texts that stay

	found map[string]bool // texts that are strings in raw
	spans []span          // positions of the long ones in raw
}

// span is the position of a string in the JSON and the number of the equal text.
type span struct{ begin, end, text int }

// walk calls see for each string value in a JSON text, with the positions of its
// beginning, including the separators before it, and its end. It reports whether
// an object has a duplicate member.
func walk(text []byte, see func(text string, begin, end int)) (twice bool) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	type level struct {
		names map[string]bool // the member names seen in an object; nil in an array
		named bool            // the next token is the value of a member
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

// number drops the short texts that were found, and numbers the texts that stay.
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

// compare compares one string of the JSON with the texts.
func (f *form) compare(text string, begin, end int) {
	n := f.texts[text]
	if n == 0 {
		return
	}
	f.found[text] = true
	if len(text) >= longText {
		begin += bytes.IndexByte(f.raw[begin:end], '"') // skip a comma, a colon and spaces
		f.spans = append(f.spans, span{begin, end, n})
	}
}

// replaced returns the JSON with each long text replaced by a reference.
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

// collect adds the canonical forms of a value and of the values in it, down to
// depth.
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

// canonical returns a text that is the same for equal values.
func canonical(value any) string {
	text, _ := json.Marshal(value) // value was decoded from JSON
	return string(text)
}

var errNoValue = errors.New("not JSON, or an object with a repeated member")

// decode parses one JSON text and keeps numbers as they are written. A duplicate
// member is an error, because such a text contains more than its value.
func decode(text []byte) (value any, err error) {
	if !json.Valid(text) || walk(text, func(string, int, int) {}) {
		return nil, errNoValue
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}
