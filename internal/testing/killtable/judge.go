// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/invoker"
	"github.com/tidwall/gjson"
)

// piece is a message of a request, or one block of it.
type piece struct {
	call string // the ID of the call, if the piece is a result
	text string
}

// told returns the messages that the model received in the course of a conversation, taken
// from its last request.
func (w *World) told() []piece {
	w.tb.Helper()
	requests := w.Model.Requests()
	if len(requests) == 0 {
		w.tb.Fatal("the model was asked nothing")
	}
	last := gjson.ParseBytes(requests[len(requests)-1].Body)
	var pieces []piece
	for _, message := range last.Get("messages").Array() {
		blocks := message.Get("content")
		if w.Spec.API != messages || !blocks.IsArray() {
			pieces = append(pieces, piece{message.Get("tool_call_id").String(), message.Raw})
			continue
		}
		for _, block := range blocks.Array() {
			pieces = append(pieces, piece{block.Get("tool_use_id").String(), message.Get("role").String() + ": " + block.Raw})
		}
	}
	for _, item := range last.Get("input").Array() {
		call := ""
		if item.Get("type").String() == "function_call_output" {
			call = item.Get("call_id").String()
		}
		pieces = append(pieces, piece{call, itemIDs.ReplaceAllString(item.Raw, "$1")})
	}
	return pieces
}

// itemIDs matches the IDs of items. They contain the number of the request.
var itemIDs = regexp.MustCompile(`"(rs|msg|fc)_[0-9_]+"`)

// unkilled runs the conversation without killing a process, and returns the messages that
// the model received.
func unkilled(w *World) []piece {
	w.tb.Helper()
	w.Start().Succeeds()
	for _, exchange := range []int{1, 2, 3, 4, 5} {
		for _, tool := range Tools {
			if cell := w.call(exchange, tool); cell != "1" {
				w.tb.Fatalf("without a death, the call of %s in exchange %d: %s", tool, exchange, cell)
			}
		}
	}
	w.ends(Exchanges + 1)
	return w.told()
}

// ends checks the end of the conversation: the history is valid, it has its answer, and
// the model received the expected number of requests.
func (w *World) ends(requests int) {
	w.tb.Helper()
	list := w.History(w.Store())
	if open := canister.Pending(list); len(list) == 0 || len(open) > 0 {
		w.tb.Fatalf("%d canisters, and %d calls are open", len(list), len(open))
	}
	answer, ok := list[len(list)-1].(canister.Assistant)
	if text := canister.TextOf(answer.Content); !ok || text != "All of it has been done." {
		w.tb.Errorf("the last canister is a %s, %q", list[len(list)-1].Kind(), text)
	}
	if faults := w.Model.Faults(); len(faults) > 0 {
		w.tb.Errorf("the model was asked what no model may be: %s", faults)
	}
	if n := len(w.Model.Requests()); n != requests {
		w.tb.Errorf("the model was asked %d times, want %d", n, requests)
	}
}

// call returns the outcome of one call: how often it was made, according to the ledger,
// and the result that the model received.
func (w *World) call(exchange int, tool string) string {
	w.tb.Helper()
	kind, entries := faultserver.KindEffect, w.Ledger()
	if tool == ReadOnly {
		kind = faultserver.KindCall
	}
	runs, keys := 0, map[string]bool{}
	for _, e := range entries.Of(kind) {
		if e.Tool == tool && strings.Contains(string(e.Arguments), fmt.Sprintf("%q", key(exchange, tool))) {
			runs++
			keys[e.Key] = true
		}
	}
	if len(keys) > 1 || keys[""] {
		w.tb.Errorf("the calls of %s in exchange %d have the keys %v", tool, exchange, keys)
	}
	cell := fmt.Sprint(runs)
	if runs > 1 {
		cell += ", the same key"
	}
	result, asked := w.result(exchange, tool)
	if asked {
		cell += ", asked"
	}
	switch invoker.Code(result.Code) {
	case "":
	case invoker.OutcomeUnknown:
		cell += ", unknown"
	case invoker.Denied:
		cell += ", denied"
	default:
		w.tb.Errorf("the result of %s in exchange %d is %+v", tool, exchange, result)
	}
	if result.Invocation == "" {
		w.tb.Errorf("the call of %s in exchange %d has no result", tool, exchange)
	}
	return cell
}

// result returns the result of a call, and whether a person was asked about it.
func (w *World) result(exchange int, tool string) (result canister.Result, asked bool) {
	list := w.History(w.Store())
	id := ""
	for _, c := range list {
		switch c := c.(type) {
		case canister.Invocation:
			if c.CallID == callID(w.Spec.API, exchange, tool) {
				id = c.ID
			}
		case canister.Wait:
			asked = asked || c.Invocation == id && id != ""
		case canister.Result:
			if c.Invocation == id {
				result = c
			}
		}
	}
	return result, asked
}

// same checks that the model received the same messages as without a death, except for
// the calls in otherwise.
func (w *World) same(want []piece, otherwise map[string]bool) {
	w.tb.Helper()
	got := w.told()
	if len(got) != len(want) {
		w.tb.Errorf("the model was told %d messages, want %d", len(got), len(want))
		return
	}
	for i := range want {
		if got[i] != want[i] && !otherwise[want[i].call] {
			w.tb.Errorf("message %d is\n%s\nand is without a death\n%s", i, got[i].text, want[i].text)
		}
	}
}
