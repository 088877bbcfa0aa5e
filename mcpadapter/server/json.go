// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/consort-go/consort/mcpadapter/server/internal/jsonobject"

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
	meta := jsonobject.New()
	for _, name := range sortedKeys(r.Meta) {
		value, ok := r.Meta[name].(json.RawMessage) // as another server wrote it
		if !ok {
			var err error
			if value, err = json.Marshal(r.Meta[name]); err != nil {
				return nil, err
			}
		}
		meta.Raw(name, value)
	}
	w := jsonobject.Continue(r.text)
	w.Raw("_meta", meta.End())
	return w.End(), nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// written returns an object as a result, with the additional members from
// another server's result, which are in the metadata under the prefix.
func written(w *jsonobject.Writer, metadata canister.Fields, prefix string) *rawResult {
	w.Fields(metadata, prefix, "_meta")
	result := &rawResult{text: w.Open()}
	result.Meta = passedMeta(metadata[prefix+"_meta"])
	return result
}

// finish writes the members that protocol 2026-07-28 requires at the end of a result
// (SEP-2322). A cacheable result is declared to be immediately stale and private
// (SEP-2549).
func finish(w *jsonobject.Writer, isModern, cacheable bool) {
	if !isModern {
		return
	}
	if cacheable {
		w.Int("ttlMs", 0)
		w.Text("cacheScope", "private")
	}
	w.Text("resultType", "complete")
}
