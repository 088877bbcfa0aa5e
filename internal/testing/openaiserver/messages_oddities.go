// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The streams of Messages are built from the events that Anthropic documents (Build with
// Claude, Streaming messages), changed in one way each. A report that a comment names shows
// the change.

const (
	messageBegins = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"stop_sequence":null,` +
		`"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`
	messageEnds = `{"type":"message_stop"}`
	claudePing  = `{"type":"ping"}`
)

// stopped is the event with the reason why the model stopped.
func stopped(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":4}}`
}

// block is a block of a stream: how it begins, its deltas and its end.
func block(index int, begin string, deltas ...string) []string {
	events := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, begin)}
	for _, delta := range deltas {
		events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta))
	}
	return append(events, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
}

// answer is a message with blocks.
func answer(reason string, blocks ...[]string) []string {
	return append(append([]string{messageBegins}, slices.Concat(blocks...)...), stopped(reason), messageEnds)
}

// helloBlock, readBlock and timeBlock are what most of the streams have.
func helloBlock(index int) []string {
	return block(index, `{"type":"text","text":""}`, `{"type":"text_delta","text":"Hello "}`, `{"type":"text_delta","text":"there."}`)
}

func readBlock(index int) []string {
	return block(index, `{"type":"tool_use","id":"toolu_a","name":"files__read","input":{}}`,
		`{"type":"input_json_delta","partial_json":""}`, `{"type":"input_json_delta","partial_json":"{\"path\":"}`, `{"type":"input_json_delta","partial_json":"\"a.txt\"}"}`)
}

func timeBlock(index int) []string {
	return block(index, `{"type":"tool_use","id":"toolu_b","name":"time__now","input":{}}`, `{"type":"input_json_delta","partial_json":"{\"zone\":\"UTC\"}"}`)
}

