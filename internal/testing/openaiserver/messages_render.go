// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"fmt"
	"strings"
)

// claudeAnswer is the answer to one request to Messages, while it is sent.
type claudeAnswer struct {
	x      *exchange
	m      Message
	blocks []map[string]any // so far
	buffer []byte
	gone   bool // the client has gone
}

// playMessages sends the message in the form of Messages, whole or as a stream, as the
// request asks.
func (m Message) playMessages(x *exchange) {
	if !x.wait(m.Delay) {
		return
	}
	a := &claudeAnswer{x: x, m: m}
	if x.request.Stream {
		header := x.w.Header()
		header.Set("Content-Type", "text/event-stream; charset=utf-8")
		header.Set("Cache-Control", "no-cache")
		a.event("message_start", map[string]any{"message": a.message(nil)})
		a.event("ping", map[string]any{})
	}
	a.content()
	if x.request.Stream {
		usage := a.usage()
		a.event("message_delta", map[string]any{
			"delta": map[string]any{"stop_reason": a.stop(), "stop_sequence": nil}, "usage": map[string]any{"output_tokens": usage["output_tokens"]},
		})
		a.event("message_stop", map[string]any{})
		a.flush()
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	body, _ := json.Marshal(a.message(a.stop())) // plain values
	x.w.Write(append(body, '\n'))                // the client may have gone
}

// message returns the message object; stop is nil at its beginning.
func (a *claudeAnswer) message(stop any) map[string]any {
	content := a.blocks
	if content == nil {
		content = []map[string]any{}
	}
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", a.x.serial), "type": "message", "role": "assistant", "model": a.x.request.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": a.usage(),
	}
}

// stop returns the stop reason.
func (a *claudeAnswer) stop() string {
	switch {
	case a.m.Finish == "length":
		return "max_tokens"
	case a.m.Finish == "content_filter" || a.m.Refusal != "":
		return "refusal"
	case a.m.Finish != "" && a.m.Finish != "stop" && a.m.Finish != "tool_calls":
		return a.m.Finish
	case len(a.m.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

// content sends the blocks: thinking, text and calls.
func (a *claudeAnswer) content() {
	if a.m.Items != nil {
		a.inOrder()
		return
	}
	if a.m.Reasoning != "" || a.x.request.thinks {
		a.thinking(a.m.Reasoning)
	}
	if text := a.m.Text + a.m.Refusal; text != "" {
		a.text(text, nil)
	}
	for _, c := range a.m.wireCalls() {
		a.call(c)
	}
}

// thinking sends a block of thinking with its signature.
func (a *claudeAnswer) thinking(text string) {
	signature := sign(a.x.request.Model, text)
	a.block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, map[string]any{"thinking": text, "signature": signature}, func() {
		for piece := range pieces(text, a.size()) {
			a.delta(map[string]any{"type": "thinking_delta", "thinking": piece})
		}
		a.delta(map[string]any{"type": "signature_delta", "signature": signature})
	})
}

// text sends a block of text; citation may be nil.
func (a *claudeAnswer) text(text string, citation map[string]any) {
	whole := map[string]any{"text": text}
	if citation != nil {
		whole["citations"] = []any{citation}
	}
	a.block(map[string]any{"type": "text", "text": ""}, whole, func() {
		for piece := range pieces(text, a.size()) {
			a.delta(map[string]any{"type": "text_delta", "text": piece})
		}
		if citation != nil {
			a.delta(map[string]any{"type": "citations_delta", "citation": citation})
		}
	})
}

// call sends a call.
func (a *claudeAnswer) call(c deltaCall) {
	id := strings.ReplaceAll(c.ID, idMark, fmt.Sprintf("toolu_%d_", a.x.request.Position))
	input := json.RawMessage(c.Function.Arguments)
	if !json.Valid(input) {
		input = json.RawMessage("{}") // a whole message cannot hold anything else
	}
	a.block(map[string]any{"type": "tool_use", "id": id, "name": c.Function.Name, "input": map[string]any{}}, map[string]any{"input": input}, func() {
		for piece := range pieces(c.Function.Arguments, a.size()) {
			a.delta(map[string]any{"type": "input_json_delta", "partial_json": piece})
		}
	})
}

// block sends a block: how it begins, its pieces, and what it has in the end.
func (a *claudeAnswer) block(begin, end map[string]any, pieces func()) {
	a.event("content_block_start", map[string]any{"index": len(a.blocks), "content_block": begin})
	pieces()
	a.event("content_block_stop", map[string]any{"index": len(a.blocks)})
	whole := map[string]any{}
	for name, value := range begin {
		whole[name] = value
	}
	for name, value := range end {
		whole[name] = value
	}
	a.blocks = append(a.blocks, whole)
}

func (a *claudeAnswer) delta(delta map[string]any) {
	a.event("content_block_delta", map[string]any{"index": len(a.blocks), "delta": delta})
}

// size returns how many characters a piece has.
func (a *claudeAnswer) size() int {
	if a.m.Delta == 0 {
		return defaultDelta
	}
	return a.m.Delta
}

// event sends an event.
func (a *claudeAnswer) event(kind string, members map[string]any) {
	if !a.x.request.Stream || a.gone {
		return
	}
	members["type"] = kind
	a.buffer = fmt.Appendf(a.buffer, "event: %s\ndata: %s\n\n", kind, encode(members))
	if a.m.Pace != 0 || len(a.buffer) >= flushAt {
		a.flush()
		a.gone = a.gone || !a.x.wait(a.m.Pace)
	}
}

func (a *claudeAnswer) flush() {
	a.gone = a.gone || !a.x.send(a.buffer)
	a.buffer = a.buffer[:0]
}

// usage returns the tokens of the answer. Anthropic counts cached input apart.
func (a *claudeAnswer) usage() map[string]any {
	u := Usage{PromptTokens: 1 + len(a.x.request.Body)/4, CompletionTokens: 1 + (len(a.m.Text)+len(a.m.Reasoning)+len(a.m.Refusal))/4}
	if a.m.Usage != nil {
		u = *a.m.Usage
	}
	return map[string]any{
		"input_tokens": u.PromptTokens - u.CachedTokens - u.CacheWriteTokens, "cache_read_input_tokens": u.CachedTokens,
		"cache_creation_input_tokens": u.CacheWriteTokens, "output_tokens": u.CompletionTokens,
		"output_tokens_details": map[string]any{"thinking_tokens": u.ReasoningTokens},
	}
}
