// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"cmp"
	"encoding/base64"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/consort-go/consort/internal/dedupe"
	"github.com/consort-go/consort/internal/jsontext"
)

// inputWriter writes canisters as input items of Responses. The output depends only on the
// canisters and the model's options.
type inputWriter struct {
	m          *Model
	transcript *modelapi.Transcript // knows the answers that are sent without the server's own data
	render     modelapi.Renderer
	dst        []byte
}

// write appends the items of the rest of a history.
func (w *inputWriter) write(dst []byte, history []canister.Canister) (modelapi.Messages, error) {
	w.dst = dst
	settled, done, err := modelapi.Walk(history, w.one, func() int { return len(w.dst) })
	if err != nil {
		return modelapi.Messages{}, fmt.Errorf("openaimodel: %w", err)
	}
	return modelapi.Messages{Text: w.dst, Settled: max(settled, len(dst)), Done: done}, nil
}

// one writes one canister, or one group.
func (w *inputWriter) one(c canister.Canister, group *modelapi.Group) {
	switch c := c.(type) {
	case canister.Supervisor:
		w.message(w.m.opts.SupervisorRole, []modelapi.Part{{Text: w.render.Text(c.Content)}})
	case canister.User:
		w.message("user", w.render.Parts(c.Content))
	case canister.Document:
		w.message("user", w.render.Document(c))
	default:
		w.group(group)
	}
}

// message writes a message that is not the model's, as one text if all parts are text.
func (w *inputWriter) message(role string, parts []modelapi.Part) {
	w.begin()
	w.dst = jsontext.AppendName(jsontext.AppendMember(w.dst, "role", role), "content")
	w.contents(parts)
	w.dst = append(w.dst, '}')
}

// contents writes a content: a text, or a list of parts. A server refuses an empty content,
// and with it the whole history.
func (w *inputWriter) contents(parts []modelapi.Part) {
	if text, ok := modelapi.OnlyText(parts); ok {
		w.dst = jsontext.AppendString(w.dst, cmp.Or(text, "[empty]"))
		return
	}
	w.dst = append(w.dst, '[')
	for _, p := range parts {
		if p.IsText() && p.Text == "" {
			continue
		}
		w.dst = appendInput(jsontext.AppendComma(w.dst), p)
	}
	w.dst = append(w.dst, ']')
}

// appendInput appends a part of an input message or of a result.
func appendInput(dst []byte, p modelapi.Part) []byte {
	dst = append(dst, '{')
	switch {
	case p.Name != "":
		dst = jsontext.AppendMember(jsontext.AppendMember(dst, "type", "input_file"), "filename", p.Name)
		dst = append(append(append(jsontext.AppendName(dst, "file_data"), `"data:`...), p.MIME...), ";base64,"...)
		dst = append(base64.StdEncoding.AppendEncode(dst, p.Data), '"')
	case p.URL != "":
		dst = jsontext.AppendMember(jsontext.AppendMember(dst, "type", "input_image"), "image_url", p.URL)
	case p.MIME != "":
		dst = jsontext.AppendMember(dst, "type", "input_image")
		dst = append(append(append(jsontext.AppendName(dst, "image_url"), `"data:`...), p.MIME...), ";base64,"...)
		dst = append(base64.StdEncoding.AppendEncode(dst, p.Data), '"')
	default:
		dst = jsontext.AppendMember(jsontext.AppendMember(dst, "type", "input_text"), "text", p.Text)
	}
	return append(dst, '}')
}

// begin opens an item.
func (w *inputWriter) begin() {
	w.dst = append(jsontext.AppendComma(w.dst), '{')
}

