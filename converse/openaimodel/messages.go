// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/jsontext"
)

// messageWriter writes canisters as messages of the API. The output depends only on the
// canisters and the model's options.
type messageWriter struct {
	m   *Model
	dst []byte
	// settled is the length of the part of dst that later canisters cannot change.
	settled int
}

// write appends the messages of a history, or of the rest of one that starts at a
// message. It returns how many canisters are settled.
func (w *messageWriter) write(history []canister.Canister) (int, error) {
	done := 0
	for i := 0; i < len(history); {
		next, final := i+1, true
		switch c := history[i].(type) {
		case canister.Supervisor:
			w.plain(w.m.opts.SupervisorRole, c.Content)
		case canister.User:
			w.message("user", w.render(c.Content))
		case canister.Document:
			w.message("user", w.document(c))
		case canister.Assistant:
			group, err := groupAt(history, i)
			if err != nil {
				return 0, err
			}
			w.group(group)
			next, final = i+group.size(), len(group.invocations) > 0
		case nil:
			return 0, fmt.Errorf("openaimodel: the history has no canister at %d", i)
		default:
			return 0, fmt.Errorf("openaimodel: the %s %q in the history belongs to no message before it; canister.Repair mends that", c.Kind(), c.Header().ID)
		}
		// A message without calls at the very end could still get some.
		if i = next; final || i < len(history) {
			done, w.settled = i, len(w.dst)
		}
	}
	return done, nil
}

// group is an assistant message with its calls and their results.
type group struct {
	message     canister.Assistant
	invocations []canister.Invocation
	results     []canister.Result
}

func (g *group) size() int { return 1 + len(g.invocations) + len(g.results) }

// groupAt returns the group whose message is at index i.
func groupAt(history []canister.Canister, i int) (*group, error) {
	g := &group{message: history[i].(canister.Assistant)}
	for _, c := range history[i+1:] {
		if call, ok := c.(canister.Invocation); ok && len(g.results) == 0 {
			g.invocations = append(g.invocations, call)
		} else if result, ok := c.(canister.Result); ok && len(g.results) < len(g.invocations) {
			g.results = append(g.results, result)
		} else {
			break
		}
	}
	for n, call := range g.invocations {
		if n >= len(g.results) || g.results[n].Invocation != call.ID {
			return nil, fmt.Errorf("openaimodel: the invocation %q in the history has no result in its place; canister.Repair mends that", call.ID)
		}
	}
	return g, nil
}

// group writes the assistant message, a tool message for each result, and a user message
// for parts of the results that tool messages cannot contain.
func (w *messageWriter) group(g *group) {
	w.begin("assistant")
	text := w.lines(g.message.Content)
	if text == "" && len(g.invocations) > 0 {
		w.dst = append(jsontext.AppendName(w.dst, "content"), "null"...)
	} else {
		w.content(text)
	}
	if thought := w.m.kept(g.message.Metadata, reasoningKey); thought != nil {
		w.dst = append(jsontext.AppendName(w.dst, "reasoning_content"), thought...)
	}
	if details := w.m.kept(g.message.Metadata, detailsKey); details != nil {
		w.dst = append(jsontext.AppendName(w.dst, "reasoning_details"), details...)
	}
	if len(g.invocations) > 0 {
		w.dst = append(jsontext.AppendName(w.dst, "tool_calls"), '[')
		for i, call := range g.invocations {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.call(call)
		}
		w.dst = append(w.dst, ']')
	}
	w.dst = append(w.dst, '}')

	var media []part
	for i, result := range g.results {
		call := g.invocations[i]
		text, shown := w.result(call, result)
		w.begin("tool")
		w.dst = jsontext.AppendMember(w.dst, "tool_call_id", callID(call))
		w.dst = append(jsontext.AppendMember(w.dst, "content", text), '}')
		media = append(media, shown...)
	}
	if len(media) > 0 {
		w.message("user", media)
	}
}

// call writes one call of an assistant message.
func (w *messageWriter) call(call canister.Invocation) {
	w.dst = append(w.dst, '{')
	w.dst = jsontext.AppendMember(w.dst, "id", callID(call))
	w.dst = jsontext.AppendMember(w.dst, "type", "function")
	w.dst = append(jsontext.AppendName(w.dst, "function"), '{')
	w.dst = jsontext.AppendMember(w.dst, "name", legalName(call.Name))
	w.dst = append(jsontext.AppendMember(w.dst, "arguments", legalArguments(call.Arguments)), '}')
	if extra := w.m.kept(call.Metadata, extraKey); extra != nil {
		w.dst = append(jsontext.AppendName(w.dst, "extra_content"), extra...)
	}
	w.dst = append(w.dst, '}')
}

// plain writes a message that can only contain text.
func (w *messageWriter) plain(role string, contents []canister.Content) {
	w.begin(role)
	w.content(w.lines(contents))
	w.dst = append(w.dst, '}')
}

// content writes content that is a single text. Servers reject empty content, and with it
// the whole history, on every later request.
func (w *messageWriter) content(text string) {
	w.dst = jsontext.AppendMember(w.dst, "content", cmp.Or(text, "[empty]"))
}

// message writes a message of parts, as one text if all parts are text.
func (w *messageWriter) message(role string, parts []part) {
	w.begin(role)
	if text, ok := onlyText(parts); ok {
		w.content(text)
		w.dst = append(w.dst, '}')
		return
	}
	w.dst = append(jsontext.AppendName(w.dst, "content"), '[')
	for _, p := range parts {
		if p.isText() && p.text == "" {
			continue // servers reject an empty text part
		}
		if w.dst[len(w.dst)-1] != '[' {
			w.dst = append(w.dst, ',')
		}
		w.dst = p.append(w.dst)
	}
	w.dst = append(w.dst, "]}"...)
}

// begin opens a message.
func (w *messageWriter) begin(role string) {
	if w.dst[len(w.dst)-1] != '[' {
		w.dst = append(w.dst, ',')
	}
	w.dst = jsontext.AppendMember(append(w.dst, '{'), "role", role)
}

// callID returns the ID that links a call and its result.
func callID(call canister.Invocation) string {
	if call.CallID != "" {
		return call.CallID
	}
	return madeCallID(call.ID)
}

// madeCallID returns an ID for a call that has none. It has the form that servers expect,
// with at most 40 characters.
func madeCallID(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return "call_" + hex.EncodeToString(sum[:12])
}

// legalName returns the name of a called tool in a form that the API accepts. Only names
// that the model invented can be invalid. The server would reject the whole history
// because of one.
func legalName(name string) string {
	legal := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if legal == "" {
		return "unnamed"
	}
	return legal[:min(len(legal), 64)]
}

// legalArguments returns the arguments of a call in a form that servers accept. Many
// servers parse them, and reject the whole history if they are not an object. Invalid
// text is wrapped in an object, so that the model still sees what it wrote.
func legalArguments(text string) string {
	if strings.TrimSpace(text) == "" {
		return "{}"
	}
	if json.Valid([]byte(text)) && gjson.Parse(text).IsObject() {
		return text
	}
	return string(append(jsontext.AppendMember([]byte{'{'}, "malformed_arguments", text), '}'))
}
