// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/httpapi/internal/eventstream"
	"github.com/consort-go/consort/converse/internal/clienttools"
)

// streamTo streams the response.
func (a *responseAnswer) streamTo(ctx context.Context, s *eventstream.Stream) error {
	defer s.Stop()
	a.stream, a.calls = s, map[string]int{}
	a.pieces.Send = a.piece
	err := errors.Join(a.event("response.created", "response", a.form()), a.event("response.in_progress", "response", a.form()))
	if err != nil || a.background && !s.Flush() {
		return nil // the client has gone
	}
	if a.background { // it can leave now, and read the response by its ID
		a.turn.h.sent.Begin(a.turn.key, a.turn.conversation)
	}
	to := sink{text: a.pieces.Text, again: a.pieces.Again, idle: idleOf(s), added: func(_ int, c canister.Canister) error { return a.add(c) }}
	ended, err := a.turn.follow(ctx, to)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil && ended.Reason == converse.ReasonWaiting {
		for _, item := range a.waitItems(a.turn.waits) {
			err = errors.Join(err, a.sendItem(item))
		}
	}
	a.finish(ended, err)
	// The API has no event for a cancelled response: clients know it by its status.
	last := map[string]string{"completed": "response.completed", "incomplete": "response.incomplete", "failed": "response.failed", "cancelled": "response.incomplete"}[a.status]
	_ = a.event(last, "response", a.form())
	s.Flush()
	return nil
}

// event sends an event; the members come in pairs.
func (a *responseAnswer) event(name string, members ...any) error {
	a.number++
	return a.stream.SendForm(name, map[string]any{"type": name, "sequence_number": a.number - 1}, members...)
}

// piece streams a piece of a message.
func (a *responseAnswer) piece(text string) error {
	if text == "" {
		return nil
	}
	if a.open == nil {
		a.open = a.messageItem(len(a.items), "in_progress", "")
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
	text, err := a.pieces.Complete(message)
	if err != nil || a.open == nil {
		return err
	}
	at, id := len(a.items)-1, a.open["id"]
	a.open = nil
	a.items[at] = a.messageItem(at, "completed", text)
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
	item := a.beginItem(append(slices.Clone(a.turn.earlier), a.turn.canisters...), id)
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
