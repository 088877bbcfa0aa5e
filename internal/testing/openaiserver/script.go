// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/textcut"
)

// Script is the list of the server's answers. The zero Script answers every request with
// status 400.
type Script struct {
	// Steps are answered in order: a request whose history holds n assistant messages is
	// at step n, counted from 0.
	Steps []Step
	// Repeat starts over after the last step. Calls should then have an empty ID, because
	// a fixed ID would occur twice in one conversation.
	Repeat bool
	// Provider is "gemini", "kimi" or "deepseek" to refuse also those histories of Chat
	// Completions that Gemini 3, Kimi or DeepSeek refuses, because answers lack its signatures
	// or its reasoning.
	Provider string
}

// Step is one exchange of a script.
type Step struct {
	// Expect describes the required request; its zero value accepts any. It is ignored if
	// [Options.Trust] is set.
	Expect Expect
	// Before are answered first, one for each request that reaches this step, counted
	// over all conversations of the server. A client that retries after a failure
	// eventually gets Reply.
	Before []Reply
	// Reply is the answer. Required.
	Reply Reply
}

// Expect describes a required request. Zero fields are not checked.
type Expect struct {
	// LastRole is the role of the last message.
	LastRole string
	// Contains are pieces of text; each must occur in one of the messages after the last
	// assistant message, or in the very last message if nothing follows it.
	Contains []string
	// ToolMessages is how many tool messages the request must end with.
	ToolMessages int
	// Offers are names of tools that must be offered; others may be offered too.
	Offers []string
	// NoTools requires that no tool is offered.
	NoTools bool
	// Model is the name of the model.
	Model string
}

// Reply is the answer to one request: a [Message], a [Failure], a [Replay], or
// a [Respond] function. The set is closed.
type Reply interface {
	play(*exchange)
}

// Respond computes the reply from the request. It may be called concurrently, must not
// return another Respond, and must not keep the request.
type Respond func(*Request) Reply

// Message is an answer of the model, sent whole or as a stream, as the request asks.
type Message struct {
	// Text is the content. If it is empty and there are Calls or a Refusal, null is sent.
	Text string
	// Reasoning is sent as reasoning_content, before the text, as several compatible
	// servers do.
	Reasoning string
	// Refusal is sent as refusal.
	Refusal string
	// Calls are the tool calls that the model requests.
	Calls []Call
	// Items, if not nil, replace Text, Reasoning, Refusal and Calls, for an answer whose
	// parts have another order.
	Items []Item
	// Finish is the finish_reason. Empty means "tool_calls" with Calls and "stop"
	// without.
	Finish string
	// Usage counts the tokens; nil means an estimate from the sizes.
	Usage *Usage
	// Delta is the number of characters of text or arguments in one chunk of a stream.
	// Zero means 16; negative means all in one chunk.
	Delta int
	// Pace is the pause after each chunk of a stream. Zero writes the stream as fast as
	// possible, many chunks to a packet; negative flushes after each chunk without a
	// pause.
	Pace time.Duration
	// Delay is the time before the headers are sent.
	Delay time.Duration
}

// Call is one tool call that a model requests.
type Call struct {
	// ID identifies the call. Empty means an ID made from the position in the
	// conversation, which is unique within it.
	ID string
	// Name is the name of the tool as offered to the model.
	Name string
	// Arguments is the text of the arguments, sent unchanged, valid or not. Empty means
	// "{}".
	Arguments string
	// Extra is sent as extra_content by Chat Completions, as Gemini sends signatures.
	Extra json.RawMessage
}

// Usage counts tokens.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	// TotalTokens is the total count. Zero means the sum of both counts.
	TotalTokens int `json:"total_tokens"`
	// CachedTokens is the number of prompt tokens that were read from a cache.
	CachedTokens int `json:"cached_tokens"`
	// CacheWriteTokens is the number of prompt tokens that were written to a cache.
	CacheWriteTokens int `json:"cache_write_tokens"`
	// ReasoningTokens is the number of completion tokens that are not shown.
	ReasoningTokens int `json:"reasoning_tokens"`
}

// check returns how the request differs from the expectation, or "".
func (e *Expect) check(r *Request) string {
	last := r.Messages[len(r.Messages)-1]
	switch {
	case e.Model != "" && e.Model != r.Model:
		return fmt.Sprintf("expected the model %q, got %q", e.Model, r.Model)
	case e.LastRole != "" && e.LastRole != last.Role:
		return fmt.Sprintf("expected the last message to have the role %q, got %q", e.LastRole, last.Role)
	case e.NoTools && len(r.Tools) > 0:
		return fmt.Sprintf("expected no tools, got %s", strings.Join(r.ToolNames(), ", "))
	}
	fresh := r.fresh()
	if got := countTools(fresh); e.ToolMessages != 0 && e.ToolMessages != got {
		return fmt.Sprintf("expected %d tool messages at the end, got %d", e.ToolMessages, got)
	}
	for _, want := range e.Contains {
		if !slices.ContainsFunc(fresh, func(m RequestMessage) bool { return strings.Contains(m.Text, want) }) {
			return fmt.Sprintf("expected %q in the new messages, got %q", want, excerpt(fresh))
		}
	}
	for _, want := range e.Offers {
		if !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == want }) {
			return fmt.Sprintf("expected the tool %q to be offered, got %s", want, strings.Join(r.ToolNames(), ", "))
		}
	}
	return ""
}

// countTools counts the tool messages at the end of ms.
func countTools(ms []RequestMessage) int {
	n := 0
	for n < len(ms) && ms[len(ms)-1-n].Role == "tool" {
		n++
	}
	return n
}

// excerpt joins the texts of ms, cut to a length suitable for an error message.
func excerpt(ms []RequestMessage) string {
	texts := make([]string, len(ms))
	for i, m := range ms {
		texts[i] = m.Text
	}
	return textcut.Bytes(strings.Join(texts, " | "), 500)
}
