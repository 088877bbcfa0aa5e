// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/internal/clienttools"
)

// responseAnswer is a response: of the turn that a request follows, or from the log.
type responseAnswer struct {
	turn       *turn
	id, model  string
	previous   string
	background bool
	created    time.Time
	status     string
	incomplete string // why the status is incomplete
	failed     *apiError
	items      []map[string]any

	stream *stream // the rest is for a stream
	number int     // of the next event
	pieces writer
	open   map[string]any // the message that is being written; may be nil
	calls  map[string]int // index of the item of each call, by the ID of its invocation
}

// finish sets the status of a response that has ended.
func (a *responseAnswer) finish(ended engine.Ended, err error) {
	if a.stream == nil {
		a.items = a.toItems(a.turn.earlier, a.turn.canisters)
	}
	if err != nil {
		a.status, a.failed = "failed", asError(err)
		return
	}
	a.ended(ended.Reason)
	if ended.Reason == converse.ReasonWaiting && a.stream == nil {
		a.addWaits(a.turn.waits())
	}
}

func (a *responseAnswer) ended(reason converse.Reason) {
	a.status = "completed"
	switch {
	case isLimit(reason):
		a.status, a.incomplete = "incomplete", "max_output_tokens"
	case reason == converse.ReasonContentFilter:
		a.status, a.incomplete = "incomplete", "content_filter"
	case reason == converse.ReasonCancelled:
		a.status = "cancelled"
	}
}

// form returns the JSON form of the response.
func (a *responseAnswer) form() map[string]any {
	form := map[string]any{
		"id": a.id, "object": "response", "created_at": a.created.Unix(), "status": a.status, "model": a.model, "output": a.output(),
		"background": a.background, "conversation": map[string]any{"id": a.turn.conversation}, "error": nil, "incomplete_details": nil, "instructions": nil,
		"metadata": map[string]any{}, "parallel_tool_calls": true, "previous_response_id": nil, "temperature": nil, "tool_choice": "auto", "tools": []any{},
		"top_p": nil, "max_output_tokens": nil, "text": map[string]any{"format": map[string]any{"type": "text"}}, "truncation": "disabled", "usage": nil,
	}
	if a.previous != "" {
		form["previous_response_id"] = a.previous
	}
	if a.incomplete != "" {
		form["incomplete_details"] = map[string]any{"reason": a.incomplete}
	}
	if a.failed != nil {
		form["error"] = map[string]any{"code": "server_error", "message": a.failed.Message + " " + a.failed.Advice}
	}
	if a.status != "in_progress" {
		u := a.turn.usage()
		form["usage"] = map[string]any{
			"input_tokens": u.Input, "input_tokens_details": map[string]any{"cached_tokens": u.Cached},
			"output_tokens": u.Output, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}, "total_tokens": u.Input + u.Output,
		}
	}
	return form
}

func (a *responseAnswer) output() []map[string]any {
	if a.items == nil {
		return []map[string]any{}
	}
	return a.items
}

// toItems returns the output items of canisters; earlier are those before them in the turn.
// A call becomes an item when it begins, not while it waits for an approval.
func (a *responseAnswer) toItems(earlier, canisters []canister.Canister) []map[string]any {
	var all []map[string]any
	calls := map[string]map[string]any{}
	turn := append(slices.Clone(earlier), canisters...)
	begin := func(id string) map[string]any {
		if calls[id] == nil {
			calls[id] = beginItem(turn, id)
			all = append(all, calls[id])
		}
		return calls[id]
	}
	for _, c := range canisters {
		switch c := c.(type) {
		case canister.Assistant:
			if text := canister.TextOf(c.Content); text != "" && c.Finish != canister.FinishCancelled {
				all = append(all, messageItem(len(all), "completed", text))
			}
		case canister.Intent:
			if !isInner(turn, c.Invocation) {
				begin(c.Invocation)
			}
		case canister.Wait:
			if clienttools.IsCall(c) {
				all = append(all, a.functionItem(turn, c))
			}
		case canister.Result:
			if c.Parent == "" && !a.turn.isPassed(c.Invocation) {
				completeCall(begin(c.Invocation), c)
			}
		}
	}
	return all
}

// functionItem returns the item of a call of the client's tool.
func (a *responseAnswer) functionItem(turn []canister.Canister, wait canister.Wait) map[string]any {
	name := ""
	for _, c := range turn {
		if invocation, is := c.(canister.Invocation); is && invocation.ID == wait.Invocation {
			name = invocation.Name
		}
	}
	return functionItem(a.turn.conversation, openWait{Invocation: wait.Invocation, Tool: name, Arguments: wait.Arguments})
}

func functionItem(conversation string, wait openWait) map[string]any {
	id := callID(conversation, wait.Invocation)
	return map[string]any{"id": "fc" + strings.TrimPrefix(id, "call"), "type": "function_call", "status": "completed", "call_id": id, "name": wait.Tool, "arguments": wait.Arguments}
}

