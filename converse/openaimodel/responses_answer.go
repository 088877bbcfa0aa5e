// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/internal/modelapi"
	"github.com/tidwall/gjson"
)

// outputKey is the member of a message's metadata with the items of an answer.
const outputKey = "openaimodel.output"

// omittedKey is the member of a message's metadata that says that the request for the answer
// left out the reasoning of all answers before it, because the server had rejected that.
const omittedKey = "openaimodel.reasoning_omitted"

// maxItems limits the items of one answer.
const maxItems = 1024

// responseAnswer assembles an answer from the events of a stream, or from a whole response
// (API reference, Responses, Streaming events). The items of the last event are the ones
// that count; what streamed before fills the gaps of servers that leave them out.
type responseAnswer struct {
	emit  func(converse.Delta)
	tools *converse.Toolset // offered tools; may be nil

	items     []*responseItem // in the order of the answer
	model     string
	status    string // of the response
	reason    string // why it is incomplete
	usage     *canister.Usage
	ran       string // the tool of an MCP server that the server has called by itself
	ended     bool   // the response has come to its end
	idle      bool   // the last event was only a sign of life
	fault     bool   // an error came instead of an answer
	overflown bool   // more than maxItems items
}

// responseItem is one item of an answer.
type responseItem struct {
	index     string // output_index, as the server wrote it
	kind      string
	id        string
	callID    string
	name      string
	phase     string
	arguments []byte
	parts     []*responsePart
	shown     int    // parts of a summary that have begun
	raw       []byte // the item as the server sent it at its end
	announced bool
}

// responsePart is one part of a message, or of the text of a reasoning.
type responsePart struct {
	kind      string // output_text, refusal, summary_text or reasoning_text
	text      []byte
	citations []json.RawMessage
}

// State implements [modelapi.Accumulator].
func (a *responseAnswer) State() modelapi.State {
	return modelapi.State{Began: len(a.items) > 0 || a.ended, Whole: a.ended, Complete: a.ended, Done: a.ended, Idle: a.idle, Fault: a.fault, Ran: a.ran}
}

// Add processes an event, or a whole response; see [modelapi.Accumulator].
func (a *responseAnswer) Add(event string, value gjson.Result) {
	kind := value.Get("type").String()
	if kind == "" {
		kind = event
	}
	a.idle = kind == "keepalive" || kind == "ping" || kind == "response.in_progress" || kind == "response.queued"
	switch kind {
	case "error", "response.failed":
		a.fault = true
	case "response.output_item.added":
		item := a.itemAt(value)
		if item != nil && item.raw != nil { // the server numbers two items alike
			item = a.newItem("", value.Get("item.id").String(), item.kind)
		}
		a.begin(item, value.Get("item"))
	case "response.output_item.done":
		a.finish(a.itemAt(value), value.Get("item"))
	case "response.output_text.delta", "response.refusal.delta":
		a.say(a.part(value, "message", "content_index", partKinds[kind]), value.Get("delta").String())
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.think(a.itemOf(value, "reasoning"), a.part(value, "reasoning", indexNames[kind], partKinds[kind]), value.Get("delta").String())
	case "response.function_call_arguments.delta":
		if item := a.itemOf(value, "function_call"); item != nil {
			item.arguments = append(item.arguments, value.Get("delta").String()...)
		}
	case "response.function_call_arguments.done":
		if item := a.itemOf(value, "function_call"); item != nil && value.Get("arguments").Type == gjson.String {
			item.arguments = []byte(value.Get("arguments").Str)
		}
	default:
		if response := value.Get("response"); response.IsObject() {
			a.response(response)
		} else if value.Get("output").IsArray() || value.Get("object").String() == "response" || value.Get("error").IsObject() {
			a.response(value)
		}
	}
}

// partKinds are the kinds of the parts that events extend, and indexNames the members with
// their position.
var (
	partKinds = map[string]string{
		"response.output_text.delta": "output_text", "response.refusal.delta": "refusal",
		"response.reasoning_summary_text.delta": "summary_text", "response.reasoning_text.delta": "reasoning_text",
	}
	indexNames = map[string]string{"response.reasoning_summary_text.delta": "summary_index", "response.reasoning_text.delta": "content_index"}
)

