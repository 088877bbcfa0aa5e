// SPDX-License-Identifier: Apache-2.0

package toolsearch

import (
	"strings"

	"github.com/tidwall/gjson"
)

// deepest is how deep in a schema arguments are looked for.
const deepest = 32

// schemaScanner counts the names and the texts of the arguments of a schema in one pass. It
// does not check the JSON, and leaves out the parts that it cannot read.
type schemaScanner struct {
	counter *counter
	begin   int    // where in counted the words of the entry begin
	text    string // of the schema
	at      int
}

// role is the meaning of a value in a schema.
type role int

const (
	unread        role = iota // its words are not counted
	schemaRole                // a schema, or a list of schemas
	propertiesOf              // an object with the arguments and their schemas
	argumentTexts             // a text, or a list of values
)

// roleOf returns the meaning of the value of a key of a schema.
func roleOf(key string) role {
	switch key {
	case "properties":
		return propertiesOf
	case "enum", "description", "title":
		return argumentTexts
	case "required", "examples":
		return unread
	}
	return schemaRole
}

// value reads a value.
func (s *schemaScanner) value(as role, depth int) {
	switch c := s.next(); {
	case c == '"':
		if text := s.quoted(); as == argumentTexts {
			s.counter.argument(argumentTextField, text, s.begin)
		}
	case (c == '{' || c == '[') && (as == unread || depth == deepest):
		s.skip()
	case c == '{':
		s.object(as, depth+1)
	case c == '[':
		s.array(as, depth+1)
	default:
		s.scalar()
	}
}

// object reads an object: the arguments and their schemas, or else a schema.
func (s *schemaScanner) object(as role, depth int) {
	for s.at++; s.next() == '"'; {
		key := s.quoted()
		if s.next() != ':' {
			return
		}
		s.at++
		if as == propertiesOf {
			s.counter.argument(argumentField, key, s.begin)
			s.value(schemaRole, depth)
		} else {
			s.value(roleOf(key), depth)
		}
		if s.next() != ',' {
			break
		}
		s.at++
	}
	s.at++ // past the brace
}

func (s *schemaScanner) array(as role, depth int) {
	for s.at++; s.at < len(s.text) && s.next() != ']'; {
		begin := s.at
		s.value(as, depth)
		if s.next() == ',' {
			s.at++
		}
		if s.at == begin {
			return
		}
	}
	s.at++ // past the bracket
}

// next skips spaces and returns the byte that follows them, or 0 at the end.
func (s *schemaScanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

// quoted reads a string and returns its text.
func (s *schemaScanner) quoted() string {
	begin, escaped := s.at, false
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			escaped = true
			s.at++
		case '"':
			s.at++
			if escaped {
				return gjson.Parse(s.text[begin:s.at]).Str
			}
			return s.text[begin+1 : s.at-1]
		}
	}
	s.at = len(s.text)
	return ""
}

// scalar skips a number, true, false or null.
func (s *schemaScanner) scalar() {
	if end := strings.IndexAny(s.text[s.at:], ",]}"); end >= 0 {
		s.at += end
	} else {
		s.at = len(s.text)
	}
}

// skip skips an object or an array, however deep it is.
func (s *schemaScanner) skip() {
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			s.quoted()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
}