// isInner reports whether a call was made by another call.
func isInner(canisters []canister.Canister, id string) bool {
	return slices.ContainsFunc(canisters, func(c canister.Canister) bool {
		invocation, is := c.(canister.Invocation)
		return is && invocation.ID == id && invocation.Parent != ""
	})
}

// beginItem returns the item of a call, whose invocation is one of the canisters.
func beginItem(canisters []canister.Canister, id string) map[string]any {
	item, wait := callItem(canister.Invocation{Head: canister.Head{ID: id}}), ""
	for _, c := range canisters {
		switch c := c.(type) {
		case canister.Invocation:
			if c.ID == id {
				item = callItem(c)
			}
		case canister.Wait:
			if c.Invocation == id {
				wait = c.ID
			}
		}
	}
	if wait != "" {
		item["approval_request_id"] = wait
	}
	return item
}

// messageItem returns the item of a message of the model.
func messageItem(index int, status, text string) map[string]any {
	content := []any{}
	if status == "completed" {
		content = append(content, textPart(text))
	}
	return map[string]any{"id": fmt.Sprintf("msg_%d", index), "type": "message", "status": status, "role": "assistant", "content": content}
}

func textPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// callItem returns the item of a call, as the Responses API shows the calls of a hosted MCP
// server.
func callItem(c canister.Invocation) map[string]any {
	label, name := splitName(c.Name)
	return map[string]any{
		"id": "mcp_" + c.ID, "type": "mcp_call", "status": "in_progress", "server_label": label, "name": name, "arguments": c.Arguments,
		"output": nil, "error": nil, "approval_request_id": nil,
	}
}

// splitName splits the name that a model uses for a tool into ensemble and tool.
func splitName(name string) (label, tool string) {
	label, tool, isSplit := strings.Cut(name, "__")
	if !isSplit {
		return "consort", name
	}
	return label, tool
}

// completeCall adds the result to the item of a call.
func completeCall(item map[string]any, result canister.Result) {
	text := resultText(result)
	if result.Failed() {
		item["status"], item["error"] = "failed", cmp.Or(text, result.Code)
		return
	}
	item["status"], item["output"] = "completed", text
}

// resultText returns the content of a result as text: other content in its JSON form.
func resultText(result canister.Result) string {
	var texts []string
	for _, content := range result.Content {
		if text, is := content.(canister.TextContent); is {
			texts = append(texts, text.Text)
			continue
		}
		line, err := canister.Marshal(canister.Result{Content: []canister.Content{content}})
		var form struct{ Content []json.RawMessage }
		if err == nil && json.Unmarshal(line, &form) == nil && len(form.Content) == 1 {
			texts = append(texts, string(form.Content[0]))
		}
	}
	return strings.Join(texts, "\n")
}

// approvalItem returns the item that asks for the answer to a wait.
func approvalItem(wait openWait) map[string]any {
	label, name := splitName(wait.Tool)
	arguments := cmp.Or(wait.Arguments, "{}")
	if wait.For == canister.WaitElicitation {
		arguments = cmp.Or(string(wait.Question), "{}")
	}
	return map[string]any{"id": wait.ID, "type": "mcp_approval_request", "server_label": label, "name": name, "arguments": arguments}
}

func (a *responseAnswer) addWaits(open []openWait) {
	a.items = append(a.items, a.waitItems(open)...)
}

// waitItems returns the items of open waits that have none yet.
func (a *responseAnswer) waitItems(open []openWait) (all []map[string]any) {
	for _, wait := range open {
		switch {
		case wait.Client && !a.announced(wait.Invocation):
			all = append(all, functionItem(a.turn.conversation, wait))
		case !wait.Client && wait.For != canister.WaitTimer:
			all = append(all, approvalItem(wait))
		}
	}
	return all
}

// announced reports whether the response has the call of a client's tool.
func (a *responseAnswer) announced(invocation string) bool {
	id := callID(a.turn.conversation, invocation)
	return slices.ContainsFunc(a.items, func(item map[string]any) bool { return item["call_id"] == id })
}

// streamTo streams the response.
func (a *responseAnswer) streamTo(ctx context.Context, s *stream) error {
	defer s.stop()
	a.stream, a.calls, a.items = s, map[string]int{}, []map[string]any{}
	a.pieces.send = a.piece
	err := errors.Join(a.event("response.created", "response", a.form()), a.event("response.in_progress", "response", a.form()))
	if err != nil {
		return nil // the client has gone
	}
	to := sink{text: a.pieces.text, again: a.pieces.again, idle: s.idle(), added: func(_ int, c canister.Canister) error { return a.add(c) }}
	ended, err := a.turn.follow(ctx, to)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil && ended.Reason == converse.ReasonWaiting {
		for _, item := range a.waitItems(a.turn.waits()) {
			err = errors.Join(err, a.sendItem(item))
		}
	}
	a.finish(ended, err)
	// The API has no event for a cancelled response: clients know it by its status.
	last := map[string]string{"completed": "response.completed", "incomplete": "response.incomplete", "failed": "response.failed", "cancelled": "response.incomplete"}[a.status]
	_ = a.event(last, "response", a.form())
	s.flush()
	return nil
}

