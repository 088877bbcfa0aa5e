// SPDX-License-Identifier: Apache-2.0

package plaintext

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

var (
	tableLine = regexp.MustCompile(`^\s*\[\[?\s*([A-Za-z0-9_.-]+)\s*\]`)
	keyLine   = regexp.MustCompile(`^\s*([a-z_.]+)\s*[=:]`)
)

// TOMLKey returns the path of the key on the line of an offset, in a text that is not valid
// TOML, or the path of the table; "" if the line begins a table. It returns only words of
// lower-case letters as keys: the line may also be a part of a secret.
func TOMLKey(text []byte, offset int) string {
	start := bytes.LastIndexByte(text[:offset], '\n') + 1
	end := len(text)
	if length := bytes.IndexByte(text[start:], '\n'); length >= 0 {
		end = start + length
	}
	path := ""
	for line := range bytes.Lines(text[:start]) {
		if header := tableLine.FindSubmatch(line); header != nil {
			path = string(header[1])
		}
	}
	found := keyLine.FindSubmatch(text[start:end])
	switch {
	case bytes.HasPrefix(bytes.TrimSpace(text[start:end]), []byte("[")):
		return "" // it begins another table, whose name cannot be read
	case found == nil:
		return path
	case path != "":
		path += "."
	}
	return path + string(found[1])
}

// JSONKey returns the path of the key where a text stops being valid JSON; empty if that
// is not within a member of an object.
func JSONKey(text []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	type level struct {
		key      string
		isObject bool
		hasKey   bool // a key was read, and its value was not
	}
	levels := []level{{}}
	for {
		token, err := decoder.Token()
		last := &levels[len(levels)-1]
		delim, isDelim := token.(json.Delim)
		switch {
		case err != nil:
			var keys []string
			for _, l := range levels {
				if l.key != "" {
					keys = append(keys, ShowKey(l.key))
				}
			}
			return strings.Join(keys, ".")
		case isDelim && (delim == '{' || delim == '['):
			last.hasKey = false
			levels = append(levels, level{isObject: delim == '{'})
		case isDelim:
			levels = levels[:len(levels)-1]
		case last.isObject && !last.hasKey:
			last.key, last.hasKey = token.(string), true
		default:
			last.hasKey = false
		}
	}
}

// advice are fixes of mistakes, by a part of the message of a parser.
var advice = []struct{ part, fix string }{
	// TOML
	{"at start of value", `write text in quotes, such as name = "TEXT"`},
	{"strings cannot have new lines", "close it with the quote with which it begins, or use three quotes for several lines"},
	{"expected '=' after key", `write a key and its value as KEY = VALUE`},
	{"start of key", `write a key and its value as KEY = VALUE, and a table as [NAME]`},
	// JSON
	{"after object key:value pair", `write "," between the members of an object, and "}" after the last`},
	{"after array element", `write "," between the elements of a list, and "]" after the last`},
	{"after object key", `write ":" between a key and its value`},
	{"beginning of object key", "write each key in double quotes"},
	{"beginning of value", "write text in double quotes"},
	{"unexpected end of JSON", `close each "{" and "["`},
}

// WithAdvice adds to the message of a parser how to fix the mistake, if that is known.
func WithAdvice(message string) string {
	for _, a := range advice {
		if strings.Contains(message, a.part) {
			return message + "; " + a.fix
		}
	}
	return message
}
