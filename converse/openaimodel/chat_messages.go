// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/internal/dedupe"
	"github.com/consort-go/consort/internal/jsontext"
)

// messageWriter writes canisters as messages of the API. The output depends only on the
// canisters, the model's options and the placeholders.
type messageWriter struct {
	m      *Model
	render modelapi.Renderer
	dst    []byte

	fillSignatures, fillReasoning bool // with placeholders

	alternates bool            // messages in a row with the same role are one
	role       string          // of the message that is not written yet, because more may be added to it
	parts      []modelapi.Part // of that message
}

// write appends the messages of the rest of a history.
func (w *messageWriter) write(dst []byte, history []canister.Canister) (modelapi.Messages, error) {
	w.dst = dst
	settled, done, err := modelapi.Walk(history, w.one, func() int { return len(w.dst) })
	if err != nil {
		return modelapi.Messages{}, fmt.Errorf("openaimodel: %w", err)
	}
	if w.alternates { // the last message may get more
		w.flush()
		settled, done = 0, 0
	}
	return modelapi.Messages{Text: w.dst, Settled: max(settled, len(dst)), Done: done}, nil
}

// one writes one canister, or one group.
func (w *messageWriter) one(c canister.Canister, group *modelapi.Group) {
	switch c := c.(type) {
	case canister.Supervisor:
		role, text := w.m.opts.SupervisorRole, w.render.Text(c.Content)
		if first := w.dst[len(w.dst)-1] == '[' && (w.role == "" || w.role == role); w.alternates && !first {
			role, text = "user", "<system>\n"+text+"\n</system>"
		}
		w.add(role, []modelapi.Part{{Text: text}})
	case canister.User:
		w.add("user", w.render.Parts(c.Content))
	case canister.Document:
		w.add("user", w.render.Document(c))
	default:
		w.flush()
		w.group(group)
	}
}

// add writes a message of parts. If roles must alternate, it adds them to the message that is not
// written yet.
func (w *messageWriter) add(role string, parts []modelapi.Part) {
	if !w.alternates {
		w.message(role, parts)
		return
	}
	if w.role != role {
		w.flush()
	}
	w.role, w.parts = role, append(w.parts, parts...)
}

// flush writes the message that is not written yet.
func (w *messageWriter) flush() {
	if w.role != "" {
		w.message(w.role, w.parts)
	}
	w.role, w.parts = "", nil
}

// group writes the assistant message, a tool message for each result, and a user message
// for parts of the results that tool messages cannot contain.
func (w *messageWriter) group(g *modelapi.Group) {
	w.begin("assistant")
	text := w.render.Text(g.Message.Content)
	if text == "" && len(g.Invocations) > 0 {
		w.dst = append(jsontext.AppendName(w.dst, "content"), "null"...)
	} else {
		w.content(text)
	}
	w.reasoning(g.Message)
	if len(g.Invocations) > 0 {
		w.calls(g.Invocations)
	}
	w.dst = append(w.dst, '}')

	var media []modelapi.Part
	for i, result := range g.Results {
		call := g.Invocations[i]
		text, shown := w.result(call, result)
		w.begin("tool")
		w.dst = jsontext.AppendMember(w.dst, "tool_call_id", w.callID(call))
		w.dst = append(jsontext.AppendMember(w.dst, "content", text), '}')
		media = append(media, shown...)
	}
	if len(media) > 0 {
		w.add("user", media)
	}
}

// reasoning writes the reasoning of an assistant message that this server has produced.
func (w *messageWriter) reasoning(said canister.Assistant) {
	thought := w.m.server.Kept(said.Metadata, reasoningKey, "")
	details := w.m.server.Kept(said.Metadata, detailsKey, w.m.name)
	if thought == nil && details == nil && w.fillReasoning {
		thought = []byte(noReasoning)
	}
	if thought != nil {
		w.dst = append(jsontext.AppendName(w.dst, "reasoning_content"), thought...)
	}
	if details != nil {
		w.dst = append(jsontext.AppendName(w.dst, "reasoning_details"), details...)
	}
}

// calls writes the calls of an assistant message. Gemini signs only the first of several.
// So if this server has signed a call, the others get no placeholders.
func (w *messageWriter) calls(calls []canister.Invocation) {
	placeholder := []byte(noSignature)
	if !w.fillSignatures || slices.ContainsFunc(calls, func(c canister.Invocation) bool { return w.extra(c) != nil }) {
		placeholder = nil
	}
	w.dst = append(jsontext.AppendName(w.dst, "tool_calls"), '[')
	for i, call := range calls {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.call(call, placeholder)
	}
	w.dst = append(w.dst, ']')
}

// extra returns the extra_content of a call that this server has produced; nil if it has
// none.
func (w *messageWriter) extra(call canister.Invocation) []byte {
	return w.m.server.Kept(call.Metadata, extraKey, "")
}