// event sends an event; the members come in pairs.
func (a *responseAnswer) event(name string, members ...any) error {
	form := map[string]any{"type": name, "sequence_number": a.number}
	for i := 0; i < len(members); i += 2 {
		form[members[i].(string)] = members[i+1]
	}
	a.number++
	data, err := marshal(form)
	if err == nil && !a.stream.send("", name, data) {
		err = context.Canceled
	}
	return err
}

// piece streams a piece of a message.
func (a *responseAnswer) piece(text string) error {
	if text == "" {
		return nil
	}
	if a.open == nil {
		a.open = messageItem(len(a.items), "in_progress", "")
		a.items = append(a.items, a.open)
		err := errors.Join(a.event("response.output_item.added", "output_index", len(a.items)-1, "item", a.open),
			a.event("response.content_part.added", "item_id", a.open["id"], "output_index", len(a.items)-1, "content_index", 0, "part", textPart("")))
		if err != nil {
			return err
		}
	}
	return a.event("response.output_text.delta", "item_id", a.open["id"], "output_index", len(a.items)-1, "content_index", 0, "delta", text, "logprobs", []any{})
}

// add streams the events that a canister of the log completes.
func (a *responseAnswer) add(c canister.Canister) error {
	switch c := c.(type) {
	case canister.Assistant:
		return a.completeMessage(c)
	case canister.Intent:
		if !isInner(a.turn.canisters, c.Invocation) {
			_, err := a.beginCall(c.Invocation)
			return err
		}
	case canister.Wait:
		if clienttools.IsCall(c) {
			return a.sendItem(a.functionItem(append(slices.Clone(a.turn.earlier), a.turn.canisters...), c))
		}
	case canister.Result:
		if !a.turn.isPassed(c.Invocation) {
			return a.endCall(c)
		}
	}
	return nil
}

func (a *responseAnswer) completeMessage(message canister.Assistant) error {
	text, err := a.pieces.complete(message)
	if err != nil || a.open == nil {
		return err
	}
	at, id := len(a.items)-1, a.open["id"]
	a.open = nil
	a.items[at] = messageItem(at, "completed", text)
	return errors.Join(
		a.event("response.output_text.done", "item_id", id, "output_index", at, "content_index", 0, "text", text, "logprobs", []any{}),
		a.event("response.content_part.done", "item_id", id, "output_index", at, "content_index", 0, "part", textPart(text)),
		a.event("response.output_item.done", "output_index", at, "item", a.items[at]))
}

// beginCall streams the item of a call, unless it was streamed already, and returns its
// index.
func (a *responseAnswer) beginCall(id string) (at int, err error) {
	if at, is := a.calls[id]; is {
		return at, nil
	}
	item := beginItem(append(slices.Clone(a.turn.earlier), a.turn.canisters...), id)
	at = len(a.items)
	a.items, a.calls[id] = append(a.items, item), at
	return at, errors.Join(
		a.event("response.output_item.added", "output_index", at, "item", item),
		a.event("response.mcp_call_arguments.done", "item_id", item["id"], "output_index", at, "arguments", item["arguments"]),
		a.event("response.mcp_call.in_progress", "item_id", item["id"], "output_index", at))
}

func (a *responseAnswer) endCall(result canister.Result) error {
	if result.Parent != "" {
		return nil
	}
	at, err := a.beginCall(result.Invocation)
	if err != nil {
		return err
	}
	item := a.items[at]
	completeCall(item, result)
	return errors.Join(
		a.event("response.mcp_call."+item["status"].(string), "item_id", item["id"], "output_index", at),
		a.event("response.output_item.done", "output_index", at, "item", item))
}

// sendItem streams an item that is complete.
func (a *responseAnswer) sendItem(item map[string]any) error {
	at := len(a.items)
	a.items = append(a.items, item)
	begun := item
	if item["type"] == "function_call" {
		begun = maps.Clone(item)
		begun["status"], begun["arguments"] = "in_progress", ""
	}
	err := a.event("response.output_item.added", "output_index", at, "item", begun)
	if item["type"] == "function_call" {
		err = errors.Join(err,
			a.event("response.function_call_arguments.delta", "item_id", item["id"], "output_index", at, "delta", item["arguments"]),
			a.event("response.function_call_arguments.done", "item_id", item["id"], "output_index", at, "name", item["name"], "arguments", item["arguments"]))
	}
	return errors.Join(err, a.event("response.output_item.done", "output_index", at, "item", item))
}
