// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The items of a response, as OpenAI sends them (API reference, The Response object).
type (
	responseObject struct {
		ID         string            `json:"id"`
		Object     string            `json:"object"`
		CreatedAt  int64             `json:"created_at"`
		Status     string            `json:"status"`
		Error      *struct{}         `json:"error"`
		Incomplete *incompleteObject `json:"incomplete_details"`
		Model      string            `json:"model"`
		Output     []any             `json:"output"`
		Store      bool              `json:"store"`
		Usage      *responseUsage    `json:"usage"`
	}
	incompleteObject struct {
		Reason string `json:"reason"`
	}
	responseUsage struct {
		Input        int `json:"input_tokens"`
		InputDetails struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Output        int `json:"output_tokens"`
		OutputDetails struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
		Total int `json:"total_tokens"`
	}
	reasoningObject struct {
		ID        string     `json:"id"`
		Type      string     `json:"type"`
		Summary   []textPart `json:"summary"`
		Encrypted *string    `json:"encrypted_content,omitempty"`
	}
	messageObject struct {
		ID      string     `json:"id"`
		Type    string     `json:"type"`
		Status  string     `json:"status"`
		Role    string     `json:"role"`
		Content []textPart `json:"content"`
	}
	textPart struct {
		Type        string  `json:"type"`
		Text        *string `json:"text,omitempty"`
		Annotations *[]any  `json:"annotations,omitempty"`
		Refusal     *string `json:"refusal,omitempty"`
	}
	callObject struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		Status    string `json:"status"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

// response is the answer to one request to Responses, while it is sent.
type response struct {
	x      *exchange
	m      Message
	object responseObject
	events int // sent so far
	buffer []byte
	gone   bool // the client has gone
}

// playResponse sends the message in the form of Responses, whole or as a stream, as the
// request asks.
func (m Message) playResponse(x *exchange) {
	if !x.wait(m.Delay) {
		return
	}
	r := &response{x: x, m: m, object: responseObject{
		ID: fmt.Sprintf("resp_%d", x.serial), Object: "response", CreatedAt: x.server.created, Status: "in_progress", Model: x.request.Model, Output: []any{},
	}}
	if x.request.Stream {
		header := x.w.Header()
		header.Set("Content-Type", "text/event-stream; charset=utf-8")
		header.Set("Cache-Control", "no-cache")
		r.event("response.created", map[string]any{"response": r.object})
		r.event("response.in_progress", map[string]any{"response": r.object})
	}
	r.items()
	r.object.Status = "completed"
	switch m.Finish {
	case "length":
		r.object.Status, r.object.Incomplete = "incomplete", &incompleteObject{"max_output_tokens"}
	case "content_filter":
		r.object.Status, r.object.Incomplete = "incomplete", &incompleteObject{"content_filter"}
	}
	r.object.Usage = r.usage()
	if x.request.Stream {
		r.event("response."+r.object.Status, map[string]any{"response": r.object})
		r.flush()
		return
	}
	x.w.Header().Set("Content-Type", "application/json")
	body, _ := json.Marshal(r.object) // plain values
	x.w.Write(append(body, '\n'))     // the client may have gone
}

// items sends the items of the answer: reasoning, a message and calls.
func (r *response) items() {
	calls := r.m.wireCalls()
	for i := range calls {
		calls[i].ID = strings.ReplaceAll(calls[i].ID, idMark, fmt.Sprintf("call_%d_", r.x.request.Position))
	}
	if r.m.Items != nil {
		r.inOrder(calls)
		return
	}
	says := r.m.Text != "" || r.m.Refusal != ""
	if r.m.Reasoning != "" || r.x.request.encrypt && (says || len(calls) > 0) {
		mark := "message"
		if !says && len(calls) > 0 {
			mark = calls[0].ID
		}
		r.reasoning(r.m.Reasoning, mark, says || len(calls) > 0)
	}
	if says {
		r.message(r.m.Text, r.m.Refusal)
	}
	for _, c := range calls {
		r.call(c)
	}
}

// reasoning sends a reasoning that belongs to the item that follows, if one follows.
func (r *response) reasoning(summary, mark string, followed bool) {
	item := reasoningObject{ID: r.id("rs"), Type: "reasoning", Summary: []textPart{}}
	n := r.open(item)
	if summary != "" {
		about := map[string]any{"item_id": item.ID, "output_index": n, "summary_index": 0}
		r.event("response.reasoning_summary_part.added", about, "part", textPart{Type: "summary_text", Text: new(string)})
		for piece := range pieces(summary, r.size()) {
			r.event("response.reasoning_summary_text.delta", about, "delta", piece)
		}
		r.event("response.reasoning_summary_text.done", about, "text", summary)
		item.Summary = []textPart{{Type: "summary_text", Text: &summary}}
	}
	if r.x.request.encrypt && followed {
		sealed := seal(r.x.request.Model, mark)
		item.Encrypted = &sealed
	}
	r.close(n, item)
}

// message sends the text or the refusal.
func (r *response) message(text, refusal string) {
	item := messageObject{ID: r.id("msg"), Type: "message", Status: "in_progress", Role: "assistant", Content: []textPart{}}
	n := r.open(item)
	about := map[string]any{"item_id": item.ID, "output_index": n, "content_index": 0}
	part := textPart{Type: "output_text", Text: new(string), Annotations: &[]any{}}
	name := "output_text"
	if text == "" {
		text, name, part = refusal, "refusal", textPart{Type: "refusal", Refusal: new(string)}
	}
	r.event("response.content_part.added", about, "part", part)
	for piece := range pieces(text, r.size()) {
		r.event("response."+name+".delta", about, "delta", piece)
	}
	if name == "refusal" {
		part.Refusal = &text
		r.event("response.refusal.done", about, "refusal", text)
	} else {
		part.Text = &text
		r.event("response.output_text.done", about, "text", text)
	}
	r.event("response.content_part.done", about, "part", part)
	item.Status, item.Content = "completed", []textPart{part}
	r.close(n, item)
}

// call sends a call.
func (r *response) call(c deltaCall) {
	item := callObject{ID: r.id("fc"), Type: "function_call", Status: "in_progress", CallID: c.ID, Name: c.Function.Name}
	n := r.open(item)
	about := map[string]any{"item_id": item.ID, "output_index": n}
	for piece := range pieces(c.Function.Arguments, r.size()) {
		r.event("response.function_call_arguments.delta", about, "delta", piece)
	}
	r.event("response.function_call_arguments.done", about, "arguments", c.Function.Arguments)
	item.Status, item.Arguments = "completed", c.Function.Arguments
	r.close(n, item)
}

// id returns the identity of the next item.
func (r *response) id(kind string) string {
	return fmt.Sprintf("%s_%d_%d", kind, r.x.serial, len(r.object.Output))
}

// size returns how many characters a piece has.
func (r *response) size() int {
	if r.m.Delta == 0 {
		return defaultDelta
	}
	return r.m.Delta
}

// open announces an item and returns its position.
func (r *response) open(item any) int {
	n := len(r.object.Output)
	r.event("response.output_item.added", map[string]any{"output_index": n, "item": item})
	return n
}

// close sends an item at its end.
func (r *response) close(n int, item any) {
	r.object.Output = append(r.object.Output, item)
	r.event("response.output_item.done", map[string]any{"output_index": n, "item": item})
}

// event sends an event with members and, optionally, one more.
func (r *response) event(kind string, members map[string]any, more ...any) {
	if !r.x.request.Stream || r.gone {
		return
	}
	all := map[string]any{"type": kind, "sequence_number": r.events}
	for name, value := range members {
		all[name] = value
	}
	if len(more) == 2 {
		all[more[0].(string)] = more[1]
	}
	r.events++
	data := encode(all)
	r.buffer = fmt.Appendf(r.buffer, "event: %s\ndata: %s\n\n", kind, data)
	if r.m.Pace != 0 || len(r.buffer) >= flushAt {
		r.flush()
		r.gone = r.gone || !r.x.wait(r.m.Pace)
	}
}

func (r *response) flush() {
	r.gone = r.gone || !r.x.send(r.buffer)
	r.buffer = r.buffer[:0]
}

// usage returns the tokens of the answer.
func (r *response) usage() *responseUsage {
	u := Usage{PromptTokens: 1 + len(r.x.request.Body)/4, CompletionTokens: 1 + (len(r.m.Text)+len(r.m.Reasoning)+len(r.m.Refusal))/4}
	if r.m.Usage != nil {
		u = *r.m.Usage
	}
	usage := &responseUsage{Input: u.PromptTokens, Output: u.CompletionTokens, Total: u.PromptTokens + u.CompletionTokens}
	usage.InputDetails.Cached, usage.InputDetails.Written = u.CachedTokens, u.CacheWriteTokens
	usage.OutputDetails.Reasoning = u.ReasoningTokens
	return usage
}
