// SPDX-License-Identifier: Apache-2.0

package openaiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The streams of Responses are built from the events that OpenAI documents (API reference,
// Streaming events), changed in one way each. A report that a comment names shows the change.

// sse joins events to a stream as OpenAI and Anthropic frame it: a line with the type of the
// event, and one with its data.
func sse(events ...string) []byte {
	var body []byte
	for _, data := range events {
		var event struct{ Type string }
		_ = json.Unmarshal([]byte(data), &event) // some oddities are not JSON
		if event.Type != "" {
			body = fmt.Appendf(body, "event: %s\n", event.Type)
		}
		body = fmt.Appendf(body, "data: %s\n\n", data)
	}
	return body
}

// dataOnly joins events to a stream without the lines that name them.
func dataOnly(events ...string) []byte {
	return []byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\n")
}

// edit returns the events with a text replaced in each of them.
func edit(events []string, from, to string) []string {
	edited := make([]string, len(events))
	for i, event := range events {
		edited[i] = strings.ReplaceAll(event, from, to)
	}
	return edited
}

// without returns the events whose type contains none of the given texts.
func without(events []string, types ...string) []string {
	var left []string
	for _, event := range events {
		var known struct{ Type string }
		_ = json.Unmarshal([]byte(event), &known) // all events of the recordings are JSON
		kept := true
		for _, t := range types {
			kept = kept && !strings.Contains(known.Type, t)
		}
		if kept {
			left = append(left, event)
		}
	}
	return left
}

// between returns the events with one more before each.
func between(events []string, more string) []string {
	var all []string
	for _, event := range events {
		all = append(all, more, event)
	}
	return all
}

const (
	responseBegins = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"model":"m-1","output":[],"usage":null}}`
	responseGoesOn = `{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"model":"m-1","output":[],"usage":null}}`
	helloItem      = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello there.","annotations":[],"logprobs":[]}]}`
	readItem       = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_a","name":"files__read","arguments":"{\"path\":\"a.txt\"}"}`
	timeItem       = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_b","name":"time__now","arguments":"{\"zone\":\"UTC\"}"}`
	responseUsed   = `"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":13}`
)

// ended is the last event of a response with these items.
func ended(items ...string) string {
	return `{"type":"response.completed","sequence_number":99,"response":{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"m-1","output":[` +
		strings.Join(items, ",") + `],` + responseUsed + `}}`
}

// cutShort is the last event of a response that is incomplete.
func cutShort(reason string, items ...string) string {
	event := strings.ReplaceAll(ended(items...), "completed\"", "incomplete\"")
	return strings.Replace(event, `"incomplete_details":null`, `"incomplete_details":{"reason":"`+reason+`"}`, 1)
}

// helloEvents is a response with a text.
func helloEvents() []string {
	at := `"item_id":"msg_1","output_index":0,"content_index":0`
	return []string{
		responseBegins, responseGoesOn,
		`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
		`{"type":"response.content_part.added","sequence_number":3,` + at + `,"part":{"type":"output_text","text":"","annotations":[]}}`,
		`{"type":"response.output_text.delta","sequence_number":4,` + at + `,"delta":"Hello ","logprobs":[]}`,
		`{"type":"response.output_text.delta","sequence_number":5,` + at + `,"delta":"there.","logprobs":[]}`,
		`{"type":"response.output_text.done","sequence_number":6,` + at + `,"text":"Hello there.","logprobs":[]}`,
		`{"type":"response.content_part.done","sequence_number":7,` + at + `,"part":{"type":"output_text","text":"Hello there.","annotations":[]}}`,
		`{"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":` + helloItem + `}`,
		ended(helloItem),
	}
}

// callEvents are the events of a call, at a position.
func callEvents(index int, item string) []string {
	var call callObject
	_ = json.Unmarshal([]byte(item), &call) // one of the items above
	at := fmt.Sprintf(`"item_id":%q,"output_index":%d`, call.ID, index)
	half := len(call.Arguments) / 2
	return []string{
		fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"id":%q,"type":"function_call","status":"in_progress","call_id":%q,"name":%q,"arguments":""}}`,
			index, call.ID, call.CallID, call.Name),
		fmt.Sprintf(`{"type":"response.function_call_arguments.delta",%s,"delta":%q}`, at, call.Arguments[:half]),
		fmt.Sprintf(`{"type":"response.function_call_arguments.delta",%s,"delta":%q}`, at, call.Arguments[half:]),
		fmt.Sprintf(`{"type":"response.function_call_arguments.done",%s,"arguments":%q}`, at, call.Arguments),
		fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item),
	}
}

