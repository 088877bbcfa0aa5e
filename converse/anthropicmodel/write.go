// SPDX-License-Identifier: Apache-2.0

package anthropicmodel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/internal/dedupe"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/tidwall/gjson"
)

// contentKey is the member of a message's metadata with the blocks of an answer.
const contentKey = "anthropicmodel.content"

// omittedKey is the member of a message's metadata that says that the request for the answer
// left out the thinking of all answers before it, because the server had rejected that.
const omittedKey = "anthropicmodel.thinking_omitted"

// messageWriter writes canisters as messages of the API. The output depends only on the
// canisters and the model's options.
type messageWriter struct {
	m          *Model
	transcript *modelapi.Transcript // knows the answers whose thinking is left out
	render     modelapi.Renderer
	dst        []byte
}

// write appends the messages of the rest of a history.
func (w *messageWriter) write(dst []byte, history []canister.Canister) (modelapi.Messages, error) {
	w.dst = dst
	settled, done, err := modelapi.Walk(history, w.one, func() int { return len(w.dst) })
	if err != nil {
		return modelapi.Messages{}, fmt.Errorf("anthropicmodel: %w", err)
	}
	return modelapi.Messages{Text: w.dst, Settled: max(settled, len(dst)), Done: done}, nil
}

// one writes one canister, or one group. The API has no role for instructions after the
// first message, so that a later Supervisor is a user message with a frame.
func (w *messageWriter) one(c canister.Canister, group *modelapi.Group) {
	switch c := c.(type) {
	case canister.Supervisor:
		w.message("user", []modelapi.Part{{Text: "<system>\n" + w.render.Text(c.Content) + "\n</system>"}})
	case canister.User:
		w.message("user", w.render.Parts(c.Content))
	case canister.Document:
		w.message("user", w.render.Document(c))
	default:
		w.group(group)
	}
}

// begin opens a message up to its blocks.
func (w *messageWriter) begin(role string) {
	w.dst = append(jsontext.AppendMember(append(jsontext.AppendComma(w.dst), '{'), "role", role), `,"content":[`...)
}

func (w *messageWriter) end() { w.dst = append(w.dst, "]}"...) }

// message writes a message of parts.
func (w *messageWriter) message(role string, parts []modelapi.Part) {
	w.begin(role)
	w.parts(parts)
	w.end()
}

// parts writes the blocks of parts. A server refuses text without a character that can be
// seen, and with it the whole history.
func (w *messageWriter) parts(parts []modelapi.Part) {
	start := len(w.dst)
	for _, p := range parts {
		if p.IsText() && strings.TrimSpace(p.Text) == "" {
			continue
		}
		w.dst = appendPart(jsontext.AppendComma(w.dst), p)
	}
	if len(w.dst) == start {
		w.dst = appendText(w.dst, "")
	}
}

// appendPart appends a block.
func appendPart(dst []byte, p modelapi.Part) []byte {
	switch {
	case p.Name != "":
		dst = append(dst, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, p.Data), `"}`...)
		return append(jsontext.AppendMember(dst, "title", p.Name), '}')
	case p.URL != "":
		dst = append(dst, `{"type":"image","source":{"type":"url"`...)
		return append(jsontext.AppendMember(dst, "url", p.URL), "}}"...)
	case p.MIME != "":
		dst = append(append(append(dst, `{"type":"image","source":{"type":"base64","media_type":"`...), p.MIME...), `","data":"`...)
		return append(base64.StdEncoding.AppendEncode(dst, p.Data), `"}}`...)
	}
	return appendText(dst, p.Text)
}

// appendText appends a block of text.
func appendText(dst []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		text = "[empty]"
	}
	return append(jsontext.AppendMember(append(dst, `{"type":"text"`...), "text", text), '}')
}

// group writes what the model produced, and the results of its calls in one message.
func (w *messageWriter) group(g *modelapi.Group) {
	if w.dst[len(w.dst)-1] == '[' { // the API wants a user message first
		w.message("user", []modelapi.Part{{Text: "[the conversation begins with an answer]"}})
	}
	w.begin("assistant")
	if !w.replay(g) {
		if text := w.render.Text(g.Message.Content); strings.TrimSpace(text) != "" || len(g.Invocations) == 0 {
			w.dst = appendText(w.dst, strings.TrimRight(text, " \t\r\n"))
		}
		for _, call := range g.Invocations {
			w.call(call)
		}
	}
	w.end()
	if len(g.Results) == 0 {
		return
	}
	w.begin("user")
	for i, result := range g.Results {
		w.dst = jsontext.AppendMember(append(jsontext.AppendComma(w.dst), `{"type":"tool_result"`...), "tool_use_id", callID(g.Invocations[i]))
		if result.Failed() {
			w.dst = append(w.dst, `,"is_error":true`...)
		}
		w.dst = append(w.dst, `,"content":[`...)
		w.parts(w.result(result))
		w.dst = append(w.dst, "]}"...)
	}
	w.end()
}

