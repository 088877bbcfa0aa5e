// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"encoding/json"
	"strings"
)

// The two calls in most recordings.
func readCall(id string) WantCall {
	return WantCall{ID: id, Name: "files__read", Arguments: `{"path":"a.txt"}`}
}

func timeCall(id string) WantCall {
	return WantCall{ID: id, Name: "time__now", Arguments: `{"zone":"UTC"}`}
}

// wantCalls is an answer with calls and the finish reason "tool_calls".
func wantCalls(calls ...WantCall) Want { return Want{Calls: calls, Finish: "tool_calls"} }

// wantText is an answer with text and the finish reason "stop".
func wantText(text string) Want { return Want{Text: text, Finish: "stop"} }

func wantHello() Want { return wantText("Hello there.") }

func withUsage(w Want) Want {
	w.Usage = &Usage{PromptTokens: 9, CompletionTokens: 4, TotalTokens: 13}
	return w
}

func withFinish(w Want, finish string) Want {
	w.Finish = finish
	return w
}

func callOddities() []oddity {
	both := wantCalls(readCall("call_a"), timeCall("call_b"))
	nameless := wantCalls(readCall(""), timeCall(""))
	one := wantCalls(readCall("call_a"))
	return []oddity{
		{name: "index-missing", about: "two calls, no index on either (Gemini; older Ollama)", want: both},
		{name: "index-missing-fragments", about: "no index, and the arguments in fragments that belong to the call before them", want: both},
		{name: "index-always-zero", about: "two calls with the index 0 on both (Ollama, LiteLLM)", want: both},
		{name: "index-always-zero-fragments", about: "the index 0 on every fragment of two calls; a new id starts a new call", want: both},
		{name: "index-from-one", about: "indexes count from 1", want: both},
		{name: "index-interleaved", about: "fragments of two calls by turns, as the protocol allows", want: both},
		{name: "calls-in-one-delta", about: "both calls in one delta", want: both},
		{name: "same-call-twice", about: "the model asks for the same thing twice: still two calls",
			want: wantCalls(readCall("call_a"), readCall("call_b"))},
		{name: "id-empty", about: "the id is an empty string (Gemini)", want: nameless},
		{name: "id-empty-index-zero", about: "empty ids and the index 0 on both: a name after complete arguments starts a new call", want: nameless},
		{name: "id-missing", about: "no id at all", want: nameless},
		{name: "id-repeated", about: "two calls with the same id", want: wantCalls(readCall("call_a"), timeCall(""))},
		{name: "index-always-zero-empty-object", about: "the index 0 on two calls of the same tool, the first with the arguments {}, the names alone", want: wantCalls(WantCall{Name: "time__now", Arguments: "{}"}, timeCall(""))},
		{name: "id-repeated-empty-object", about: "the same with the same id on every fragment", want: wantCalls(WantCall{ID: "call_a", Name: "time__now", Arguments: "{}"}, timeCall(""))},
		{name: "index-missing-empty-object", about: "the same with no index and no id", want: wantCalls(WantCall{Name: "time__now", Arguments: "{}"}, timeCall(""))},
		{name: "id-in-each-fragment", about: "the id on every fragment of one call", want: one},
		{name: "nulls-in-fragments", about: "id and name are null on later fragments", want: one},
		{name: "empties-in-fragments", about: "id and name are empty strings on later fragments", want: one},
		{name: "name-split", about: "the name in two fragments", want: one},
		{name: "name-repeated", about: "the name on every fragment (older llama.cpp)", want: one},
		{name: "type-missing", about: "a call without a type", want: one},
		{name: "tool-calls-empty", about: "tool_calls an empty array or null beside text", want: wantHello()},
		{name: "gemini", about: "no index, empty ids, null content, calls with the finish reason stop", want: withFinish(nameless, "stop")},
		{name: "ollama", about: "the index 0 on both calls, the role on every chunk, the finish reason stop", want: withFinish(both, "stop")},
	}
}