// response processes a response object, of an event or whole.
func (a *responseAnswer) response(response gjson.Result) {
	if model := response.Get("model").String(); model != "" {
		a.model = strings.Clone(model)
	}
	if fault := response.Get("error"); isFault(fault) {
		a.fault = true
		return
	}
	status := response.Get("status").String()
	switch status {
	case "completed", "incomplete":
	case "failed", "cancelled":
		a.fault = true
		return
	default:
		return // queued or in_progress
	}
	output := response.Get("output").Array()
	for i, item := range a.streamed(output) {
		if item == nil {
			item = a.newItem("", output[i].Get("id").String(), output[i].Get("type").String())
		}
		a.finish(item, output[i])
	}
	a.status, a.reason, a.ended = strings.Clone(status), strings.Clone(response.Get("incomplete_details.reason").String()), true
	if usage := response.Get("usage"); usage.IsObject() {
		a.usage = &canister.Usage{
			Input:        usage.Get("input_tokens").Int(),
			Cached:       usage.Get("input_tokens_details.cached_tokens").Int(),
			CacheWritten: usage.Get("input_tokens_details.cache_write_tokens").Int(),
			Output:       usage.Get("output_tokens").Int(),
			Reasoning:    usage.Get("output_tokens_details.reasoning_tokens").Int(),
		}
	}
}

// streamed returns the items of the stream that the items of a whole response are, or nil
// for one that was not streamed: those with their ID or call ID, and otherwise, in their
// order, those of their kind. Positions do not count: some servers number the items of a
// stream in another way, or leave some out of the response.
func (a *responseAnswer) streamed(output []gjson.Result) []*responseItem {
	found := make([]*responseItem, len(output))
	rest := slices.Clone(a.items)
	take := func(i int, same func(item *responseItem) bool) {
		n := slices.IndexFunc(rest, func(item *responseItem) bool { return item.kind == output[i].Get("type").String() && same(item) })
		if n >= 0 {
			found[i] = rest[n]
			rest = slices.Delete(rest, n, n+1)
		}
	}
	for i, value := range output {
		id, call := value.Get("id").String(), value.Get("call_id").String()
		take(i, func(item *responseItem) bool { return id != "" && item.id == id || call != "" && item.callID == call })
	}
	for i := range output {
		if found[i] == nil {
			take(i, func(*responseItem) bool { return true })
		}
	}
	return found
}

// itemAt returns the item of an event about an item as a whole.
func (a *responseAnswer) itemAt(event gjson.Result) *responseItem {
	item := event.Get("item")
	return a.itemFor(event.Get("output_index").Raw, item.Get("id").String(), item.Get("type").String())
}

// itemOf returns the item that an event about its content belongs to.
func (a *responseAnswer) itemOf(event gjson.Result, kind string) *responseItem {
	return a.itemFor(event.Get("output_index").Raw, event.Get("item_id").String(), kind)
}

// itemFor returns the item of that kind with that index, or else that ID, and creates it if
// necessary. Servers that give neither mean the last item of the kind. It returns nil if
// there are too many.
func (a *responseAnswer) itemFor(index, id, kind string) *responseItem {
	for i := len(a.items) - 1; i >= 0; i-- {
		item := a.items[i]
		same := item.kind == kind
		switch {
		case index != "" && item.index != "":
			same = same && index == item.index
		case id != "" && item.id != "":
			same = same && id == item.id
		default:
			same = same && item.raw == nil
		}
		if same {
			return item
		}
	}
	return a.newItem(index, id, kind)
}

// newItem appends an item. It returns nil if there are too many.
func (a *responseAnswer) newItem(index, id, kind string) *responseItem {
	if len(a.items) == maxItems {
		a.overflown = true
		return nil
	}
	item := &responseItem{index: strings.Clone(index), id: strings.Clone(id), kind: strings.Clone(kind)}
	a.items = append(a.items, item)
	return item
}

