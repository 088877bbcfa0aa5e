// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/json"

// MetadataPrefix is the prefix of members of the protocol that have no field of their
// own: annotations of a content block are kept as mcp/annotations.
const MetadataPrefix = "mcp/"

// ResourcePrefix is the prefix of members of the contents of a resource, read or
// embedded in a block: mcp/resource/_meta.
const ResourcePrefix = MetadataPrefix + "resource/"

// ReadResultPrefix follows MetadataPrefix in the names of members of the result of a
// read, which are kept with its first part: mcp/result/_meta.
const ReadResultPrefix = "result/"

// CompletionPrefix follows MetadataPrefix in the names of members of the inner object of
// a completion: mcp/completion/ and their names.
const CompletionPrefix = "completion/"

// WithMeta adds a member to meta, which may be nil, and returns it.
func WithMeta(meta map[string]any, name string, value json.RawMessage) map[string]any {
	if meta == nil {
		meta = make(map[string]any)
	}
	meta[name] = value
	return meta
}

// FailureKey is the member of a result's _meta that describes a failed call.
const FailureKey = "io.github.consort-go/failure"
