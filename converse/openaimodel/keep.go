// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
)

// The members of metadata that hold what a server wants to see again: with an
// invocation, extra_content, such as Gemini's thought signatures; with a
// message, the reasoning_content that DeepSeek and Kimi refuse to go on
// without, and the reasoning_details of OpenRouter.
const (
	extraKey     = "openaimodel.extra_content"
	reasoningKey = "openaimodel.reasoning_content"
	detailsKey   = "openaimodel.reasoning_details"
)

// keepsake is the value of such a member.
type keepsake struct {
	Host  string          `json:"host"` // whose it is: others would refuse it
	Value json.RawMessage `json:"value"`
}

// keep returns metadata with what this model's server wants to see again.
func (m *Model) keep(key string, value []byte) canister.Fields {
	kept, err := json.Marshal(keepsake{Host: m.host, Value: value})
	if err != nil {
		return nil
	}
	return canister.Fields{key: kept}
}

// kept returns what keep kept, if it came from this model's server.
func (m *Model) kept(metadata canister.Fields, key string) []byte {
	member, ok := metadata[key]
	if !ok {
		return nil
	}
	var own keepsake
	if json.Unmarshal(member, &own) != nil || own.Host != m.host || len(own.Value) == 0 {
		return nil
	}
	return compactJSON(own.Value)
}