// bothCalls is a response with two calls.
func bothCalls() []string {
	events := append([]string{responseBegins}, callEvents(0, readItem)...)
	return append(append(events, callEvents(1, timeItem)...), ended(readItem, timeItem))
}

// oneCall is a response with a call.
func oneCall() []string {
	return append(append([]string{responseBegins}, callEvents(0, readItem)...), ended(readItem))
}

// insert returns the events with more of them at a position.
func insert(events []string, at int, more ...string) []string {
	return slices.Insert(slices.Clone(events), at, more...)
}

// responsesOddities are texts.
func responsesOddities() []oddity {
	hello := helloEvents()
	said := withUsage(wantHello())
	all := []oddity{
		{name: "as-documented", about: "nothing unusual", data: sse(hello...)},
		{name: "crlf", about: "CRLF line ends", data: bytes.ReplaceAll(sse(hello...), []byte("\n"), []byte("\r\n"))},
		{name: "bom", about: "a byte order mark at the start", data: append([]byte("\ufeff"), sse(hello...)...)},
		{name: "comments", about: "comments to keep the connection alive (OpenRouter)",
			data: bytes.ReplaceAll(sse(hello...), []byte("event: "), []byte(": OPENROUTER PROCESSING\n\nevent: "))},
		{name: "done-at-the-end", about: "[DONE] after the last event (OpenRouter, vLLM)", data: append(sse(hello...), "data: [DONE]\n\n"...)},
		{name: "event-lines-missing", about: "no line names the events (OpenRouter)", data: dataOnly(hello...)},
		{name: "type-missing", about: "only the lines name the events",
			data: bytes.ReplaceAll(sse(hello...), []byte(`"type":"response.`), []byte(`"kind":"response.`))},
		{name: "obfuscation", about: "random text that hides the length of a delta", data: sse(edit(hello, `"delta":`, `"obfuscation":"vq7wPz","delta":`)...)},
		{name: "sequence-gaps", about: "numbers of events are missing, or skip some",
			data: sse(edit(edit(hello, `"sequence_number":4,`, ``), `"sequence_number":5`, `"sequence_number":50`)...)},
		{name: "empty-deltas", about: "a delta without text", data: sse(insert(hello, 5, edit(hello[4:5], `"Hello "`, `""`)...)...)},
		{name: "keepalive", about: "events that mean nothing", data: sse(between(hello, `{"type":"keepalive","sequence_number":3}`)...)},
		{name: "unknown-events", about: "events and members of tomorrow",
			data: sse(between(edit(hello, `"output_index":0`, `"output_index":0,"tomorrow":{"a":[1]}`), `{"type":"response.tomorrow.delta","output_index":0,"item_id":"msg_1","delta":"lost"}`)...)},
		{name: "queued", about: "the response waits before it begins",
			data: sse(insert(hello, 0, edit([]string{strings.Replace(responseBegins, "response.created", "response.queued", 1)}, "in_progress", "queued")...)...)},
		{name: "deltas-missing", about: "the text comes with the item (vllm-project/vllm#48274)",
			data: sse(without(hello, "text", "content_part", "added")...)},
		{name: "items-missing", about: "nothing but the last event", data: sse(responseBegins, ended(helloItem))},
		{name: "output-empty", about: "the last event has no items (Codex, OpenRouter)", data: sse(edit(hello, `"output":[`+helloItem+`]`, `"output":[]`)...)},
		{name: "items-not-done", about: "deltas, and a last event without items", data: sse(append(without(hello, "done", "completed"), ended())...)},
		{name: "content-index-grows", about: "each delta has an index of its own (vllm-project/vllm#29947)",
			data: sse(edit(hello, `"content_index":0,"delta":"there."`, `"content_index":1,"delta":"there."`)...)},
		{name: "indexes-missing", about: "no output_index and no content_index",
			data: sse(edit(edit(hello, `"output_index":0,`, ``), `,"content_index":0`, ``)...)},
		{name: "item-ids-differ", about: "the item has another ID at its end (vllm-project/vllm#38227)",
			data: sse(edit(edit(hello, `"item":{"id":"msg_1"`, `"item":{"id":"msg_7"`), `"output":[{"id":"msg_1"`, `"output":[{"id":"msg_8"`)...)},
		{name: "annotations", about: "an annotation amid the text",
			data: sse(insert(hello, 5, `{"type":"response.output_text.annotation.added","item_id":"msg_1","output_index":0,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation"}}`)...)},
		{name: "after-the-end", about: "events after the last one, which do not count", data: append(sse(hello...), sse(hello[4])...)},
		{name: "whole", about: "a response in one piece where a stream was asked for", data: wholeOf(ended(helloItem)), kind: "application/json"},
	}
	for i := range all {
		all[i].want = said
	}
	return all
}

