// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.opentelemetry.io/otel/attribute"
)

// history has each kind of canister and of content.
func history() []canister.Canister {
	at := func(id string) canister.Head { return canister.Head{ID: id} }
	size := int64(9)
	return []canister.Canister{
		canister.Supervisor{Content: canister.Texts("Be <brief>.")},
		canister.Supervisor{Content: canister.Texts("Be kind.")},
		canister.Document{Title: "Report", URI: "file:///r", Content: canister.Texts("Rain.")},
		canister.User{Content: []canister.Content{
			canister.Text("Look:"), canister.ImageContent{Data: []byte("12345"), MIME: "image/png"}, canister.ImageContent{URL: "https://h/i.png"},
			canister.ImageContent{URL: "data:image/png;base64,AAAA"}, canister.AudioContent{Data: []byte("123"), MIME: "audio/wav"},
			canister.ResourceContent{URI: "file:///t", Text: "Text."}, canister.ResourceContent{URI: "file:///b", MIME: "video/mp4", Blob: []byte("1234")},
			canister.LinkContent{URI: "file:///l", Name: "l", MIME: "text/plain", Size: &size},
		}},
		canister.Assistant{Head: at("a"), Content: canister.Texts("I look.")},
		canister.Invocation{Head: at("i-1"), Message: "a", CallID: "call-1", Name: "look", Arguments: `{"at":"it"}`},
		canister.Invocation{Head: at("i-2"), Message: "a", CallID: "call-2", Name: "look", Arguments: `rubbish`},
		canister.Result{Invocation: "i-1", Content: []canister.Content{canister.Text("Seen."), canister.StructuredContent{JSON: json.RawMessage(`{"n":1}`)}}},
		canister.Result{Invocation: "i-2", Code: "INVALID_ARGUMENTS", Content: canister.Texts("No JSON.")},
		canister.Supervisor{Content: canister.Texts("Hurry.")},
	}
}

func TestMessagesAreInTheFormOfTheConventions(t *testing.T) {
	s := see(t, telemetry.Options{Content: true})
	tools := []*invoker.Definition{{Name: "look", Description: "Looks.", InputSchema: json.RawMessage(`{"type":"object"}`)}, {Name: "listen"}}
	_, chat := telemetry.StartChat(s.context(), telemetry.ChatRequest{History: history(), Tools: tools})
	chat.End(telemetry.ChatResult{
		Message:     canister.Assistant{Content: canister.Texts("I look again."), Finish: canister.FinishInvocations},
		Invocations: []canister.Invocation{{CallID: "call-3", Name: "look", Arguments: `{}`}},
	})
	span := s.one("chat")
	for key, want := range map[string]string{
		"gen_ai.system_instructions": `[{"type":"text","content":"Be <brief>."},{"type":"text","content":"Be kind."}]`,
		"gen_ai.tool.definitions":    `[{"type":"function","name":"look","description":"Looks."},{"type":"function","name":"listen"}]`,
		"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"uri","name":"Report","modality":"document","uri":"file:///r"},` +
			`{"type":"text","content":"Rain."}]},` +
			`{"role":"user","parts":[{"type":"text","content":"Look:"},` +
			`{"type":"blob","mime_type":"image/png","modality":"image","bytes":5,"content":""},` +
			`{"type":"uri","modality":"image","uri":"https://h/i.png"},` +
			`{"type":"blob","modality":"image","bytes":26,"content":""},` +
			`{"type":"blob","mime_type":"audio/wav","modality":"audio","bytes":3,"content":""},` +
			`{"type":"text","uri":"file:///t","content":"Text."},` +
			`{"type":"blob","mime_type":"video/mp4","modality":"video","uri":"file:///b","bytes":4,"content":""},` +
			`{"type":"uri","name":"l","mime_type":"text/plain","modality":"document","uri":"file:///l"}]},` +
			`{"role":"assistant","parts":[{"type":"text","content":"I look."},` +
			`{"type":"tool_call","id":"call-1","name":"look","arguments":{"at":"it"}},` +
			`{"type":"tool_call","id":"call-2","name":"look","arguments":{"text":"rubbish"}}]},` +
			`{"role":"tool","parts":[{"type":"tool_call_response","id":"call-1","response":{"content":[{"type":"text","content":"Seen."},` +
			`{"type":"text","mime_type":"application/json","content":"{\"n\":1}"}]}}]},` +
			`{"role":"tool","parts":[{"type":"tool_call_response","id":"call-2","response":{"error":"INVALID_ARGUMENTS",` +
			`"content":[{"type":"text","content":"No JSON."}]}}]},` +
			`{"role":"system","parts":[{"type":"text","content":"Hurry."}]}]`,
		"gen_ai.output.messages": `[{"role":"assistant","finish_reason":"tool_call","parts":[{"type":"text","content":"I look again."},` +
			`{"type":"tool_call","id":"call-3","name":"look","arguments":{}}]}]`,
	} {
		if got := valueOf(span, key).AsString(); got != want {
			t.Errorf("%s is\n%s\nand not\n%s", key, got, want)
		}
	}
	if got := valueOf(span, "gen_ai.response.finish_reasons").AsStringSlice(); len(got) != 1 || got[0] != "tool_call" {
		t.Errorf("the reasons to stop are %q", got)
	}
}

