// SPDX-License-Identifier: Apache-2.0

package modelapi

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/jsontext"
)

// opaque is data of a server in the metadata of a canister.
type opaque struct {
	Host  string          `json:"host"`            // with the port; other hosts would reject it
	Model string          `json:"model,omitempty"` // the model that it is for; empty for all
	Value json.RawMessage `json:"value"`
}

// Keep returns metadata with data that this server requires later, in its own form. Only
// this server gets it back, and, unless model is empty, only with that model.
func (s *Server) Keep(key, model string, value []byte) canister.Fields {
	kept, err := json.Marshal(opaque{Host: s.Base.Host, Model: model, Value: value})
	if err != nil {
		return nil
	}
	return canister.Fields{key: kept}
}

// Kept returns the value that Keep stored under a key; nil if there is none, or if it came
// from another server, or is for another model.
func (s *Server) Kept(metadata canister.Fields, key, model string) []byte {
	member, ok := metadata[key]
	if !ok {
		return nil
	}
	var own opaque
	if json.Unmarshal(member, &own) != nil || own.Host != s.Base.Host || own.Model != model || len(own.Value) == 0 {
		return nil
	}
	return jsontext.Compact(own.Value)
}