// wholeOf returns the response of a last event.
func wholeOf(event string) []byte {
	var last struct{ Response json.RawMessage }
	_ = json.Unmarshal([]byte(event), &last) // written by ended
	return last.Response
}

// thought is a response with a reasoning before its text. kind is summary or content, as its
// events and its item name it.
func thought(kind string) []string {
	index, delta := "summary_index", "response.reasoning_summary_text.delta"
	if kind == "content" {
		index, delta = "content_index", "response.reasoning_text.delta"
	}
	item := strings.Replace(`{"id":"rs_1","type":"reasoning","summary":[],"KIND":[{"type":"reasoning_text","text":"The user greets."}]}`, "KIND", kind, 1)
	if kind == "summary" {
		item = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"The user greets."}]}`
	}
	at := `"item_id":"rs_1","output_index":0,"` + index + `":0`
	text := edit(edit(helloEvents()[2:9], `"output_index":0`, `"output_index":1`), `"sequence_number"`, `"number"`)
	return slices.Concat([]string{
		responseBegins,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"` + delta + `",` + at + `,"delta":"The user "}`,
		`{"type":"` + delta + `",` + at + `,"delta":"greets."}`,
		`{"type":"` + strings.TrimSuffix(delta, "delta") + `done",` + at + `,"text":"The user greets."}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`,
	}, text, []string{ended(item, helloItem)})
}

// responsesTextOddities are texts with something special in them.
func responsesTextOddities() []oddity {
	hello := helloEvents()
	reasoned := withUsage(wantHello())
	reasoned.Reasoning = "The user greets."
	no := "I can't help with that."
	refused := edit(edit(edit(edit(hello[3:9], "output_text", "refusal"), `"text":`, `"refusal":`), "Hello there.", no), "Hello ", "I can't help ")
	refused = edit(refused, `"there."`, `"with that."`)
	refusal := strings.NewReplacer("output_text", "refusal", `"text":`, `"refusal":`, "Hello there.", no).Replace(helloItem)
	wide := "Grüße, 世界 👩‍🚀"
	return []oddity{
		{name: "reasoning-summary", about: "a summary of the reasoning", want: reasoned, data: sse(thought("summary")...)},
		{name: "reasoning-text", about: "the reasoning itself (vLLM, LM Studio, Ollama)", want: reasoned, data: sse(thought("content")...)},
		{name: "reasoning-deltas-missing", about: "a summary that comes with the item", want: reasoned, data: sse(without(thought("summary"), "reasoning")...)},
		{name: "reasoning-text-deltas-missing", about: "the reasoning itself, with the item", want: reasoned,
			data: sse(without(thought("content"), "reasoning")...)},
		{name: "refusal", about: "the model refuses", want: withUsage(Want{Refusal: no, Finish: "stop"}),
			data: sse(slices.Concat(hello[:3], refused, []string{ended(refusal)})...)},
		{name: "usage-none", about: "no usage", want: wantHello(), data: sse(edit(hello, responseUsed, `"usage":null`)...)},
		{name: "utf8-split", about: "every byte by itself", want: withUsage(wantText(wide)), size: 1,
			data: sse(edit(edit(edit(hello, `"Hello there."`, `"`+wide+`"`), `"Hello "`, `"Grüße, 世"`), `"there."`, `"界 👩‍🚀"`)...)},
		{name: "huge-delta", about: "a mebibyte of text in one event", want: withUsage(wantText(strings.Repeat("a", hugeDelta))),
			data: sse(append(hello[:4:4], edit(hello[4:5], "Hello ", strings.Repeat("a", hugeDelta))[0], ended())...)},
		{name: "incomplete-length", about: "the text is cut by the limit of tokens", want: withFinish(withUsage(wantText("Hello there.")), "length"),
			data: sse(append(hello[:9:9], cutShort("max_output_tokens", helloItem))...)},
		{name: "incomplete-filter", about: "the text is cut by a content filter", want: withFinish(withUsage(wantText("Hello there.")), "content_filter"),
			data: sse(append(hello[:9:9], cutShort("content_filter", helloItem))...)},
		{name: "incomplete-unended", about: "the text was cut before its item ended", want: withFinish(withUsage(wantText("Hello ")), "length"),
			data: sse(append(hello[:5:5], cutShort("max_output_tokens"))...)},
	}
}