func argumentOddities() []oddity {
	empty := wantCalls(WantCall{ID: "call_a", Name: "time__now", Arguments: "{}"})
	cut := wantCalls(WantCall{ID: "call_a", Name: "files__read", Arguments: `{"path":"a.`, Broken: true})
	signed := readCall("call_a")
	signed.Extra = json.RawMessage(`{"google":{"thought_signature":"c2lnbmF0dXJl"}}`)
	return []oddity{
		{name: "arguments-whole", about: "all arguments in the chunk that starts the call", want: wantCalls(readCall("call_a"))},
		{name: "arguments-null", about: "arguments are null", want: empty},
		{name: "arguments-missing", about: "no arguments member", want: empty},
		{name: "arguments-empty", about: "arguments are an empty string", want: empty},
		{name: "arguments-after-empty-object", about: "the arguments {} in the chunk that starts the call, then the real ones (Envoy AI Gateway, LiteLLM)",
			want: wantCalls(readCall("call_a"), timeCall("call_b"))},
		{name: "arguments-after-empty-object-same-id", about: "the same with the id on every fragment",
			want: wantCalls(readCall("call_a"), timeCall("call_b"))},
		{name: "arguments-after-empty-object-late-id", about: "the same with the id on the second fragment", want: wantCalls(readCall("call_a"))},
		{name: "arguments-object", about: "arguments are an object, not a string", want: wantCalls(readCall("call_a"))},
		{name: "arguments-cut-length", about: "arguments cut by the length limit", want: withFinish(cut, "length")},
		{name: "arguments-cut-unsaid", about: "arguments cut by the length limit, the finish reason tool_calls (vLLM)", want: cut},
		{name: "thought-signature", about: "extra_content on a call, to be sent back with it (Gemini 3)", want: wantCalls(signed)},
	}
}

func finishOddities() []oddity {
	return []oddity{
		{name: "finish-stop-with-calls", about: "a call with the finish reason stop", want: withFinish(wantCalls(readCall("call_a")), "stop")},
		{name: "finish-with-last-call", about: "the finish reason in the chunk of the last call", want: wantCalls(readCall("call_a"), timeCall("call_b"))},
		{name: "finish-then-null", about: "a chunk with a null finish reason after the one that finished", want: wantHello()},
		{name: "finish-empty-string", about: "the finish reason is an empty string until the end", want: wantHello()},
		{name: "finish-missing", about: "no finish reason, but [DONE]", want: Want{Text: "Hello there."}},
		{name: "finish-length", about: "text cut by the length limit", want: withFinish(wantText("Hello the"), "length")},
		{name: "content-filter", about: "text cut by a content filter", want: withFinish(wantText("Hello"), "content_filter")},
		{name: "refusal", about: "the model refuses", want: Want{Refusal: "I can't help with that.", Finish: "stop"}},
	}
}

func contentOddities() []oddity {
	reasoned := wantHello()
	reasoned.Reasoning = "The user greets."
	spoken := wantCalls(readCall("call_a"))
	spoken.Text = "Let me look."
	path := wantCalls(WantCall{ID: "call_a", Name: "files__read", Arguments: `{"path":"日本.txt"}`})
	path.Text = "Grüße, 世界 👩‍🚀"
	return []oddity{
		{name: "content-null", about: "content is null on every chunk", want: wantCalls(readCall("call_a"))},
		{name: "reasoning-content", about: "reasoning as reasoning_content (DeepSeek, vLLM)", want: reasoned},
		{name: "reasoning", about: "reasoning as reasoning (OpenRouter, Ollama)", want: reasoned},
		{name: "text-then-calls", about: "text ahead of a call, as the protocol allows", want: spoken},
		{name: "huge-delta", about: "a mebibyte of text in one event", want: wantText(strings.Repeat("a", hugeDelta))},
		{name: "utf8-split", about: "every byte by itself, so that characters and line ends are split", want: path, size: 1},
		{name: "escapes", about: "escaped surrogates and what JavaScript cannot bear", want: wantText("🚀 \u2028 <&>")},
	}
}

