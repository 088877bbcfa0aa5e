// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Metadata returns the members that are not known, under wire.MetadataPrefix, or nil if
// there are none.
func Metadata(m map[string]json.RawMessage, known ...string) canister.Fields {
	return MetadataUnder(wire.MetadataPrefix, m, known...)
}

// MetadataUnder does the same under another prefix.
func MetadataUnder(prefix string, m map[string]json.RawMessage, known ...string) canister.Fields {
	var fields canister.Fields
	for name, value := range m {
		if slices.Contains(known, name) {
			continue
		}
		if fields == nil {
			fields = make(canister.Fields)
		}
		fields[prefix+name] = jsontext.Compact(value)
	}
	return fields
}

// Merge returns all fields of both; either may be nil.
func Merge(fields, more canister.Fields) canister.Fields {
	if fields == nil {
		return more
	}
	maps.Copy(fields, more)
	return fields
}
