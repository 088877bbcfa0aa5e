// SPDX-License-Identifier: Apache-2.0

package openwaits

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/consort-go/consort/canister"
)

// approvalSchema describes the payload that answers an approval.
var approvalSchema = json.RawMessage(`{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"},"reason":{"type":"string"},` +
	`"arguments":{"type":"object","description":"Call the tool with these instead."}}}`)

// Interrupt returns the interrupt of AG-UI for a wait.
func Interrupt(wait Wait) map[string]any {
	form := map[string]any{"id": wait.ID, "reason": "consort:" + string(wait.For), "expiresAt": wait.Deadline}
	if wait.Invocation != "" {
		form["toolCallId"] = wait.Invocation
	}
	switch wait.For {
	case canister.WaitApproval:
		form["reason"], form["message"], form["responseSchema"] = "tool_call", "May "+wait.Tool+" be called with "+cmp.Or(wait.Arguments, "{}")+"?", approvalSchema
	case canister.WaitOutcome:
		form["message"], form["responseSchema"] = "It is unknown whether "+wait.Tool+" took effect. May it be called again?", approvalSchema
	case canister.WaitElicitation:
		var question struct {
			Message string          `json:"message"`
			Schema  json.RawMessage `json:"schema"`
		}
		if json.Unmarshal(wait.Question, &question) == nil {
			form["message"] = question.Message
			if len(question.Schema) > 0 {
				form["responseSchema"] = question.Schema
			}
		}
	}
	return form
}

// Resumed is the answer to an interrupt.
type Resumed struct {
	Interrupt string          `json:"interruptId"`
	Status    string          `json:"status"`
	Payload   json.RawMessage `json:"payload"`
}

// Answer returns the answer to a wait. It is not ok if the member approved is missing, which
// only a question of a tool does not need.
func (e *Resumed) Answer(wait Wait) (given canister.Answer, ok bool) {
	given = canister.Answer{Wait: wait.ID, Verdict: Refusals[wait.For]}
	if e.Status != "resolved" {
		return given, true
	}
	if wait.For == canister.WaitElicitation {
		given.Verdict, given.Arguments = canister.VerdictAccept, e.Payload
		return given, true
	}
	var payload struct {
		Approved  *bool           `json:"approved"`
		Reason    string          `json:"reason"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(e.Payload, &payload) != nil || payload.Approved == nil {
		return given, false
	}
	if given.Reason = payload.Reason; *payload.Approved {
		given.Verdict = canister.VerdictAllow
		isNothing := slices.Contains([]string{"", "null", "[]", "{}", `""`}, string(bytes.TrimSpace(payload.Arguments)))
		if !isNothing && wait.For == canister.WaitApproval {
			given.Verdict, given.Arguments = canister.VerdictChange, payload.Arguments
		}
	}
	return given, true
}