func chunkOddities() []oddity {
	return []oddity{
		{name: "choices-empty", about: "a first chunk without choices (Azure)", want: wantHello()},
		{name: "choices-null", about: "choices are null", want: withUsage(wantHello())},
		{name: "usage-last", about: "usage null on every chunk but the last, which has no choices: as OpenAI does it", want: withUsage(wantHello())},
		{name: "usage-none", about: "no usage", want: wantHello()},
		{name: "usage-cumulative", about: "usage so far on every chunk: the last counts, not the sum", want: withUsage(wantHello())},
		{name: "usage-with-choices", about: "usage on the chunk that finishes", want: withUsage(wantHello())},
		{name: "usage-then-zero", about: "usage, then a usage of zeros", want: withUsage(wantHello())},
		{name: "chunk-id-changes", about: "a new id on every chunk", want: withUsage(wantHello())},
		{name: "chunk-id-empty", about: "no id on the usage chunk", want: withUsage(wantHello())},
		{name: "error-null", about: "a null error on every chunk", want: wantHello()},
		{name: "error-midstream", about: "an error object in the middle",
			want: Want{Text: "Hel", Problem: ServerSaid, Message: "The server had an error"}},
		{name: "error-first", about: "an error object and nothing else", want: Want{Problem: ServerSaid, Message: "The server had an error"}},
		{name: "error-event", about: "an error object in an event named error",
			want: Want{Text: "Hel", Problem: ServerSaid, Message: "The server had an error"}},
		{name: "error-with-choices", about: "an error beside choices with the finish reason error (OpenRouter)",
			want: Want{Text: "Hel", Finish: "error", Problem: ServerSaid, Message: "Provider disconnected"}},
	}
}

func lineOddities() []oddity {
	return []oddity{
		{name: "done-missing", about: "a finish reason, but no [DONE]", want: wantHello()},
		{name: "last-event-unended", about: "the last event ends with the body: no line end", want: wantHello()},
		{name: "last-event-one-line-end", about: "the last event has no blank line after it", want: wantHello()},
		{name: "comments", about: "comments to keep the connection alive", want: wantHello()},
		{name: "crlf", about: "CRLF line ends", want: wantHello()},
		{name: "bom", about: "a byte order mark at the start", want: wantHello()},
		{name: "event-lines", about: "event, id and retry lines", want: wantHello()},
		{name: "no-space-after-colon", about: "no space after data:", want: wantHello()},
		{name: "data-in-two-lines", about: "an event in two data lines", want: wantHello()},
		{name: "blank-lines", about: "more blank lines than needed", want: wantHello()},
		{name: "after-done", about: "chunks after [DONE], which do not count", want: wantHello()},
	}
}

func endOddities() []oddity {
	interrupted := Want{Text: "Hello the", Problem: Interrupted}
	nothing := Want{Problem: Interrupted}
	calls := wantCalls(readCall("call_a"))
	return []oddity{
		{name: "eof-empty", about: "an empty body", want: nothing},
		{name: "eof-comments", about: "comments and nothing else", want: nothing},
		{name: "eof-in-text", about: "the body ends in the middle of a text", want: interrupted},
		{name: "eof-in-call", about: "the body ends in the middle of a call", want: nothing},
		{name: "eof-in-event", about: "the body ends in the middle of an event", want: interrupted},
		{name: "cut-in-event", about: "the connection closes in the middle of an event", want: interrupted, end: EndCut},
		{name: "reset-in-call", about: "the connection is reset in the middle of a call", want: nothing, end: EndReset},
		{name: "html", about: "a page of HTML with the status 200 (captive portals, wrong base URLs)", want: Want{Problem: NotAStream}},
		{name: "json-completion", about: "a whole completion where a stream was asked for", want: withUsage(wantHello())},
		{name: "json-completion-calls", about: "a whole completion with a call, on many lines", want: withUsage(calls)},
		{name: "json-error", about: "an error object with the status 200", want: Want{Problem: ServerSaid, Message: "The server had an error"}},
	}
}
