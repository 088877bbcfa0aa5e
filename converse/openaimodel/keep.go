// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/jsontext"
)

// Members of metadata for data that servers require in later requests. An invocation has
// extra_content, such as Gemini's thought signatures. A message has the reasoning_content
// that DeepSeek and Kimi require, and the reasoning_details of OpenRouter.
const (
	extraKey     = "openaimodel.extra_content"
	reasoningKey = "openaimodel.reasoning_content"
	detailsKey   = "openaimodel.reasoning_details"
)

// keepsake is the value of such a member.
type keepsake struct {
	Host  string          `json:"host"` // the origin; other hosts would reject it
	Value json.RawMessage `json:"value"`
}

// keep returns metadata with data that this model's server requires later.
func (m *Model) keep(key string, value []byte) canister.Fields {
	kept, err := json.Marshal(keepsake{Host: m.host, Value: value})
	if err != nil {
		return nil
	}
	return canister.Fields{key: kept}
}

// kept returns the value that keep stored, if it came from this model's server.
func (m *Model) kept(metadata canister.Fields, key string) []byte {
	member, ok := metadata[key]
	if !ok {
		return nil
	}
	var own keepsake
	if json.Unmarshal(member, &own) != nil || own.Host != m.host || len(own.Value) == 0 {
		return nil
	}
	return jsontext.Compact(own.Value)
}