// call writes one call of an assistant message. The placeholder, unless it is nil, takes
// the place of an extra_content that is not there.
func (w *messageWriter) call(call canister.Invocation, placeholder []byte) {
	w.dst = append(w.dst, '{')
	w.dst = jsontext.AppendMember(w.dst, "id", w.callID(call))
	w.dst = jsontext.AppendMember(w.dst, "type", "function")
	w.dst = append(jsontext.AppendName(w.dst, "function"), '{')
	w.dst = jsontext.AppendMember(w.dst, "name", modelapi.LegalName(call.Name))
	w.dst = append(jsontext.AppendMember(w.dst, "arguments", modelapi.LegalArguments(call.Arguments)), '}')
	extra := w.extra(call)
	if extra == nil {
		extra = placeholder
	}
	if extra != nil {
		w.dst = append(jsontext.AppendName(w.dst, "extra_content"), extra...)
	}
	w.dst = append(w.dst, '}')
}

// mistralID matches the IDs of calls that Mistral accepts.
var mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// maxChatID is the longest ID of a call that OpenAI accepts in Chat Completions
// (github.com/vercel/ai/issues/5171).
const maxChatID = 40

// callID returns the ID that links a call and its result. A call of another server gets
// another ID if this server would reject it. Mistral wants nine letters and digits
// (github.com/langchain-ai/langchain/pull/24668).
func (w *messageWriter) callID(call canister.Invocation) string {
	id := modelapi.CallID(call)
	switch {
	case w.m.mistral && !mistralID.MatchString(id):
		return strings.TrimPrefix(modelapi.MadeCallID(call.ID), "call_")[:9]
	case w.m.modern && utf8.RuneCountInString(id) > maxChatID:
		return modelapi.MadeCallID(call.ID)
	}
	return id
}

// content writes content that is a single text. Servers reject empty content, and with it
// the whole history, on every later request.
func (w *messageWriter) content(text string) {
	w.dst = jsontext.AppendMember(w.dst, "content", cmp.Or(text, "[empty]"))
}

// message writes a message of parts, as one text if all parts are text.
func (w *messageWriter) message(role string, parts []modelapi.Part) {
	w.begin(role)
	if text, ok := modelapi.OnlyText(parts); ok {
		w.content(text)
		w.dst = append(w.dst, '}')
		return
	}
	w.dst = append(jsontext.AppendName(w.dst, "content"), '[')
	for _, p := range parts {
		if p.IsText() && p.Text == "" {
			continue // servers reject an empty text part
		}
		w.dst = appendPart(jsontext.AppendComma(w.dst), p)
	}
	w.dst = append(w.dst, "]}"...)
}

// toolMessage begins a message with a result.
var toolMessage = []byte(`{"role":"tool"`)

// begin opens a message. Mistral, and templates whose roles alternate, want an answer between a
// result and a message of another role (github.com/avante-corp/avante.nvim/pull/2695).
func (w *messageWriter) begin(role string) {
	if (w.m.mistral || w.alternates) && role != "assistant" && role != "tool" {
		if last := bytes.LastIndex(w.dst, toolMessage[:len(`{"role":"`)]); last >= 0 && bytes.HasPrefix(w.dst[last:], toolMessage) {
			w.begin("assistant")
			w.dst = append(jsontext.AppendMember(w.dst, "content", "[no answer]"), '}')
		}
	}
	w.dst = jsontext.AppendMember(append(jsontext.AppendComma(w.dst), '{'), "role", role)
}

// result returns the text of a tool message, which can only contain text, and the parts
// for the user message that follows.
func (w *messageWriter) result(call canister.Invocation, r canister.Result) (string, []modelapi.Part) {
	if len(r.Content) == 1 {
		if text, ok := r.Content[0].(canister.TextContent); ok && text.Text != "" {
			return text.Text, nil
		}
	}
	var texts []string
	var shown []modelapi.Part
	for _, c := range dedupe.Contents(r.Content) {
		for _, p := range w.render.Part(c) {
			if p.IsText() {
				texts = append(texts, p.Text)
				continue
			}
			label := fmt.Sprintf("%s %d of the result of call %s (%s)", p.Noun(), len(shown)/2+1, w.callID(call), modelapi.LegalName(call.Name))
			texts = append(texts, "["+label+" follows in the next user message]")
			shown = append(shown, modelapi.Part{Text: "[" + label + "]"}, p)
		}
	}
	if text := strings.Join(texts, "\n"); text != "" {
		return text, shown
	}
	return modelapi.EmptyResult(r), nil
}

// appendPart appends a part in the form of the API.
func appendPart(dst []byte, p modelapi.Part) []byte {
	dst = append(dst, '{')
	switch {
	case p.Sound != "":
		dst = append(jsontext.AppendMember(dst, "type", "input_audio"), `,"input_audio":{"data":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, p.Data)
		dst = append(jsontext.AppendMember(append(dst, '"'), "format", p.Sound), '}')
	case p.MIME != "":
		dst = append(jsontext.AppendMember(dst, "type", "image_url"), `,"image_url":{"url":"data:`...)
		dst = append(append(dst, p.MIME...), ";base64,"...) // one of imageTypes
		dst = append(base64.StdEncoding.AppendEncode(dst, p.Data), `"}`...)
	case p.URL != "":
		dst = append(jsontext.AppendMember(dst, "type", "image_url"), `,"image_url":{`...)
		dst = append(jsontext.AppendMember(dst, "url", p.URL), '}')
	default:
		dst = jsontext.AppendMember(dst, "type", "text")
		dst = jsontext.AppendMember(dst, "text", p.Text)
	}
	return append(dst, '}')
}
