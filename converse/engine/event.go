// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/invoker"
)

// Event is an event that Watch yields: [Added], [Delta] or [Ended]. The set is closed.
type Event interface{ event() }

// Added is a canister of the log. Every canister is yielded once, in order.
type Added struct {
	// Position is the number of canisters of the conversation up to and including this
	// one. A Watch with it as after continues with the next canister.
	Position int
	Canister canister.Canister
}

// Delta is an event between two canisters. Deltas may be lost, and are obsolete once
// the next canister was added. The JSON form is one object with a member for each field
// and can be sent to clients unchanged.
type Delta struct {
	// Turn is the ID of the User canister that the turn began with.
	Turn string `json:"turn,omitzero"`
	// Attempt grows, not by one, with each attempt to do the same work. Output shown of
	// an earlier attempt must be dropped. It is below 2^53.
	Attempt int64 `json:"attempt,omitzero"`
	// Index counts the deltas of the attempt from 0. Between two deltas with the same
	// Position, a missing number means that some were lost. Otherwise it may also mean that
	// the canister came first, which makes the deltas before it obsolete.
	Index int `json:"index,omitzero"`
	// Position is the length of the log as far as the sender knows. Watch yields the delta
	// after that many canisters. Its JSON name differs from the "position" of canisters and
	// ends: that is the number of a canister, and this is a place between two.
	Position int `json:"place,omitzero"`
	// Missed is the number of deltas that were lost before this one, or 1 if the number is
	// not known, because the reader was slow or a connection broke. They may have had an
	// earlier Position.
	Missed int `json:"missed,omitzero"`
	// Event is the event in the form of docs/events.md: a text_delta, a
	// reasoning_delta, an invocation_announced, an invocation_started, an
	// invocation_progressed, an exchange_retried or an exchange_moved.
	Event json.RawMessage `json:"event,omitempty"`
	// Ended, on a [Stream], says that the work has ended; Event is nil then. If both
	// are nil, the log has grown. Watch yields neither.
	Ended *Ended `json:"ended,omitempty"`
}

// Kind returns the name of the event, such as text_delta; "" if Event is nil.
func (d Delta) Kind() string {
	var form struct{ Event string }
	_ = json.Unmarshal(d.Event, &form) // the engine has written it
	return form.Event
}

// BeginsAgain reports whether the message that the model writes begins again, which makes the
// deltas before obsolete. attempt is the Attempt of the delta before, or 0 to compare no
// attempts, as for the first delta after a canister.
func (d Delta) BeginsAgain(attempt int64) bool {
	kind := d.Kind()
	return attempt != 0 && d.Attempt != attempt || kind == "exchange_retried" || kind == "exchange_moved"
}

// Text returns the text of a text_delta, and "" for any other delta.
func (d Delta) Text() string {
	var form struct{ Event, Text string }
	if json.Unmarshal(d.Event, &form) != nil || form.Event != "text_delta" {
		return ""
	}
	return form.Text
}

// Progress returns the progress that a tool has reported in an invocation_progressed,
// without Partial, and the name of the tool; ok is false for any other delta.
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

// Ended says that the work on a turn has stopped: the turn is done, waits, or has
// failed. Watch yields it also to watchers that start later, as far as the log shows
// it or the engine knows it.
type Ended struct {
	// Turn is the ID of the User canister that the turn began with; empty if it
	// has none.
	Turn string `json:"turn,omitzero"`
	// Reason is why the turn ended; empty if the work has failed or the turn is
	// superseded.
	Reason converse.Reason `json:"reason,omitzero"`
	// Superseded is the ID of the message that another process appended to the
	// conversation before the turn was over, so that nothing continues the turn; Reason
	// and Error are empty then. If the turn consists only of messages, the turn of that
	// message answers them too.
	Superseded string `json:"superseded,omitzero"`
	// Waits are the IDs of the pending waits in the log, if Reason is
	// [converse.ReasonWaiting].
	Waits []string `json:"waits,omitempty"`
	// Error describes the failure. It holds no secrets as far as the conversation knows
	// them.
	Error string `json:"error,omitzero"`
	// Attempt is the number of the attempt that has failed, or that a budget has ended, as in
	// [Delta]; zero if it is not known, and for all other ends.
	Attempt int64 `json:"attempt,omitzero"`
	// Again is the time of the next retry; zero if a retry takes another Send.
	Again time.Time `json:"again,omitzero"`
}

func (Added) event() {}
func (Delta) event() {}
func (Ended) event() {}
