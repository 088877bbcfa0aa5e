// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"encoding/json"
	"maps"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/notes"
)

// Sampled is the use of the model by a tool, the value of [notes.SampledKey].
type Sampled struct {
	Exchanges int `json:"exchanges"`
	canister.Usage
}

// Remember returns metadata that record s.
func (s Sampled) Remember(metadata canister.Fields) canister.Fields {
	if _, forged := metadata[notes.SampledKey]; !forged && s.Exchanges == 0 {
		return metadata
	}
	metadata = maps.Clone(metadata) // it may belong to the tool
	delete(metadata, notes.SampledKey)
	if s.Exchanges > 0 {
		if metadata == nil {
			metadata = canister.Fields{}
		}
		metadata[notes.SampledKey], _ = json.Marshal(s) // numbers have a JSON form
	}
	return metadata
}

// SampledIn reads the record in metadata. A record with impossible numbers counts as
// nothing.
func SampledIn(metadata canister.Fields) Sampled {
	text, ok := metadata[notes.SampledKey]
	if !ok {
		return Sampled{} // without an allocation, as for nearly all canisters
	}
	var spent Sampled
	if json.Unmarshal(text, &spent) != nil {
		return Sampled{}
	}
	const most = 1 << 40
	for _, n := range []int64{int64(spent.Exchanges), spent.Input, spent.Cached, spent.CacheWritten, spent.Output, spent.Reasoning} {
		if n < 0 || n > most {
			return Sampled{}
		}
	}
	return spent
}
