// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rawResult is a result that is written except for its _meta, where the SDK adds the
// server's name (SEP-2575).
type rawResult struct {
	mcp.ResultBase
	text []byte // a JSON object without the closing brace

	// For telemetry, of a tool's result:
	content []canister.Content
	failure *invoker.Failure
}

// MarshalJSON implements [json.Marshaler].
func (r *rawResult) MarshalJSON() ([]byte, error) {
	if len(r.Meta) == 0 {
		return append(r.text, '}'), nil
	}
	meta := newObject()
	for _, name := range sortedKeys(r.Meta) {
		value, ok := r.Meta[name].(json.RawMessage) // as another server wrote it
		if !ok {
			var err error
			if value, err = json.Marshal(r.Meta[name]); err != nil {
				return nil, err
			}
		}
		meta.raw(name, value)
	}
	w := &object{first: len(r.text) == 1}
	w.Write(r.text)
	w.raw("_meta", meta.end())
	return w.end(), nil
}

// result returns the written object as a result, with the additional members from
// another server's result, which are in the metadata under the prefix.
func (w *object) result(metadata canister.Fields, prefix string) *rawResult {
	w.fields(metadata, prefix, "_meta")
	result := &rawResult{text: w.open()}
	result.Meta = passedMeta(metadata[prefix+"_meta"])
	return result
}

// object writes a JSON object member by member. It inserts values that are already JSON
// unchanged; encoding/json can do this only for structs.
type object struct {
	bytes.Buffer
	first   bool
	written []string
	strings *json.Encoder
}

func newObject() *object {
	w := &object{first: true}
	w.byte('{')
	return w
}

func (w *object) byte(b byte)       { _ = w.WriteByte(b) } // a buffer never fails
func (w *object) write(text []byte) { _, _ = w.Write(text) }

// key begins a member.
func (w *object) key(name string) {
	if !w.first {
		w.byte(',')
	}
	w.first = false
	w.written = append(w.written, name)
	w.string(name)
	w.byte(':')
}

func (w *object) string(s string) {
	if w.strings == nil {
		w.strings = json.NewEncoder(&w.Buffer)
		w.strings.SetEscapeHTML(false)
	}
	_ = w.strings.Encode(s) // invalid UTF-8 is replaced
	w.Truncate(w.Len() - 1) // removes the newline
}

func (w *object) raw(name string, value []byte) {
	w.key(name)
	w.write(value)
}

func (w *object) text(name, value string) {
	w.key(name)
	w.string(value)
}

func (w *object) textIf(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

func (w *object) bool(name string, value bool) {
	w.key(name)
	if value {
		w.write([]byte("true"))
	} else {
		w.write([]byte("false"))
	}
}

func (w *object) int(name string, value int64) {
	w.key(name)
	w.write(strconv.AppendInt(w.AvailableBuffer(), value, 10))
}

// finish writes the members that protocol 2026-07-28 requires at the end of a result
// (SEP-2322). A cacheable result is declared to be immediately stale and private
// (SEP-2549).
func (w *object) finish(isModern, cacheable bool) {
	if !isModern {
		return
	}
	if cacheable {
		w.int("ttlMs", 0)
		w.text("cacheScope", "private")
	}
	w.text("resultType", "complete")
}

func (w *object) base64(name string, data []byte) {
	w.key(name)
	w.byte('"')
	w.write(base64.StdEncoding.AppendEncode(w.AvailableBuffer(), data))
	w.byte('"')
}

// fields writes the fields that have the prefix, without the prefix and sorted by name,
// except those that are already written and those in not.
func (w *object) fields(fields canister.Fields, prefix string, not ...string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if len(name) <= len(prefix) || name[:len(prefix)] != prefix || !json.Valid(fields[name]) {
			continue
		}
		own := name[len(prefix):] // resource/_meta is not of this object
		if !strings.Contains(own, "/") && !slices.Contains(w.written, own) && !slices.Contains(not, own) {
			w.raw(own, fields[name])
		}
	}
}

// end closes and returns the object.
func (w *object) end() []byte {
	w.byte('}')
	return w.Bytes()
}

// open returns the object without the closing brace.
func (w *object) open() []byte { return w.Bytes() }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
