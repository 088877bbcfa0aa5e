// SPDX-License-Identifier: Apache-2.0

// Package notes has the members of metadata that other processes need: those that carry the
// conversation on, and the programs that show it.
package notes

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
)

// CompactionKey is the member of a document's metadata that says that the document replaces
// the canisters before it, or that results before it are cut; see docs/canisters.md.
const CompactionKey = "io.github.consort-go/compaction"

// SampledKey is the member of a canister's metadata that records exchanges outside the
// conversation, such as the exchanges that a tool asked for. Only the conversation writes
// it: a tool's own value is dropped. See docs/canisters.md.
const SampledKey = "io.github.consort-go/sampled"

// ClientToolsKey is the member of a user's metadata that has the tools of the client that sent
// the message; see docs/canisters.md.
const ClientToolsKey = "io.github.consort-go/client-tools"

// toolsKey is the member of an assistant's metadata that lists the tools that were
// added to the turn before this exchange, in the order of the offer. It lets another
// process that carries the turn on offer them in the same order. That process gets
// their current definitions from the servers.
const toolsKey = "io.github.consort-go/tools-added"

// traceKey is the member of an assistant's metadata with the ID of the trace that its exchange
// belongs to, in 32 hexadecimal digits; see docs/canisters.md.
const traceKey = "io.github.consort-go/trace"

// limitKey is the member of an assistant's metadata with the limit that ended the turn, if the
// message is the final answer; see docs/canisters.md.
const limitKey = "io.github.consort-go/limit"

// Limit returns the limit that ended a turn whose last message is a final answer, or "".
func Limit(turn []canister.Canister) (limit string) {
	for _, c := range slices.Backward(turn) {
		if message, is := c.(canister.Assistant); is {
			_ = json.Unmarshal(message.Metadata[limitKey], &limit)
			return limit
		}
	}
	return ""
}

// WithLimit returns a message's metadata with the limit of a final answer, and without that member if it is empty.
func WithLimit(metadata canister.Fields, limit string) canister.Fields {
	if limit == "" {
		return without(metadata, limitKey)
	}
	return with(metadata, limitKey, limit)
}

// Trace returns the ID of the trace of a message, or "".
func Trace(message canister.Assistant) (id string) {
	if json.Unmarshal(message.Metadata[traceKey], &id) != nil {
		return ""
	}
	return id
}

// WithTrace returns a message's metadata with the ID of a trace, and without that member if it is empty.
func WithTrace(metadata canister.Fields, id string) canister.Fields {
	if id == "" {
		return without(metadata, traceKey)
	}
	return with(metadata, traceKey, id)
}

// Tools returns the tools that were added to a turn, in order.
func Tools(turn []canister.Canister) []string {
	var names []string
	for _, c := range turn {
		said, ok := c.(canister.Assistant)
		if !ok || said.Metadata[toolsKey] == nil {
			continue
		}
		var more []string
		_ = json.Unmarshal(said.Metadata[toolsKey], &more)
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// WithTools returns a message's metadata with the added tools that are not noted yet, and without that member if all
// of them are.
func WithTools(metadata canister.Fields, added, noted []string) canister.Fields {
	fresh := slices.DeleteFunc(slices.Clone(added), func(name string) bool { return slices.Contains(noted, name) })
	if len(fresh) == 0 {
		return without(metadata, toolsKey)
	}
	return with(metadata, toolsKey, fresh)
}

// without returns metadata without a member, such as one that a model has sent.
func without(metadata canister.Fields, key string) canister.Fields {
	if _, has := metadata[key]; has {
		metadata = maps.Clone(metadata)
		delete(metadata, key)
	}
	return metadata
}

// with returns a copy of metadata with one more member, of strings.
func with(metadata canister.Fields, key string, value any) canister.Fields {
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = canister.Fields{}
	}
	metadata[key], _ = json.Marshal(value) // strings have a JSON form
	return metadata
}
