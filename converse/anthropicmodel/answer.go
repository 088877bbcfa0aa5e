// SPDX-License-Identifier: Apache-2.0

package anthropicmodel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/tidwall/gjson"
)

// maxBlocks limits the blocks of one answer.
const maxBlocks = 1024

// answer assembles an answer from the events of a stream, or from a whole message (API
// reference, Messages, Streaming).
type answer struct {
	emit   func(converse.Delta)
	blocks []*block
	before int // blocks of the rounds before this one

	model     string
	stop      string
	usage     *canister.Usage
	uncached  int64  // the input that is neither read from the cache nor written to it
	ran       string // the tool of an MCP server that the server has called by itself
	container string // the ID of the place where the server runs code
	began     bool
	idle      bool // the last event was a ping
	done      bool
	fault     bool
	overflown bool
}

// block is one block of the content.
type block struct {
	index     string // as the server wrote it; empty if it gave none
	kind      string
	id, name  string
	begin     []byte // the block as it began
	text      []byte
	thinking  []byte
	signature []byte
	input     []byte // of a call
	whole     bool   // input came with the beginning of the block
	citations []json.RawMessage
}

// State implements [modelapi.Accumulator].
func (a *answer) State() modelapi.State {
	return modelapi.State{Began: len(a.blocks) > a.before || a.stop != "", Whole: a.began, Complete: a.stop != "", Done: a.done, Idle: a.idle, Fault: a.fault, Ran: a.ran}
}

// Add processes an event, or a whole message; see [modelapi.Accumulator].
func (a *answer) Add(event string, value gjson.Result) {
	kind := value.Get("type").String()
	if kind == "" {
		kind = event
	}
	a.idle = kind == "ping" // API reference, Messages, Streaming
	switch kind {
	case "error":
		a.fault = true
	case "message_start":
		a.head(value.Get("message"))
	case "content_block_start":
		if b := a.start(value.Get("content_block")); b != nil {
			b.index = strings.Clone(value.Get("index").Raw)
		}
	case "content_block_delta":
		a.delta(value.Get("index"), value.Get("delta"))
	case "message_delta":
		a.ending(value.Get("delta"))
		a.count(value.Get("usage"))
	case "message_stop":
		a.done = true
	case "message":
		a.whole(value)
	default:
		a.fault = value.Get("error").IsObject()
	}
}

func (a *answer) head(message gjson.Result) {
	a.began = true
	if model := message.Get("model").String(); model != "" {
		a.model = strings.Clone(model)
	}
	a.count(message.Get("usage"))
}

// whole processes a message in one piece.
func (a *answer) whole(message gjson.Result) {
	a.head(message)
	for _, one := range message.Get("content").Array() {
		b := a.start(one)
		if b != nil && b.kind == "tool_use" {
			if input := one.Get("input"); input.Type == gjson.String {
				b.input = []byte(input.Str) // what is not JSON, of some compatible servers
			} else {
				b.input = []byte(strings.Clone(input.Raw))
			}
		}
	}
	a.ending(message)
	a.done = a.stop != ""
}

func (a *answer) ending(delta gjson.Result) {
	a.container = cmp.Or(strings.Clone(delta.Get("container.id").String()), a.container)
	a.stop = cmp.Or(strings.Clone(delta.Get("stop_reason").String()), a.stop)
}

// start begins a block. It returns nil if there are too many.
func (a *answer) start(value gjson.Result) *block {
	if len(a.blocks) == maxBlocks {
		a.overflown = true
		return nil
	}
	b := &block{kind: strings.Clone(value.Get("type").String()), id: strings.Clone(value.Get("id").String()), name: strings.Clone(value.Get("name").String())}
	b.begin = []byte(value.Raw)
	a.blocks = append(a.blocks, b)
	switch b.kind {
	case "text":
		a.say(b, value.Get("text").String())
	case "thinking":
		a.think(b, value.Get("thinking").String())
		b.signature = []byte(value.Get("signature").String())
	case "tool_use":
		if input := value.Get("input"); input.IsObject() && input.Raw != "{}" {
			b.input, b.whole = []byte(strings.Clone(input.Raw)), true
		}
		a.emit(converse.Delta{Invocation: b.name})
	case "mcp_tool_use":
		a.ran = cmp.Or(b.name, b.kind)
	}
	return b
}