// replay writes the blocks of an answer as the server sent them, in their order, perhaps
// without thinking. It returns false, and writes nothing, if they came from another server or
// model, or no longer match the canisters.
func (w *messageWriter) replay(g *modelapi.Group) bool {
	items := w.m.server.KeptItems(g, contentKey, w.m.name, "tool_use")
	if w.transcript.LeavesOut(g.Message) {
		items = slices.DeleteFunc(items, func(item modelapi.Item) bool { return isThinking(item.Type) })
	}
	for len(items) > 0 && strings.HasSuffix(items[len(items)-1].Type, "thinking") {
		items = items[:len(items)-1] // the server refuses a message that ends with it
	}
	answered := map[string]bool{} // calls of the server's own tools that have a result
	for _, item := range items {
		answered[gjson.GetBytes(item.Item, "tool_use_id").String()] = true
	}
	rest, open := g.Message.Content, g.Invocations
	start := len(w.dst)
	for _, item := range items {
		own := rest[:item.Contents]
		rest = rest[item.Contents:]
		switch {
		case isServerCall(item.Type) && !answered[gjson.GetBytes(item.Item, "id").String()]:
		case len(item.Item) > 0:
			w.dst = append(jsontext.AppendComma(w.dst), item.Item...)
		case item.Type == "tool_use":
			w.call(open[0])
			open = open[1:]
		default:
			w.dst = appendText(jsontext.AppendComma(w.dst), w.render.Text(own))
		}
	}
	return len(w.dst) > start
}

// isServerCall reports whether a block is a call of a tool that the server runs. Its result
// is another block.
func isServerCall(kind string) bool { return kind == "server_tool_use" || kind == "mcp_tool_use" }

// call writes one call of the model.
func (w *messageWriter) call(call canister.Invocation) {
	w.dst = jsontext.AppendMember(append(jsontext.AppendComma(w.dst), `{"type":"tool_use"`...), "id", callID(call))
	w.dst = jsontext.AppendMember(w.dst, "name", modelapi.LegalName(call.Name))
	w.dst = append(append(jsontext.AppendName(w.dst, "input"), input(call.Arguments)...), '}')
}

// input returns the arguments of a call as JSON.
func input(arguments string) []byte {
	return jsontext.Compact(wellFormed([]byte(modelapi.LegalArguments(arguments))))
}

// wellFormed returns JSON without half of a surrogate pair and bytes that are not UTF-8. The
// API refuses a request that has any of them, and they would stay in the conversation.
func wellFormed(text []byte) []byte {
	if !utf8.Valid(text) || bytes.Contains(text, []byte(`\ud`)) || bytes.Contains(text, []byte(`\uD`)) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) == nil {
			if clean, err := jsontext.Encode(value); err == nil {
				return clean
			}
		}
	}
	return text
}

// callID returns the ID that links a call and its result. The API wants IDs that are unique
// in the whole request, and only its own are.
func callID(call canister.Invocation) string {
	if id := modelapi.CallID(call); ownID.MatchString(id) {
		return id
	}
	return modelapi.MadeCallID(call.ID)
}

// ownID matches the IDs of calls that the API gives.
var ownID = regexp.MustCompile(`^toolu_[a-zA-Z0-9_-]+$`)

// result returns the parts of a result.
func (w *messageWriter) result(r canister.Result) []modelapi.Part {
	if text := w.render.Text(dedupe.Contents(r.Content)); r.Failed() && strings.TrimSpace(text) != "" {
		return []modelapi.Part{{Text: text}} // the API takes only text with is_error
	}
	var parts []modelapi.Part
	empty := true
	for _, c := range dedupe.Contents(r.Content) {
		for _, p := range w.render.Part(c) {
			empty = empty && p.IsText() && strings.TrimSpace(p.Text) == ""
			parts = append(parts, p)
		}
	}
	if empty {
		return []modelapi.Part{{Text: modelapi.EmptyResult(r)}}
	}
	return parts
}