// begin processes the beginning of an item.
func (a *responseAnswer) begin(item *responseItem, value gjson.Result) {
	if item == nil {
		return
	}
	if id := value.Get("id").String(); id != "" {
		item.id = strings.Clone(id)
	}
	if phase := value.Get("phase").String(); phase != "" {
		item.phase = strings.Clone(phase)
	}
	if item.kind == "mcp_call" {
		a.ran = cmp.Or(strings.Clone(value.Get("name").String()), item.kind)
	}
	if item.kind != "function_call" {
		return
	}
	if id := value.Get("call_id").String(); id != "" {
		item.callID = strings.Clone(id)
	}
	if name := value.Get("name").String(); name != "" {
		item.name = strings.Clone(name)
	}
	if !item.announced && item.name != "" {
		item.announced = true
		a.emit(converse.Delta{Invocation: modelapi.ToolName(a.tools, item.name)})
	}
}

// finish processes an item that is complete. What it has and has not been streamed is
// yielded now.
func (a *responseAnswer) finish(item *responseItem, value gjson.Result) {
	if item == nil || item.raw != nil || !value.IsObject() || item.kind == "" {
		return
	}
	a.begin(item, value)
	item.raw = bytes.ToValidUTF8([]byte(value.Raw), []byte("\uFFFD"))
	switch item.kind {
	case "function_call":
		if arguments := value.Get("arguments"); arguments.Type == gjson.String {
			item.arguments = []byte(arguments.Str)
		} else if arguments.IsObject() {
			item.arguments = []byte(arguments.Raw)
		}
	case "message":
		a.finishMessage(item, value.Get("content").Array())
	case "reasoning":
		for _, list := range [][2]string{{"summary", "summary_text"}, {"content", "reasoning_text"}} {
			for i, part := range value.Get(list[0]).Array() {
				p := item.part(i, list[1])
				if rest, found := strings.CutPrefix(part.Get("text").String(), string(p.text)); found {
					a.think(item, p, rest)
				}
			}
		}
	}
}

// finishMessage gives a message the parts that it has at its end, if they begin with the
// streamed text, and yields the rest. Some servers stream each delta as a part of its own.
func (a *responseAnswer) finishMessage(item *responseItem, contents []gjson.Result) {
	var streamed, whole strings.Builder
	for _, p := range item.parts {
		streamed.Write(p.text)
	}
	var parts []*responsePart
	for _, part := range contents[:min(len(contents), maxItems)] {
		if text := part.Get("text").String() + part.Get("refusal").String(); text != "" {
			whole.WriteString(text)
			parts = append(parts, &responsePart{kind: strings.Clone(part.Get("type").String()), text: []byte(text), citations: citations(part)})
		}
	}
	rest, found := strings.CutPrefix(whole.String(), streamed.String())
	if !found {
		return
	}
	item.parts = parts
	if rest != "" {
		a.emit(converse.Delta{Text: rest})
	}
}

// citations returns the sources that a message of Chat Completions, or a part of one of Responses, cites.
func citations(part gjson.Result) (sources []json.RawMessage) {
	for _, annotation := range part.Get("annotations").Array() {
		sources = append(sources, bytes.ToValidUTF8([]byte(annotation.Raw), []byte("\uFFFD")))
	}
	return sources
}

// part returns the part that an event extends.
func (a *responseAnswer) part(event gjson.Result, kind, index, partKind string) *responsePart {
	item := a.itemOf(event, kind)
	if item == nil {
		return nil
	}
	return item.part(int(event.Get(index).Int()), partKind)
}

// part returns the part at a position, and creates it if necessary.
func (i *responseItem) part(at int, kind string) *responsePart {
	n := 0
	for _, p := range i.parts {
		if p.kind == kind || i.kind == "message" {
			if n == at {
				return p
			}
			n++
		}
	}
	if len(i.parts) == maxItems {
		return i.parts[maxItems-1]
	}
	p := &responsePart{kind: strings.Clone(kind)}
	i.parts = append(i.parts, p)
	return p
}

// say adds text to a message.
func (a *responseAnswer) say(part *responsePart, text string) {
	if part == nil || text == "" {
		return
	}
	part.text = append(part.text, text...)
	a.emit(converse.Delta{Text: text})
}

