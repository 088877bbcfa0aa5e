// SPDX-License-Identifier: Apache-2.0

// Package jsonobject writes JSON objects whose members partly are JSON already.
package jsonobject

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
)

// Writer writes a JSON object member by member. It inserts values that are already JSON
// unchanged; encoding/json can do this only for structs.
type Writer struct {
	bytes.Buffer
	first   bool
	written []string
	strings *json.Encoder
}

// New returns an object without members.
func New() *Writer {
	w := &Writer{first: true}
	w.Byte('{')
	return w
}

// Continue returns the object of a text without the closing brace.
func Continue(text []byte) *Writer {
	w := &Writer{first: len(text) == 1}
	w.Append(text)
	return w
}

// Byte and Append write a part of a value.
func (w *Writer) Byte(b byte)        { _ = w.WriteByte(b) } // a buffer never fails
func (w *Writer) Append(text []byte) { _, _ = w.Write(text) }

// IsEmpty reports whether the object has no members yet.
func (w *Writer) IsEmpty() bool { return w.first }

// Key begins a member. The methods after it write a whole one.
func (w *Writer) Key(name string) {
	if !w.first {
		w.Byte(',')
	}
	w.first = false
	w.written = append(w.written, name)
	w.string(name)
	w.Byte(':')
}

func (w *Writer) string(s string) {
	if isPlain(s) {
		w.Byte('"')
		_, _ = w.WriteString(s)
		w.Byte('"')
		return
	}
	if w.strings == nil {
		w.strings = json.NewEncoder(&w.Buffer)
		w.strings.SetEscapeHTML(false)
	}
	_ = w.strings.Encode(s) // invalid UTF-8 is replaced
	w.Truncate(w.Len() - 1) // removes the newline
}

// isPlain reports whether s is the same in JSON, between quotes.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (w *Writer) Raw(name string, value []byte) {
	w.Key(name)
	w.Append(value)
}

func (w *Writer) Text(name, value string) {
	w.Key(name)
	w.string(value)
}

func (w *Writer) TextIf(name, value string) {
	if value != "" {
		w.Text(name, value)
	}
}

func (w *Writer) Bool(name string, value bool) {
	w.Key(name)
	if value {
		w.Append([]byte("true"))
	} else {
		w.Append([]byte("false"))
	}
}

func (w *Writer) Int(name string, value int64) {
	w.Key(name)
	w.Append(strconv.AppendInt(w.AvailableBuffer(), value, 10))
}

func (w *Writer) Base64(name string, data []byte) {
	w.Key(name)
	w.Byte('"')
	w.Append(base64.StdEncoding.AppendEncode(w.AvailableBuffer(), data))
	w.Byte('"')
}

// List writes an array of n values; item returns the JSON of each.
func (w *Writer) List(name string, n int, item func(i int) []byte) {
	w.Key(name)
	w.Byte('[')
	for i := range n {
		if i > 0 {
			w.Byte(',')
		}
		w.Append(item(i))
	}
	w.Byte(']')
}

// Fields writes the fields that have the prefix, without the prefix and sorted by name,
// except those that are already written and those in not.
func (w *Writer) Fields(fields canister.Fields, prefix string, not ...string) {
	if len(fields) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if len(name) <= len(prefix) || name[:len(prefix)] != prefix || !json.Valid(fields[name]) {
			continue
		}
		own := name[len(prefix):] // resource/_meta is not of this object
		if !strings.Contains(own, "/") && !slices.Contains(w.written, own) && !slices.Contains(not, own) {
			w.Raw(own, fields[name])
		}
	}
}

// End closes and returns the object.
func (w *Writer) End() []byte {
	w.Byte('}')
	return w.Bytes()
}

// Open returns the object without the closing brace.
func (w *Writer) Open() []byte { return w.Bytes() }