// messagesOddities are texts.
func messagesOddities() []oddity {
	hello := answer("end_turn", helloBlock(0))
	said := withUsage(wantHello())
	all := []oddity{
		{name: "as-documented", about: "nothing unusual", data: sse(insert(hello, 2, claudePing)...)},
		{name: "crlf", about: "CRLF line ends", data: bytes.ReplaceAll(sse(hello...), []byte("\n"), []byte("\r\n"))},
		{name: "bom", about: "a byte order mark at the start", data: append([]byte("\ufeff"), sse(hello...)...)},
		{name: "comments", about: "comments to keep the connection alive (OpenRouter)",
			data: bytes.ReplaceAll(sse(hello...), []byte("event: "), []byte(": OPENROUTER PROCESSING\n\nevent: "))},
		{name: "pings", about: "a ping before each event", data: sse(between(hello, claudePing)...)},
		{name: "done-at-the-end", about: "[DONE] after the last event", data: append(sse(hello...), "data: [DONE]\n\n"...)},
		{name: "event-lines-missing", about: "no line names the events", data: dataOnly(hello...)},
		{name: "type-missing", about: "only the lines name the events",
			data: bytes.ReplaceAll(bytes.ReplaceAll(sse(hello...), []byte(`{"type":"message_`), []byte(`{"kind":"message_`)), []byte(`{"type":"content_`), []byte(`{"kind":"content_`))},
		{name: "unknown-events", about: "events and members of tomorrow",
			data: sse(between(edit(hello, `"index":0`, `"index":0,"tomorrow":{}`), `{"type":"tomorrow","index":0,"delta":{"type":"text_delta","text":"lost"}}`)...)},
		{name: "unknown-deltas", about: "deltas of tomorrow",
			data: sse(insert(hello, 2, `{"type":"content_block_delta","index":0,"delta":{"type":"tomorrow_delta","text":"lost"}}`)...)},
		{name: "empty-deltas", about: "a delta without text", data: sse(insert(hello, 2, edit(hello[2:3], "Hello ", "")...)...)},
		{name: "foreign-deltas", about: "empty pieces of arguments amid a text (BerriAI/litellm#29286)",
			data: sse(insert(hello, 3, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`)...)},
		{name: "block-stop-missing", about: "no block is ended", data: sse(without(hello, "block_stop")...)},
		{name: "message-stop-missing", about: "the body ends after the reason to stop", data: sse(without(hello, "message_stop")...)},
		{name: "index-from-one", about: "indexes count from 1", data: sse(edit(hello, `"index":0`, `"index":1`)...)},
		{name: "index-missing", about: "no index", data: sse(edit(hello, `"index":0,`, ``)...)},
		{name: "text-in-the-beginning", about: "the block begins with some of its text",
			data: sse(edit(insert(hello[:2:2], 2, hello[3:]...), `"text":""`, `"text":"Hello "`)...)},
		{name: "usage-cumulative", about: "usage so far in two events: the last counts, not the sum",
			data: sse(insert(hello, 3, `{"type":"message_delta","delta":{"stop_reason":null},"usage":{"input_tokens":9,"output_tokens":2}}`)...)},
		{name: "usage-null", about: "members of the usage are null",
			data: sse(edit(hello, `"cache_creation_input_tokens":0,"cache_read_input_tokens":0`, `"cache_creation_input_tokens":null,"cache_read_input_tokens":null`)...)},
		{name: "usage-at-the-end", about: "the input is counted at the end (Ollama)",
			data: sse(edit(edit(hello, `"input_tokens":9`, `"input_tokens":0`), `"usage":{"output_tokens":4}`, `"usage":{"input_tokens":9,"output_tokens":4}`)...)},
		{name: "after-the-end", about: "events after the last one, which do not count", data: append(sse(hello...), sse(hello[2])...)},
		{name: "whole", about: "a message in one piece where a stream was asked for", kind: "application/json", data: []byte(
			`{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[{"type":"text","text":"Hello there."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":4}}`)},
	}
	for i := range all {
		all[i].want = said
	}
	return all
}

// messagesTextOddities are texts with something special in them.
func messagesTextOddities() []oddity {
	reasoned := withUsage(wantHello())
	reasoned.Reasoning = "The user greets."
	wide := "Grüße, 世界 👩‍🚀"
	think := func(begin string, deltas ...string) []string {
		return answer("end_turn", block(0, begin, deltas...), helloBlock(1))
	}
	const greets = `{"type":"thinking_delta","thinking":"The user greets."}`
	text := func(text string) []string {
		return block(0, `{"type":"text","text":""}`, `{"type":"text_delta","text":"`+text+`"}`)
	}
	return []oddity{
		{name: "thinking", about: "thinking and its signature", want: reasoned,
			data: sse(think(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"The user "}`, `{"type":"thinking_delta","thinking":"greets."}`, `{"type":"signature_delta","signature":"c2ln"}`)...)},
		{name: "thinking-unsigned", about: "thinking without a signature (Ollama, vLLM, LM Studio)", want: reasoned,
			data: sse(think(`{"type":"thinking","thinking":""}`, greets)...)},
		{name: "thinking-members-missing", about: "the block begins with its type alone (llama.cpp)", want: reasoned,
			data: sse(think(`{"type":"thinking"}`, greets)...)},
		{name: "thinking-omitted", about: "a signature without thinking", want: withUsage(wantHello()),
			data: sse(think(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"signature_delta","signature":"c2ln"}`)...)},
		{name: "thinking-redacted", about: "encrypted thinking", want: withUsage(wantHello()),
			data: sse(think(`{"type":"redacted_thinking","data":"c2VjcmV0"}`)...)},
		{name: "citations", about: "citations amid a text", want: withUsage(wantHello()),
			data: sse(insert(answer("end_turn", helloBlock(0)), 3, `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"a"}}}`)...)},
		{name: "usage-none", about: "no usage", want: wantHello(), data: sse(edit(edit(answer("end_turn", helloBlock(0)), `,"usage":{"output_tokens":4}`, ``),
			`,"usage":{"input_tokens":9,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}`, ``)...)},
		{name: "utf8-split", about: "every byte by itself", want: withUsage(wantText(wide)), size: 1, data: sse(answer("end_turn", text(wide))...)},
		{name: "huge-delta", about: "a mebibyte of text in one event", want: withUsage(wantText(strings.Repeat("a", hugeDelta))),
			data: sse(answer("end_turn", text(strings.Repeat("a", hugeDelta)))...)},
		{name: "refusal", about: "the model refuses", want: withFinish(withUsage(wantText("I can't.")), "refusal"),
			data: sse(answer("refusal", text("I can't."))...)},
		{name: "refusal-silent", about: "the model refuses without a word", want: withFinish(withUsage(Want{}), "refusal"), data: sse(answer("refusal")...)},
		{name: "max-tokens", about: "the text is cut by the limit of tokens", want: withFinish(withUsage(wantText("Hello the")), "length"),
			data: sse(answer("max_tokens", text("Hello the"))...)},
		{name: "window-exceeded", about: "the text is cut by the context window", want: withFinish(withUsage(wantText("Hello the")), "length"),
			data: sse(answer("model_context_window_exceeded", text("Hello the"))...)},
		{name: "stop-sequence", about: "the text ends with a stop sequence", want: withUsage(wantHello()),
			data: sse(answer("stop_sequence", helloBlock(0))...)},
		{name: "message-start-missing", about: "the stream begins with a block",
			want: Want{Text: "Hello there.", Finish: "stop", Usage: &Usage{CompletionTokens: 4, TotalTokens: 4}},
			data: sse(answer("end_turn", helloBlock(0))[1:]...)},
	}
}

// messagesCallOddities are calls.
func messagesCallOddities() []oddity {
	read, now := readCall("toolu_a"), timeCall("toolu_b")
	both, one := withUsage(wantCalls(read, now)), withUsage(wantCalls(read))
	two := answer("tool_use", readBlock(0), timeBlock(1))
	call := func(begin string, pieces ...string) []string { return answer("tool_use", block(0, begin, pieces...)) }
	const (
		begin = `{"type":"tool_use","id":"toolu_a","name":"files__read","input":{}}`
		bare  = `{"type":"tool_use","id":"toolu_a","name":"files__read"}`
		full  = `{"type":"tool_use","id":"toolu_a","name":"files__read","input":{"path":"a.txt"}}`
		piece = `{"type":"input_json_delta","partial_json":"{\"path\":\"a.txt\"}"}`
	)
	empty := withUsage(wantCalls(WantCall{ID: "toolu_a", Name: "files__read", Arguments: "{}"}))
	broken := withUsage(wantCalls(WantCall{ID: "toolu_a", Name: "files__read", Arguments: `{"path":`, Broken: true}))
	spoken := withUsage(wantCalls(read))
	spoken.Text = "Hello there."
	interleaved := slices.Concat(two[:1], two[1:2], two[6:7], two[2:5], two[7:8], two[5:6], two[8:])
	return []oddity{
		{name: "calls", about: "two calls, as documented", want: both, data: sse(two...)},
		{name: "text-then-call", about: "a text before a call", want: spoken, data: sse(answer("tool_use", helloBlock(0), readBlock(1))...)},
		{name: "calls-interleaved", about: "the events of two calls by turns", want: both, data: sse(interleaved...)},
		{name: "calls-at-one-index", about: "both calls have the index 0", want: both, data: sse(edit(two, `"index":1`, `"index":0`)...)},
		{name: "calls-without-ids", about: "no call has an id", want: withUsage(wantCalls(readCall(""), timeCall(""))),
			data: sse(edit(edit(two, `"id":"toolu_a",`, ``), `"toolu_b"`, `""`)...)},
		{name: "calls-with-one-id", about: "both calls have the same id", want: withUsage(wantCalls(read, timeCall(""))),
			data: sse(edit(two, "toolu_b", "toolu_a")...)},
		{name: "input-missing", about: "the call begins without input (ggml-org/llama.cpp#22960)", want: one, data: sse(call(bare, piece)...)},
		{name: "input-in-the-beginning", about: "the call begins with all of its input", want: one, data: sse(call(full)...)},
		{name: "input-in-the-beginning-then-empty", about: "all of the input at the beginning, and then an empty piece", want: one,
			data: sse(call(full, `{"type":"input_json_delta","partial_json":""}`)...)},
		{name: "input-twice", about: "all of the input at the beginning, and then in pieces", want: one, data: sse(call(full, piece)...)},
		{name: "input-empty", about: "a call without input", want: empty, data: sse(call(begin)...)},
		{name: "input-empty-pieces", about: "only empty pieces of input", want: empty,
			data: sse(call(begin, `{"type":"input_json_delta","partial_json":""}`)...)},
		{name: "input-partial", about: "input that is not JSON (fine-grained tool streaming)", want: broken,
			data: sse(call(begin, `{"type":"input_json_delta","partial_json":"{\"path\":"}`)...)},
		{name: "input-cut", about: "input cut by the limit of tokens",
			want: withFinish(withUsage(wantCalls(WantCall{ID: "toolu_a", Name: "files__read", Arguments: `{"path": [cut off]`, Broken: true})), "length"),
			data: sse(edit(call(begin, `{"type":"input_json_delta","partial_json":"{\"path\":"}`), `"stop_reason":"tool_use"`, `"stop_reason":"max_tokens"`)...)},
		{name: "end-turn-with-calls", about: "a call with the reason end_turn", want: one, data: sse(answer("end_turn", readBlock(0))...)},
		{name: "text-in-a-call", about: "text with the index of a call (sgl-project/sglang#24293)",
			want: withUsage(Want{Text: "Hm.", Calls: []WantCall{read}, Finish: "tool_calls"}),
			data: sse(insert(call(begin, piece), 3, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hm."}}`)...)},
	}
}

// messagesEndOddities are errors, and streams that break off.
func messagesEndOddities() []oddity {
	hello, call := answer("end_turn", helloBlock(0)), answer("tool_use", readBlock(0))
	broken := Want{Text: "Hello ", Problem: ServerSaid, Message: "Overloaded"}
	interrupted := Want{Text: "Hello ", Problem: Interrupted}
	nothing := Want{Problem: Interrupted}
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`
	after := func(events []string, n int, more ...string) []byte { return sse(append(events[:n:n], more...)...) }
	inEvent := after(hello, 4)[:len(after(hello, 4))-20]
	return []oddity{
		{name: "overloaded", about: "overloaded_error amid the text", want: broken, data: after(hello, 3, overloaded)},
		{name: "error-first", about: "an error and nothing else", want: Want{Problem: ServerSaid, Message: "Overloaded"}, data: sse(overloaded)},
		{name: "error-untyped", about: "an error object without a type (OpenRouter, LiteLLM)", want: broken,
			data: append(after(hello, 3), "data: {\"error\":{\"code\":529,\"message\":\"Overloaded\"}}\n\n"...)},
		{name: "error-line", about: "only the line names the error", want: broken,
			data: append(after(hello, 3), "event: error\ndata: {\"message\":\"Overloaded\"}\n\n"...)},
		{name: "eof-empty", about: "an empty body", want: nothing, data: []byte{}},
		{name: "eof-pings", about: "pings and nothing else", want: nothing, data: sse(claudePing, claudePing)},
		{name: "eof-in-text", about: "the body ends in the middle of a text", want: interrupted, data: after(hello, 3)},
		{name: "eof-before-the-reason", about: "the reason to stop is missing", want: Want{Text: "Hello there.", Problem: Interrupted},
			data: sse(without(hello, "message_delta")...)},
		{name: "eof-in-event", about: "the body ends in the middle of an event", want: interrupted, data: inEvent},
		{name: "cut-in-event", about: "the connection closes in the middle of an event", want: interrupted, data: inEvent, end: EndCut},
		{name: "reset-in-call", about: "the connection is reset in the middle of a call", want: nothing, data: after(call, 3), end: EndReset},
		{name: "html", about: "a page of HTML with the status 200", want: Want{Problem: NotAStream},
			data: []byte("<html><body>Sign in</body></html>"), kind: "text/html"},
		{name: "json-error", about: "an error object with the status 200", want: Want{Problem: ServerSaid, Message: "Overloaded"},
			data: []byte(overloaded), kind: "application/json"},
	}
}