// think adds text to a reasoning that is shown. A blank line separates its parts.
func (a *responseAnswer) think(item *responseItem, part *responsePart, text string) {
	if item == nil || part == nil || text == "" {
		return
	}
	if len(part.text) == 0 {
		if item.shown++; item.shown > 1 {
			a.emit(converse.Delta{Reasoning: "\n\n"})
		}
	}
	part.text = append(part.text, text...)
	a.emit(converse.Delta{Reasoning: text})
}

// reply returns the complete answer.
func (a *responseAnswer) reply(m *Model, request *converse.Request) (converse.Reply, error) {
	if a.overflown {
		return converse.Reply{}, errors.New("the answer holds more than 1,024 items")
	}
	reply := converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Model: a.model, Usage: a.usage}}
	var kept []modelapi.Item
	calls := modelapi.NewCalls(request, reply.Message.ID)
	for _, item := range a.items {
		entry := modelapi.Item{Type: item.kind, Phase: item.phase}
		switch item.kind {
		case "message":
			for _, p := range item.parts {
				if len(p.text) == 0 {
					continue
				}
				if p.kind == "refusal" {
					entry.Refusals = append(entry.Refusals, entry.Contents)
				}
				entry.Contents++
				reply.Message.Content = append(reply.Message.Content, modelapi.Cited(string(p.text), p.citations))
			}
			if entry.Contents == 0 && (len(kept) == 0 || kept[len(kept)-1].Type != "reasoning") {
				continue // a reasoning stays with the message that follows it
			}
		case "function_call":
			entry.Call = calls.Add(item.callID, item.name, string(item.arguments)).CallID
		case "reasoning":
			if entry.Item = reasoningItem(item.raw); entry.Item == nil {
				continue
			}
		default:
			if item.raw == nil {
				continue
			}
			entry.Item, entry.Contents = item.raw, 1
			reply.Message.Content = append(reply.Message.Content, canister.StructuredContent{JSON: modelapi.Shown(item.raw)})
		}
		kept = append(kept, entry)
	}
	reply.Invocations = calls.Invocations
	reply.Message.Finish = a.finishReason(kept, len(reply.Invocations))
	a.markCutOff(&reply)
	reply.Message.Metadata = m.server.KeepItems(outputKey, m.name, kept)
	return reply, nil
}

// markCutOff replaces the arguments of a last call that was cut off before them.
func (a *responseAnswer) markCutOff(reply *converse.Reply) {
	n := len(reply.Invocations)
	if a.status != "incomplete" || n == 0 || a.items[len(a.items)-1].kind != "function_call" {
		return
	}
	if len(a.items[len(a.items)-1].arguments) == 0 {
		reply.Invocations[n-1].Arguments = modelapi.CutOffArguments
	}
}

// finishReason returns the reason why the model stopped.
func (a *responseAnswer) finishReason(items []modelapi.Item, calls int) canister.Finish {
	switch a.reason {
	case "max_output_tokens", "max_tokens":
		return canister.FinishLength
	case "content_filter":
		return canister.FinishContentFilter
	case "":
	default:
		return modelapi.OtherFinish(a.reason)
	}
	if calls > 0 {
		return canister.FinishInvocations
	}
	for _, item := range items {
		if len(item.Refusals) > 0 {
			return canister.FinishRefusal
		}
	}
	return canister.FinishStop
}

// reasoningItem returns what a server needs to see again of a reasoning: nil if the item
// has nothing but a summary, which the server would look up by the item's ID and not find.
func reasoningItem(raw []byte) json.RawMessage {
	item := gjson.ParseBytes(raw)
	encrypted, content := item.Get("encrypted_content"), item.Get("content")
	if encrypted.String() == "" && len(content.Array()) == 0 {
		return nil
	}
	kept := map[string]json.RawMessage{"type": json.RawMessage(`"reasoning"`), "summary": json.RawMessage("[]")}
	for _, name := range []string{"id", "summary", "content", "encrypted_content"} {
		value := item.Get(name)
		if name == "id" && len(value.String()) > maxID {
			continue // OpenAI refuses long IDs, and needs none with encrypted content
		}
		if value.Exists() && value.Type != gjson.Null {
			kept[name] = json.RawMessage(value.Raw)
		}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil
	}
	return text
}