// responsesCallOddities are calls.
func responsesCallOddities() []oddity {
	both, one := withUsage(wantCalls(readCall("call_a"), timeCall("call_b"))), withUsage(wantCalls(readCall("call_a")))
	nameless := withUsage(wantCalls(readCall(""), timeCall("")))
	two, single := bothCalls(), oneCall()
	interleaved := []string{two[0], two[1], two[6], two[2], two[7], two[3], two[8], two[4], two[9], two[5], two[10], two[11]}
	empty := withUsage(wantCalls(WantCall{ID: "call_a", Name: "files__read", Arguments: "{}"}))
	cut := withFinish(withUsage(wantCalls(WantCall{ID: "call_a", Name: "files__read", Arguments: `{"path":`, Broken: true})), "length")
	const whole = `"{\"path\":\"a.txt\"}"`
	return []oddity{
		{name: "calls", about: "two calls, as documented", want: both, data: sse(two...)},
		{name: "calls-interleaved", about: "the events of two calls by turns", want: both, data: sse(interleaved...)},
		{name: "calls-at-one-index", about: "both calls have the output_index 0", want: both, data: sse(edit(two, `"output_index":1`, `"output_index":0`)...)},
		{name: "calls-without-index", about: "no call has an output_index", want: both,
			data: sse(edit(edit(two, `"output_index":1,`, ``), `"output_index":0,`, ``)...)},
		{name: "calls-without-ids", about: "no call has an id or a call_id", want: nameless,
			data: sse(edit(edit(edit(edit(edit(two, `"fc_1"`, `""`), `"fc_2"`, `""`), `"call_a"`, `""`), `"call_b"`, `""`), `"call_id":"",`, ``)...)},
		{name: "calls-with-one-id", about: "both calls have the same call_id", want: withUsage(wantCalls(readCall("call_a"), timeCall(""))),
			data: sse(edit(two, "call_b", "call_a")...)},
		{name: "arguments-done-only", about: "arguments without deltas (lidge-jun/opencodex#4652)", want: both, data: sse(without(two, "delta")...)},
		{name: "arguments-with-the-item", about: "arguments only in the item at its end", want: both, data: sse(without(two, "arguments")...)},
		{name: "arguments-deltas-only", about: "the items are never done, and the last event has none", want: both,
			data: sse(append(without(two, "done", "completed"), ended())...)},
		{name: "arguments-object", about: "arguments are an object, not a string", want: one,
			data: sse(responseBegins, ended(strings.Replace(readItem, whole, `{"path":"a.txt"}`, 1)))},
		{name: "arguments-empty", about: "arguments are an empty string", want: empty, data: sse(edit(without(single, "delta"), whole, `""`)...)},
		{name: "arguments-cut", about: "arguments cut by the limit of tokens", want: cut,
			data: sse(append(single[:3:3], cutShort("max_output_tokens"))...)},
		{name: "call-and-ids-differ", about: "the item has another id at its end (vllm-project/vllm#38227)", want: one,
			data: sse(edit(single, `"item":{"id":"fc_1","type":"function_call","status":"completed"`, `"item":{"id":"fc_9","type":"function_call","status":"completed"`)...)},
		{name: "namespace", about: "the name has the namespace of a prompt format, and no such tool is offered",
			want: withUsage(wantCalls(WantCall{ID: "call_a", Name: "functions.files__read", Arguments: `{"path":"a.txt"}`})),
			data: sse(edit(single, "files__read", "functions.files__read")...)},
	}
}

