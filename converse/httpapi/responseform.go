// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/httpapi/internal/eventstream"
	"github.com/consort-go/consort/converse/httpapi/internal/openwaits"
	"github.com/consort-go/consort/converse/httpapi/internal/pieces"
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
	isLeft     bool // a message follows it in the log

	stream *eventstream.Stream // the rest is for a stream
	number int                 // of the next event
	pieces pieces.Writer
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
		a.addWaits(a.turn.waits)
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
		"id": a.id, "object": "response", "created_at": a.created.Unix(), "status": a.status, "model": a.model, "output": a.items,
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

// toItems returns the output items of canisters; earlier are those before them in the turn.
// A call becomes an item when it begins, not while it waits for an approval.
func (a *responseAnswer) toItems(earlier, canisters []canister.Canister) []map[string]any {
	all, calls := []map[string]any{}, map[string]map[string]any{}
	turn := append(slices.Clone(earlier), canisters...)
	begin := func(id string) map[string]any {
		if calls[id] == nil {
			calls[id] = a.beginItem(turn, id)
			all = append(all, calls[id])
		}
		return calls[id]
	}
	for _, c := range canisters {
		switch c := c.(type) {
		case canister.Assistant:
			if text := canister.TextOf(c.Content); text != "" && c.Finish != canister.FinishCancelled {
				all = append(all, a.messageItem(len(all), "completed", text))
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
	return a.clientItem(openwaits.Wait{Invocation: wait.Invocation, Tool: name, Arguments: wait.Arguments})
}

func (a *responseAnswer) clientItem(wait openwaits.Wait) map[string]any {
	return map[string]any{
		"id": a.itemID("fc", derived("call", wait.Invocation)[:16]), "type": "function_call", "status": "completed",
		"call_id": callID(a.turn.conversation, wait.Invocation), "name": wait.Tool, "arguments": wait.Arguments,
	}
}

// itemID returns the ID of an item of the output. It names the response, so that a reference to the item can
// be resolved, and differs from the IDs in all other responses: clients tell items apart by it.
func (a *responseAnswer) itemID(kind, name string) string {
	return kind + strings.TrimPrefix(a.id, "resp") + "_" + name
}

// isInner reports whether a call was made by another call.
func isInner(canisters []canister.Canister, id string) bool {
	return slices.ContainsFunc(canisters, func(c canister.Canister) bool {
		invocation, is := c.(canister.Invocation)
		return is && invocation.ID == id && invocation.Parent != ""
	})
}

// beginItem returns the item of a call, whose invocation is one of the canisters.
func (a *responseAnswer) beginItem(canisters []canister.Canister, id string) map[string]any {
	item, wait := a.callItem(canister.Invocation{Head: canister.Head{ID: id}}), ""
	for _, c := range canisters {
		switch c := c.(type) {
		case canister.Invocation:
			if c.ID == id {
				item = a.callItem(c)
			}
		case canister.Wait:
			if c.Invocation == id {
				wait = c.ID
			}
		}
	}
	if wait != "" {
		item["approval_request_id"] = approvalID(a.turn.conversation, wait)
	}
	return item
}

// messageItem returns the item of a message of the model.
func (a *responseAnswer) messageItem(index int, status, text string) map[string]any {
	content := []any{}
	if status == "completed" {
		content = append(content, textPart(text))
	}
	return map[string]any{"id": a.itemID("msg", strconv.Itoa(index)), "type": "message", "status": status, "role": "assistant", "content": content}
}

func textPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// callItem returns the item of a call, as the Responses API shows the calls of a hosted MCP
// server.
func (a *responseAnswer) callItem(c canister.Invocation) map[string]any {
	label, name := splitName(c.Name)
	return map[string]any{
		"id": a.itemID("mcp", derived("call", c.ID)[:16]), "type": "mcp_call", "status": "in_progress", "server_label": label, "name": name, "arguments": c.Arguments,
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

// approvalID returns the ID of the item that asks for the answer to a wait. It has the ID of the conversation, so
// that the answer alone says where it belongs.
func approvalID(conversation, wait string) string { return "mcpr_" + conversation + "_" + wait }

// waitOf returns the conversation and the ID of the wait that an ID of approvalID names. Any other ID is the ID of a wait.
func waitOf(id string) (conversation, wait string) {
	rest, isItem := strings.CutPrefix(id, "mcpr_")
	if i := strings.LastIndexByte(rest, '_'); isItem && i > 0 {
		return rest[:i], rest[i+1:]
	}
	return "", id
}

// approvalItem returns the item that asks for the answer to a wait.
func approvalItem(conversation string, wait openwaits.Wait) map[string]any {
	label, name := splitName(wait.Tool)
	arguments := cmp.Or(wait.Arguments, "{}")
	if wait.For == canister.WaitElicitation {
		arguments = cmp.Or(string(wait.Question), "{}")
	}
	return map[string]any{"id": approvalID(conversation, wait.ID), "type": "mcp_approval_request", "server_label": label, "name": name, "arguments": arguments}
}

func (a *responseAnswer) addWaits(open []openwaits.Wait) {
	a.items = append(a.items, a.waitItems(open)...)
}

// waitItems returns the items of open waits that have none yet.
func (a *responseAnswer) waitItems(open []openwaits.Wait) (all []map[string]any) {
	for _, wait := range open {
		switch {
		case wait.Client:
			item := a.clientItem(wait)
			if !slices.ContainsFunc(a.items, func(other map[string]any) bool { return other["call_id"] == item["call_id"] }) {
				all = append(all, item)
			}
		case wait.For != canister.WaitTimer:
			all = append(all, approvalItem(a.turn.conversation, wait))
		}
	}
	return all
}