func TestArgumentsAndResultsAreObjects(t *testing.T) {
	structured := func(text string) []canister.Content {
		return []canister.Content{canister.Text("x"), canister.StructuredContent{JSON: json.RawMessage(text)}}
	}
	for _, test := range []struct {
		arguments       string
		result          []canister.Content
		wantArg, wantIs string
	}{
		{` {"a": 1} `, canister.Texts("x"), `{"a": 1}`, `{"content":[{"type":"text","content":"x"}]}`},
		{`[1]`, structured(`{"b":[1]}`), `{"text":"[1]"}`, `{"b":[1]}`},
		{`{"a":`, structured(`[1]`), `{"text":"{\"a\":"}`, `{"value":"[1]"}`},
		{
			"{\"a\":\"\xff\"}", []canister.Content{canister.ImageContent{Data: []byte("1"), MIME: "image/png"}},
			"{\"a\":\"\uFFFD\"}", `{"content":[{"type":"blob","mime_type":"image/png","modality":"image","bytes":1,"content":""}]}`,
		},
	} {
		s := see(t, telemetry.Options{Content: true})
		_, tool := telemetry.StartTool(s.context(), telemetry.ToolCall{Name: "t", Arguments: json.RawMessage(test.arguments)})
		tool.End(test.result, nil)
		span := s.one("execute_tool t")
		if got := valueOf(span, "gen_ai.tool.call.arguments").AsString(); got != test.wantArg {
			t.Errorf("the arguments %s are recorded as %s", test.arguments, got)
		}
		if got := valueOf(span, "gen_ai.tool.call.result").AsString(); got != test.wantIs {
			t.Errorf("the result is recorded as %s", got)
		}
	}
}

// Content beyond the limit is still valid JSON in the form of the conventions, within the
// bound, and says how much is missing. The newest messages stay.
func TestContentIsCutToValidJSON(t *testing.T) {
	var long []canister.Canister
	var instructions []canister.Canister
	var tools []*invoker.Definition
	for i := range 200 {
		long = append(long, canister.User{Content: canister.Texts(fmt.Sprintf("Question %d \"quoted\" ä %s", i, strings.Repeat("word ", i)))})
		instructions = append(instructions, canister.Supervisor{Content: canister.Texts(fmt.Sprintf("Rule %d", i))})
		tools = append(tools, &invoker.Definition{Name: fmt.Sprintf("tool-%d", i), Description: strings.Repeat("d", 1000)})
	}
	for _, most := range []int{-1, 1, 256, 300, 1000, 4096, 1 << 20} {
		s := see(t, telemetry.Options{Content: true, ContentBytes: most})
		bound := map[int]int{-1: 4096, 1: 256}[most]
		if bound == 0 {
			bound = most
		}
		_, chat := telemetry.StartChat(s.context(), telemetry.ChatRequest{History: append(instructions, long...), Tools: tools})
		chat.End(telemetry.ChatResult{Message: canister.Assistant{Content: canister.Texts(strings.Repeat("\x00ä\"", 4000))}})
		span := s.one("chat")
		for key, left := range map[string]string{
			"gen_ai.system_instructions": "parts", "gen_ai.input.messages": "earlier messages",
			"gen_ai.tool.definitions": "tools", "gen_ai.output.messages": "",
		} {
			text := valueOf(span, key).AsString()
			var items []map[string]any
			if err := json.Unmarshal([]byte(text), &items); err != nil || len(text) > bound || len(items) == 0 {
				t.Errorf("%s in %d bytes has %d, and %d items, %v: %s", key, bound, len(text), len(items), err, text)
				continue
			}
			note := items[len(items)-1]
			if key == "gen_ai.input.messages" {
				note = items[0]
				if last, _ := json.Marshal(items[len(items)-1]); !strings.Contains(string(last), "Question 199") {
					t.Errorf("the newest message in %d bytes is %s", bound, last)
				}
				if note["role"] == "system" {
					note = note["parts"].([]any)[0].(map[string]any)
				}
			}
			if cut := note["type"] == "omitted"; cut != (most < 1<<20 && left != "") {
				t.Errorf("%s in %d bytes: the note is %v", key, bound, note)
			} else if cut {
				var n int
				if _, err := fmt.Sscanf(note["name"].(string), "%d "+left, &n); err != nil || n+len(items)-1 != 200 {
					t.Errorf("%s in %d bytes: %d items, and %v more", key, bound, len(items)-1, note["name"])
				}
			}
		}
	}
}

// One long message leaves room for those before it.
func TestALongMessageLeavesRoom(t *testing.T) {
	s := see(t, telemetry.Options{Content: true, ContentBytes: 1000})
	_, chat := telemetry.StartChat(s.context(), telemetry.ChatRequest{History: []canister.Canister{
		canister.User{Content: canister.Texts(strings.Repeat("Where? ", 20) + "There!")},
		canister.Result{Content: canister.Texts(strings.Split(strings.Repeat("here here,", 100), ",")...)},
	}})
	chat.End(telemetry.ChatResult{})
	text := valueOf(s.one("chat"), "gen_ai.input.messages").AsString()
	if !strings.Contains(text, "There!") || !strings.Contains(text, "here here") || strings.Contains(text, "omitted") {
		t.Errorf("the messages are %s", text)
	}
}

// Nothing is computed of content that is not wanted.
func TestContentThatIsNotWantedCostsNothing(t *testing.T) {
	asked := 0
	s := see(t, telemetry.Options{Redact: func(text string) string { asked++; return text }})
	_, chat := telemetry.StartChat(s.context(), telemetry.ChatRequest{History: history()})
	chat.End(telemetry.ChatResult{Message: canister.Assistant{Content: canister.Texts("x")}})
	_, tool := telemetry.StartTool(s.context(), telemetry.ToolCall{Name: "t", Arguments: json.RawMessage(`{}`)})
	tool.End(canister.Texts("x"), nil)
	if asked != 0 {
		t.Errorf("%d texts were looked through", asked)
	}
	for _, span := range s.spans.GetSpans() {
		for _, key := range []string{"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"} {
			if valueOf(span, key).Type() != attribute.EMPTY {
				t.Errorf("%s has %s", span.Name, key)
			}
		}
	}
}