// at returns the newest block with an index, or, without an index, the newest of all. It
// may return nil. Some servers count from 1, or give all blocks the index 0.
func (a *answer) at(index gjson.Result) *block {
	for _, b := range slices.Backward(a.blocks[a.before:]) {
		if !index.Exists() || b.index == index.Raw {
			return b
		}
	}
	return nil
}

// delta processes a piece of a block.
func (a *answer) delta(index, delta gjson.Result) {
	b, kind := a.at(index), delta.Get("type").String()
	if kind == "text_delta" {
		a.say(a.textBlock(b), delta.Get("text").String())
		return
	}
	if b == nil {
		return
	}
	switch kind {
	case "thinking_delta":
		a.think(b, delta.Get("thinking").String())
	case "signature_delta":
		b.signature = append(b.signature, delta.Get("signature").String()...)
	case "input_json_delta":
		piece := delta.Get("partial_json").String()
		if b.whole && piece != "" { // the pieces count
			b.input, b.whole = nil, false
		}
		b.input = append(b.input, piece...)
	case "citations_delta":
		if citation := delta.Get("citation"); citation.IsObject() {
			b.citations = append(b.citations, bytes.ToValidUTF8([]byte(citation.Raw), []byte("\uFFFD")))
		}
	}
}

// textBlock returns the block of a piece of text: b if it has text, or else a block of its
// own. Some servers send text with the index of a call.
func (a *answer) textBlock(b *block) *block {
	if b != nil && b.kind == "text" {
		return b
	}
	if n := len(a.blocks); n > a.before && a.blocks[n-1].kind == "text" && a.blocks[n-1].index == "" {
		return a.blocks[n-1]
	}
	return a.start(gjson.Parse(`{"type":"text","text":""}`))
}

func (a *answer) say(b *block, text string) {
	if text != "" && b != nil && b.kind == "text" {
		b.text = append(b.text, text...)
		a.emit(converse.Delta{Text: text})
	}
}

func (a *answer) think(b *block, text string) {
	if text != "" && b.kind == "thinking" {
		b.thinking = append(b.thinking, text...)
		a.emit(converse.Delta{Reasoning: text})
	}
}

// count processes the usage. The API counts input that was read from the cache, or written
// to it, apart from the rest (API reference, Usage: the total is the sum of the three). The
// counts at the end of a stream replace the earlier ones; compatible servers leave
// some of them out, or send zeros.
func (a *answer) count(usage gjson.Result) {
	if !usage.IsObject() {
		return
	}
	if a.usage == nil {
		a.usage = &canister.Usage{}
	}
	for _, member := range []struct {
		name string
		to   *int64
	}{
		{"input_tokens", &a.uncached},
		{"cache_read_input_tokens", &a.usage.Cached},
		{"cache_creation_input_tokens", &a.usage.CacheWritten},
		{"output_tokens", &a.usage.Output},
		{"output_tokens_details.thinking_tokens", &a.usage.Reasoning},
	} {
		if n := usage.Get(member.name).Int(); n > 0 {
			*member.to = n
		}
	}
	a.usage.Input = a.uncached + a.usage.Cached + a.usage.CacheWritten
}

// canBeSent reports whether the API takes the block again.
func (b *block) canBeSent() bool {
	switch b.kind {
	case "text":
		return strings.TrimSpace(string(b.text)) != ""
	case "thinking":
		return len(b.signature) > 0
	}
	return b.kind != ""
}