// responsesEndOddities are errors, and streams that break off.
func responsesEndOddities() []oddity {
	hello, single := helloEvents(), oneCall()
	broken := Want{Text: "Hello ", Problem: ServerSaid, Message: "The server had an error"}
	interrupted := Want{Text: "Hello ", Problem: Interrupted}
	nothing := Want{Problem: Interrupted}
	failed := `{"type":"response.failed","sequence_number":9,"response":{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"The server had an error"},"output":[]}}`
	flat := `{"type":"error","sequence_number":9,"code":"server_error","message":"The server had an error","param":null}`
	nested := `{"type":"error","sequence_number":9,"error":{"type":"server_error","code":null,"message":"The server had an error","param":null}}`
	after := func(events []string, n int, more ...string) []byte { return sse(append(events[:n:n], more...)...) }
	return []oddity{
		{name: "failed", about: "response.failed amid the text", want: broken, data: after(hello, 5, failed)},
		{name: "error-event", about: "an error event amid the text, as documented", want: broken, data: after(hello, 5, flat)},
		{name: "error-nested", about: "an error event with an error object, as OpenAI sends it", want: broken, data: after(hello, 5, nested)},
		{name: "error-untyped", about: "an error object without a type (OpenRouter)", want: broken,
			data: append(after(hello, 5), "data: {\"error\":{\"code\":502,\"message\":\"The server had an error\"}}\n\n"...)},
		{name: "error-line", about: "only the line names the error (LM Studio)", want: broken,
			data: append(after(hello, 5), "event: error\ndata: {\"message\":\"The server had an error\"}\n\n"...)},
		{name: "error-first", about: "an error and nothing else", want: Want{Problem: ServerSaid, Message: "The server had an error"}, data: sse(nested)},
		{name: "cancelled", about: "the response was cancelled", want: Want{Text: "Hello ", Problem: ServerSaid},
			data: after(hello, 5, edit([]string{ended(helloItem)}, "completed", "cancelled")...)},
		{name: "eof-empty", about: "an empty body", want: nothing, data: []byte{}},
		{name: "eof-in-text", about: "the body ends in the middle of a text", want: interrupted, data: after(hello, 5)},
		{name: "eof-before-the-end", about: "only response.completed is missing", want: Want{Text: "Hello there.", Problem: Interrupted},
			data: after(hello, 9)},
		{name: "done-before-the-end", about: "[DONE] in place of response.completed", want: Want{Text: "Hello there.", Problem: Interrupted},
			data: append(after(hello, 9), "data: [DONE]\n\n"...)},
		{name: "eof-in-event", about: "the body ends in the middle of an event", want: interrupted, data: after(hello, 6)[:len(after(hello, 6))-20]},
		{name: "cut-in-event", about: "the connection closes in the middle of an event", want: interrupted,
			data: after(hello, 6)[:len(after(hello, 6))-20], end: EndCut},
		{name: "reset-in-call", about: "the connection is reset in the middle of a call", want: nothing, data: after(single, 3), end: EndReset},
		{name: "html", about: "a page of HTML with the status 200", want: Want{Problem: NotAStream},
			data: []byte("<html><body>Sign in</body></html>"), kind: "text/html"},
		{name: "json-error", about: "an error object with the status 200", want: Want{Problem: ServerSaid, Message: "The server had an error"},
			data: []byte(`{"error":{"message":"The server had an error","type":"server_error"}}`), kind: "application/json"},
		{name: "whole-failed", about: "a failed response in one piece", want: Want{Problem: ServerSaid, Message: "The server had an error"},
			data: wholeOf(failed), kind: "application/json"},
	}
}
