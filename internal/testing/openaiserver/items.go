// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// ItemKind is what an [Item] is.
type ItemKind int

// The kinds of items.
const (
	// TextItem is a message, or a block of text.
	TextItem ItemKind = iota
	// RefusalItem is a refusal. Messages sends it as text.
	RefusalItem
	// ReasoningItem is reasoning with a summary, or thinking with its text.
	ReasoningItem
	// RedactedItem is reasoning without a summary, or redacted thinking. Chat Completions
	// leaves it out.
	RedactedItem
	// CallItem is a call of a tool of the client.
	CallItem
	// SearchItem is a web search by the server, with its result. Chat Completions leaves
	// it out. A text after it cites the result in Messages.
	SearchItem
)

// Item is one item of an answer; see [Message].Items.
type Item struct {
	Kind ItemKind
	// Text is the text of the item, or the query of a search.
	Text string
	Call Call // of a CallItem
}

// joined returns a message whose other fields have what its items have. Chat Completions
// sends these.
func (m Message) joined() Message {
	if m.Items == nil {
		return m
	}
	texts := map[ItemKind][]string{}
	m.Calls = nil
	for _, item := range m.Items {
		texts[item.Kind] = append(texts[item.Kind], item.Text)
		if item.Kind == CallItem {
			m.Calls = append(m.Calls, item.Call)
		}
	}
	m.Text, m.Refusal = strings.Join(texts[TextItem], "\n"), strings.Join(texts[RefusalItem], "\n")
	m.Reasoning = strings.Join(texts[ReasoningItem], "\n")
	return m
}

// inOrder sends the items of a message to Responses. calls are its calls.
func (r *response) inOrder(calls []deltaCall) {
	next := func(from int, calls []deltaCall) (mark string, followed bool) {
		for _, item := range r.m.Items[from:] {
			switch item.Kind {
			case CallItem:
				return calls[0].ID, true
			case TextItem, RefusalItem, SearchItem:
				return "message", true
			}
		}
		return "", false
	}
	for i, item := range r.m.Items {
		switch item.Kind {
		case TextItem:
			r.message(item.Text, "")
		case RefusalItem:
			r.message("", item.Text)
		case ReasoningItem, RedactedItem:
			mark, followed := next(i+1, calls)
			r.reasoning(item.Text, mark, followed)
		case CallItem:
			r.call(calls[0])
			calls = calls[1:]
		case SearchItem:
			id, action := r.id("ws"), map[string]any{"type": "search", "query": item.Text}
			n := r.open(map[string]any{"id": id, "type": "web_search_call", "status": "in_progress"})
			r.close(n, map[string]any{"id": id, "type": "web_search_call", "status": "completed", "action": action})
		}
	}
}

// inOrder sends the items of a message to Messages.
func (a *claudeAnswer) inOrder() {
	calls := a.m.wireCalls()
	var citation map[string]any // of the latest search
	for _, item := range a.m.Items {
		switch item.Kind {
		case TextItem, RefusalItem:
			a.text(item.Text, citation)
			citation = nil
		case ReasoningItem:
			a.thinking(item.Text)
		case RedactedItem:
			data := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "redacted:%s:%d:%d", a.x.request.Model, a.x.serial, len(a.blocks)))
			a.block(map[string]any{"type": "redacted_thinking", "data": data}, nil, func() {})
		case CallItem:
			a.call(calls[0])
			calls = calls[1:]
		case SearchItem:
			citation = a.search(item.Text)
		}
	}
}

// search sends a web search with its result, and returns a citation of the result.
func (a *claudeAnswer) search(query string) map[string]any {
	id := fmt.Sprintf("srvtoolu_%d_%d", a.x.serial, len(a.blocks))
	a.block(map[string]any{"type": "server_tool_use", "id": id, "name": "web_search", "input": map[string]any{}}, map[string]any{"input": map[string]any{"query": query}}, func() {
		a.delta(map[string]any{"type": "input_json_delta", "partial_json": string(encode(map[string]any{"query": query}))})
	})
	const url = "https://example.com/found"
	sealed := base64.StdEncoding.EncodeToString([]byte("sealed-result:" + a.x.request.Model + id))
	found := map[string]any{"type": "web_search_result", "url": url, "title": "Found", "encrypted_content": sealed, "page_age": nil}
	a.block(map[string]any{"type": "web_search_tool_result", "tool_use_id": id, "content": []any{found}}, nil, func() {})
	return map[string]any{"type": "web_search_result_location", "url": url, "title": "Found", "encrypted_index": sealed, "cited_text": "found"}
}