// raw returns a block as the server sent it.
func (b *block) raw() []byte {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(b.begin, &members) != nil {
		clear(members)
	}
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	set := func(name string, text []byte) { members[name] = jsontext.AppendString(nil, string(text)) }
	switch b.kind {
	case "text":
		set("text", b.text)
		if len(b.citations) > 0 {
			members["citations"], _ = json.Marshal(b.citations) // valid JSON
		}
	case "thinking":
		set("thinking", b.thinking)
		set("signature", b.signature)
	default:
		if len(b.input) > 0 && json.Valid(b.input) {
			members["input"] = b.input
		}
	}
	text, err := jsontext.Encode(members)
	if err != nil {
		return []byte(`{"type":"text","text":"[empty]"}`)
	}
	return wellFormed(text)
}

// cited returns the sources that a text cites, from its deltas or from a whole message.
func (b *block) cited() (sources []json.RawMessage) {
	for _, citation := range gjson.GetBytes(b.begin, "citations").Array() {
		if citation.IsObject() {
			sources = append(sources, bytes.ToValidUTF8([]byte(citation.Raw), []byte("\uFFFD")))
		}
	}
	return append(sources, b.citations...)
}

// reply returns the complete answer.
func (a *answer) reply(m *Model, request *converse.Request) converse.Reply {
	reply := converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Model: a.model, Usage: a.usage}}
	var kept []modelapi.Item
	calls := modelapi.NewCalls(request, reply.Message.ID)
	plain := true // text and calls alone, which the canisters hold whole
	for i, b := range a.blocks {
		item := modelapi.Item{Type: b.kind}
		switch b.kind {
		case "text":
			if len(b.text) == 0 {
				continue
			}
			item.Contents = 1
			if kept := gjson.GetBytes(b.begin, "citations"); b.canBeSent() && (len(b.citations) > 0 || kept.Exists() && kept.Type != gjson.Null) {
				item.Item, plain = b.raw(), false
			}
			reply.Message.Content = append(reply.Message.Content, modelapi.Cited(string(b.text), b.cited()))
		case "tool_use":
			if a.stop == "refusal" {
				continue // it does not run
			}
			call := calls.Add(b.id, b.name, string(b.input))
			item.Call = call.CallID
			if i == len(a.blocks)-1 && a.cutOff() {
				markCutOff(call)
			}
		case "thinking", "redacted_thinking":
			if b.kind == "thinking" && len(b.signature) == 0 {
				continue // the server could not verify it
			}
			item.Item, plain = b.raw(), false
		case "":
			continue
		default:
			item.Item, item.Contents, plain = b.raw(), 1, false
			reply.Message.Content = append(reply.Message.Content, canister.StructuredContent{JSON: modelapi.Shown(item.Item)})
		}
		kept = append(kept, item)
	}
	reply.Invocations = calls.Invocations
	reply.Message.Finish = a.finish(len(reply.Invocations))
	if !plain || len(reply.Message.Content) > 1 {
		reply.Message.Metadata = m.server.KeepItems(contentKey, m.name, kept)
	}
	return reply
}

// markCutOff makes the arguments of a call that was cut off invalid, so that the tool does
// not run with half of them.
func markCutOff(call *canister.Invocation) {
	if call.Arguments == "{}" {
		call.Arguments = modelapi.CutOffArguments
		return
	}
	call.Arguments += " [cut off]"
}

// cutOff reports whether the answer ended before the model was done.
func (a *answer) cutOff() bool {
	switch a.stop {
	case "tool_use", "end_turn", "stop_sequence", "pause_turn":
		return false
	}
	return true
}

// finish returns the reason why the model stopped.
func (a *answer) finish(calls int) canister.Finish {
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded":
		return canister.FinishLength
	case "refusal":
		return canister.FinishRefusal
	case "tool_use", "end_turn", "stop_sequence", "pause_turn":
		switch {
		case calls > 0:
			return canister.FinishInvocations
		case a.stop == "pause_turn": // for the last time; see maxRounds
			return canister.FinishLength
		}
		return canister.FinishStop
	}
	return modelapi.OtherFinish(a.stop)
}
