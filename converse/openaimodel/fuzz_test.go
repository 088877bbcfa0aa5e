// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/tidwall/gjson"
)

// FuzzAccumulator: any chunks at all give a reply that can go into a history
// and be sent again.
func FuzzAccumulator(f *testing.F) {
	f.Add([]byte(`{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}`),
		[]byte(`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte(`{"choices":[{"message":{"content":[{"text":"x"},{"type":"thinking","thinking":[{"text":"y"}]}],"tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"f"}}]}}]}`), []byte(`{"error":{}}`))
	f.Add([]byte(`{"choices":[{"delta":{"function_call":{"name":"f","arguments":null}}}]}`),
		[]byte(`{"choices":[{"delta":{"tool_calls":[{"index":"1","id":1,"function":{"name":"\u0000","arguments":"\ud800"},"extra_content":{"a":[1, 2]}}]}}]}`))
	f.Add([]byte("{\"choices\":[{\"delta\":{\"content\":\"a\",\"reasoning_details\":[{\"type\":\"x\",\"data\":{\"\xe8\":\"\xe8\"}}]}}]}"),
		[]byte("{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\"},\"extra_content\":{\"\xe8\":1}}]}}]}"))
	model, err := New("m", &Options{BaseURL: "http://localhost"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		text := ""
		answer := &accumulator{emit: func(d converse.Delta) { text += d.Text }}
		for _, chunk := range [][]byte{first, second, first} {
			if json.Valid(chunk) {
				answer.Add("", gjson.ParseBytes(chunk))
			}
		}
		n := 0
		reply, err := answer.reply(model.server, &converse.Request{NewID: func() string { n++; return fmt.Sprint(n) }})
		if err != nil {
			return
		}
		if said := canister.TextOf(reply.Message.Content); strings.ReplaceAll(said, "\n", "") != strings.ReplaceAll(text, "\n",
			"") && len(answer.refusal) == 0 {
			t.Fatalf("says %q, streamed %q", said, text)
		}
		history := []canister.Canister{reply.Message}
		for _, call := range reply.Invocations {
			history = append(history, call)
		}
		for _, call := range reply.Invocations {
			n++
			history = append(history, canister.Result{Head: canister.Head{ID: fmt.Sprint(n)}, Invocation: call.ID})
		}
		if problems := sequence.Check(history); problems != nil {
			t.Fatalf("%v in %+v", problems, reply)
		}
		sendable(t, model, history)
	})
}

// FuzzResponses: any events at all give a reply that can go into a history and be sent
// again.
func FuzzResponses(f *testing.F) {
	f.Add("response.output_item.added", []byte(`{"output_index":0,"item":{"type":"reasoning","id":"rs"}}`),
		[]byte(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","id":"rs","summary":[{"text":"a"}],"encrypted_content":"x"},{"type":"message","phase":"final","content":[{"type":"output_text","text":"b"},{"type":"refusal","refusal":"c"}]}]}}`))
	f.Add("", []byte(`{"type":"response.function_call_arguments.delta","delta":"{","item_id":1}`),
		[]byte(`{"object":"response","status":"incomplete","incomplete_details":{"reason":"\u0000"},"output":[{"type":"function_call",`+
			`"call_id":"c","name":"","arguments":[]},{"type":"web_search_call","action":null},7]}`))
	f.Add("error", []byte(`{"message":"x"}`), []byte(`{"type":"response.output_text.delta","output_index":-1,"content_index":1e9,"delta":"x"}`))
	model, err := New("m", &Options{BaseURL: "http://localhost", API: "responses"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, event string, first, second []byte) {
		answer := &responseAnswer{emit: func(converse.Delta) {}}
		for _, data := range [][]byte{first, second, first} {
			if json.Valid(data) {
				answer.Add(event, gjson.ParseBytes(data))
			}
		}
		n := 0
		reply, err := answer.reply(model, &converse.Request{NewID: func() string { n++; return fmt.Sprint(n) }})
		if err != nil {
			return
		}
		history := []canister.Canister{reply.Message}
		for _, call := range reply.Invocations {
			history = append(history, call)
		}
		for _, call := range reply.Invocations {
			n++
			history = append(history, canister.Result{Head: canister.Head{ID: fmt.Sprint(n)}, Invocation: call.ID})
		}
		if problems := sequence.Check(history); problems != nil {
			t.Fatalf("%v in %+v", problems, reply)
		}
		sendable(t, model, history)
	})
}

// FuzzMessages: whatever canisters hold, the request is JSON in UTF-8.
func FuzzMessages(f *testing.F) {
	f.Add("text", "image/png", []byte("data"), `{"a":1}`, "name")
	f.Add("\xff\"\\\x00\u2028", "audio/wav; x=\"", []byte{0xff}, `{`, "a\nb")
	model, err := New("m\"", &Options{BaseURL: "http://localhost", Audio: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, kind string, data []byte, arguments, name string) {
		contents := []canister.Content{
			canister.Text(text), canister.ImageContent{Data: data, MIME: kind}, canister.ImageContent{URL: text}, canister.AudioContent{Data: data, MIME: kind},
			canister.ResourceContent{URI: name, MIME: kind, Text: text}, canister.ResourceContent{URI: name, MIME: kind, Blob: data},
			canister.LinkContent{URI: text, Name: name},
		}
		if json.Valid(data) {
			contents = append(contents, canister.StructuredContent{JSON: data})
		}
		sendable(t, model, []canister.Canister{
			canister.Supervisor{Head: canister.Head{ID: "1"}, Content: contents},
			canister.Document{Head: canister.Head{ID: "2"}, Title: text, URI: name, Content: contents},
			canister.User{Head: canister.Head{ID: "3"}, Content: contents},
			canister.Assistant{Head: canister.Head{ID: "4"}, Content: contents},
			canister.Invocation{Head: canister.Head{ID: "5"}, Message: "4", CallID: text, Name: name, Arguments: arguments},
			canister.Result{Head: canister.Head{ID: "6"}, Invocation: "5", Content: contents},
		})
	})
}

func sendable(t *testing.T, model *Model, history []canister.Canister) {
	t.Helper()
	request := &converse.Request{History: history}
	body, _, err := encode(t, new(modelapi.Transcript), model, request)
	if model.opts.API == apiResponses {
		body, _, err = (&responses{ctx: t.Context(), m: model, request: request, transcript: new(modelapi.Transcript)}).Encode()
	}
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		t.Fatalf("not JSON: %s", body)
	}
}

// encode returns the body of a request.
func encode(t *testing.T, in *modelapi.Transcript, model *Model, request *converse.Request) ([]byte, *modelapi.BodyRef, error) {
	t.Helper()
	return (&chat{ctx: t.Context(), m: model, request: request, transcript: in}).Encode()
}
