// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/consort-go/consort/internal/glob"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/internal/textcut"
)

// omitted replaces a value that must not be recorded.
const omitted = `"[omitted]"`

// leastArgumentBytes is the minimum limit; it leaves room for the note on longer
// arguments.
const leastArgumentBytes = 64

// maxDepth is the maximum nesting of arguments that are recorded as JSON.
const maxDepth = 1000

// arguments returns the recordable form of arguments: valid JSON, or nil.
func (t *Trail) arguments(clean cleaner, wrote json.RawMessage) json.RawMessage {
	text := bytes.TrimSpace(bytes.ToValidUTF8(wrote, []byte("\uFFFD")))
	switch {
	case len(text) == 0:
		return nil
	case json.Valid(text) && jsontext.Depth(text) <= maxDepth:
		text = clean.json(omit(text, t.opts.Omit))
	case len(t.opts.Omit) > 0:
		return quote(fmt.Sprintf("[omitted: %d bytes that are not JSON]", len(wrote)))
	default:
		text = quote(clean.text(string(text), len(text)))
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return quote("[omitted]")
	}
	return shorten(compact.Bytes(), t.opts.ArgumentBytes)
}

// omit replaces the value of each member whose name matches one of the patterns.
// The rest is kept byte for byte, including duplicate members.
func omit(text []byte, patterns []string) json.RawMessage {
	if len(patterns) == 0 {
		return text
	}
	var kept []byte
	copied := 0
	for i := 0; i < len(text); {
		if text[i] != '"' {
			i++
			continue
		}
		end := jsontext.StringEnd(text, i)
		value := skipSpace(text, end)
		isName := value < len(text) && text[value] == ':' // only a member's name is followed by a colon
		if !isName || !matches(patterns, text[i:end]) {
			i = end
			continue
		}
		value = skipSpace(text, value+1)
		kept = append(append(kept, text[copied:value]...), omitted...)
		copied = valueEnd(text, value)
		i = copied
	}
	return append(kept, text[copied:]...)
}

// matches reports whether a pattern matches the name in a JSON string.
func matches(patterns []string, token []byte) bool {
	var name string
	if json.Unmarshal(token, &name) != nil {
		return true // omit the value if the name is unknown
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool { return glob.Match(pattern, fold(name)) })
}

// fold makes names that differ only in case equal.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// skipSpace returns the offset of the first byte from i that is not white space.
func skipSpace(text []byte, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	return i
}

// valueEnd returns the offset after the value that begins at begin.
func valueEnd(text []byte, begin int) int {
	level := 0
	for i := begin; i < len(text); {
		c := text[i]
		switch {
		case level == 0 && i > begin && strings.IndexByte(",]} \t\r\n", c) >= 0:
			return i // after a number, true, false or null
		case c == '"':
			i = jsontext.StringEnd(text, i)
		default:
			i++
		}
		switch c {
		case '{', '[':
			level++
		case '}', ']':
			level--
		case '"':
		default:
			continue
		}
		if level == 0 {
			return i
		}
	}
	return len(text)
}

// shorten returns text if it has at most limit bytes, and otherwise a JSON string
// of at most limit bytes with its beginning and its size.
func shorten(text json.RawMessage, limit int) json.RawMessage {
	if limit >= 0 {
		limit = max(limit, leastArgumentBytes)
	}
	if limit < 0 || len(text) <= limit {
		return text
	}
	end := fmt.Sprintf("… [cut: %d bytes in all]", len(text))
	for n := limit; ; {
		short := quote(textcut.Prefix(string(text), n) + end)
		over := len(short) - limit
		if over <= 0 || n == 0 {
			return short
		}
		n = max(0, n-max(1, over/6)) // a byte can take six bytes when quoted
	}
}

// quote returns text as a JSON string.
func quote(text string) json.RawMessage {
	quoted, _ := jsontext.Encode(text) // a string always has a JSON form
	return quoted
}
