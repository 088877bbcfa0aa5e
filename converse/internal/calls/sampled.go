// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"encoding/json"
	"maps"

	"github.com/consort-go/consort/canister"
)

// SampledKey is the member of a canister's metadata that records exchanges outside the
// conversation, such as the exchanges that a tool asked for. Only the conversation writes
// it: a tool's own value is dropped.
const SampledKey = "io.github.consort-go/sampled"

// Sampled is the use of the model by a tool.
type Sampled struct {
	Exchanges int `json:"exchanges"`
	canister.Usage
}

// Remember returns metadata that record s.
func (s Sampled) Remember(metadata canister.Fields) canister.Fields {
	if _, forged := metadata[SampledKey]; !forged && s.Exchanges == 0 {
		return metadata
	}
	metadata = maps.Clone(metadata) // it may belong to the tool
	delete(metadata, SampledKey)
	if s.Exchanges > 0 {
		if metadata == nil {
			metadata = canister.Fields{}
		}
		metadata[SampledKey], _ = json.Marshal(s) // numbers have a JSON form
	}
	return metadata
}

// SampledIn reads the record in metadata. A record with impossible numbers counts as
// nothing.
func SampledIn(metadata canister.Fields) Sampled {
	text, ok := metadata[SampledKey]
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
