// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/invoker"
)

// Event is what Watch yields: [Added], [Delta] or [Ended]. The set is closed.
type Event interface{ event() }

// Added is a canister of the log. Every one is yielded, once and in order.
type Added struct {
	// Place counts the canisters of the conversation up to and with this one: a
	// Watch with it as after goes on behind it.
	Place    int
	Canister canister.Canister
}

// Delta is what happens between two canisters. Deltas may be lost, and mean
// nothing once the next canister was added. The JSON form, with the members
// that the fields name, is one object and is meant to be sent as it is.
type Delta struct {
	// Turn is the identity of the User canister that the turn began with.
	Turn string `json:"turn,omitzero"`
	// Attempt grows, not by one, with each attempt to do the same work: what was
	// shown of an attempt before is to be dropped. It is below 2^53.
	Attempt int64 `json:"attempt,omitzero"`
	// Index counts the deltas of the attempt, from 0: where it skips, some were
	// lost.
	Index int `json:"index,omitzero"`
	// Place is how many canisters the log has as far as the sender knows. Watch
	// yields the delta behind all of them.
	Place int `json:"place,omitzero"`
	// Missed is how many deltas the reader has lost before this one, since it was
	// slow.
	Missed int `json:"missed,omitzero"`
	// Event is what happened, in the form of docs/events.md: a text_delta, a
	// reasoning_delta, an invocation_announced, an invocation_started, an
	// invocation_progressed or an exchange_retried.
	Event json.RawMessage `json:"event,omitempty"`
	// Ended, on a [Stream], tells that the work has ended, and Event is nil then.
	// If both are nil, the log has grown. Watch yields neither.
	Ended *Ended `json:"ended,omitempty"`
}

// Text returns the text of a text_delta, and nothing of any other delta.
func (d Delta) Text() string {
	var form struct{ Event, Text string }
	if json.Unmarshal(d.Event, &form) != nil || form.Event != "text_delta" {
		return ""
	}
	return form.Text
}

// Progress returns what a tool has reported in an invocation_progressed, without
// Partial, and the name of the tool; ok is false for any other delta.
func (d Delta) Progress() (tool string, p invoker.Progress, ok bool) {
	var form struct {
		Event, Name, Message string
		Done, Total          float64
	}
	if json.Unmarshal(d.Event, &form) != nil || form.Event != "invocation_progressed" {
		return "", p, false
	}
	return form.Name, invoker.Progress{Done: form.Done, Total: form.Total, Message: form.Message}, true
}

// Ended says that nobody is at work: the turn is done, or waits, or has failed.
// Watch yields it also to who comes later, as far as the log tells.
type Ended struct {
	// Turn is the identity of the User canister that the turn began with; empty
	// if there is none.
	Turn string `json:"turn,omitzero"`
	// Reason is why; empty if the work has failed or the turn is superseded.
	Reason converse.Reason `json:"reason,omitzero"`
	// Superseded is the identity of the message that another process put into the
	// conversation before the turn was over, so that nothing carries the turn on;
	// Reason and Error are empty then. If the turn consists of messages alone, the
	// turn of that message answers them too.
	Superseded string `json:"superseded,omitzero"`
	// Waits are the identities of the waits of the log that are waited for, if
	// Reason is [converse.ReasonWaiting].
	Waits []string `json:"waits,omitempty"`
	// Error is what has failed, in words that hold no secrets as far as the
	// conversation knows them.
	Error string `json:"error,omitzero"`
	// Again is when it is tried again; zero if that takes another Send.
	Again time.Time `json:"again,omitzero"`
}

func (Added) event() {}
func (Delta) event() {}
func (Ended) event() {}