// group writes what the model produced, and an output for each of its calls.
func (w *inputWriter) group(g *modelapi.Group) {
	own := w.replay(g)
	if !own {
		if text := w.render.Text(g.Message.Content); text != "" || len(g.Invocations) == 0 {
			w.begin()
			w.dst = jsontext.AppendMember(w.dst, "role", "assistant")
			w.dst = append(jsontext.AppendMember(w.dst, "content", cmp.Or(text, "[empty]")), '}')
		}
		for _, call := range g.Invocations {
			w.call(call, false)
		}
	}
	for i, result := range g.Results {
		w.begin()
		w.dst = jsontext.AppendMember(w.dst, "type", "function_call_output")
		w.dst = jsontext.AppendMember(w.dst, "call_id", responseCallID(g.Invocations[i], own))
		w.dst = jsontext.AppendName(w.dst, "output")
		w.contents(w.result(result))
		w.dst = append(w.dst, '}')
	}
}

// call writes one call of the model, which is the server's own if it came from there.
func (w *inputWriter) call(call canister.Invocation, own bool) {
	w.begin()
	w.dst = jsontext.AppendMember(w.dst, "type", "function_call")
	w.dst = jsontext.AppendMember(w.dst, "call_id", responseCallID(call, own))
	w.dst = jsontext.AppendMember(w.dst, "name", modelapi.LegalName(call.Name))
	w.dst = append(jsontext.AppendMember(w.dst, "arguments", modelapi.LegalArguments(call.Arguments)), '}')
}

// maxID is the longest ID of an item or a call that Responses takes. Other servers give
// longer ones.
const maxID = 64

// responseCallID returns the ID that links a call and its output. The API wants IDs that
// are unique in the whole request. Only its own are: other servers number the calls of each
// message, for example.
func responseCallID(call canister.Invocation, own bool) string {
	if id := modelapi.CallID(call); own && len(id) <= maxID {
		return id
	}
	return modelapi.MadeCallID(call.ID)
}

// result returns the parts of a result.
func (w *inputWriter) result(r canister.Result) []modelapi.Part {
	var parts []modelapi.Part
	empty := true
	for _, c := range dedupe.Contents(r.Content) {
		for _, p := range w.render.Part(c) {
			empty = empty && p.IsText() && p.Text == ""
			parts = append(parts, p)
		}
	}
	if empty {
		return []modelapi.Part{{Text: modelapi.EmptyResult(r)}}
	}
	return parts
}

// replay writes the items of an answer as the server sent them, in their order. It returns
// false, and writes nothing, if they came from another server or model, or no longer match
// the canisters.
func (w *inputWriter) replay(g *modelapi.Group) bool {
	if w.transcript.LeavesOut(g.Message) {
		return false
	}
	items := w.m.server.KeptItems(g, outputKey, w.m.name, "function_call")
	for len(items) > 0 && items[len(items)-1].Type == "reasoning" {
		items = items[:len(items)-1] // the server refuses reasoning that nothing follows
	}
	rest, open := g.Message.Content, g.Invocations
	for _, item := range items {
		own := rest[:item.Contents]
		rest = rest[item.Contents:]
		switch {
		case item.Type == "function_call":
			w.call(open[0], true)
			open = open[1:]
		case item.Type == "message":
			w.output(item, own)
		case len(item.Item) > 0:
			w.begin()
			w.dst = append(w.dst[:len(w.dst)-1], item.Item...)
		}
	}
	return len(items) > 0
}

// output writes a message of the model.
func (w *inputWriter) output(item modelapi.Item, contents []canister.Content) {
	if len(contents) == 0 {
		contents = canister.Texts("")
	}
	w.begin()
	w.dst = jsontext.AppendMember(w.dst, "type", "message")
	w.dst = jsontext.AppendMember(w.dst, "role", "assistant")
	if item.Phase != "" {
		w.dst = jsontext.AppendMember(w.dst, "phase", item.Phase)
	}
	w.dst = append(jsontext.AppendName(w.dst, "content"), '[')
	for i, c := range contents {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		kind, name := "output_text", "text"
		for _, at := range item.Refusals {
			if at == i {
				kind, name = "refusal", "refusal"
			}
		}
		w.dst = jsontext.AppendMember(append(w.dst, '{'), "type", kind)
		w.dst = append(jsontext.AppendMember(w.dst, name, cmp.Or(w.render.Text([]canister.Content{c}), "[empty]")), '}')
	}
	w.dst = append(w.dst, "]}"...)
}
