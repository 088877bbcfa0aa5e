// SPDX-License-Identifier: Apache-2.0

// Package openwaits describes the open waits of conversations to their clients.
package openwaits

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/clienttools"
	"github.com/consort-go/consort/converse/waits"
)

// Wait is the JSON form of an open wait.
type Wait struct {
	ID         string             `json:"id"`
	For        canister.WaitFor   `json:"for"`
	Deadline   time.Time          `json:"deadline"`
	Who        string             `json:"who,omitzero"`
	Invocation string             `json:"invocation,omitzero"`
	Tool       string             `json:"tool,omitzero"`
	Arguments  string             `json:"arguments,omitzero"` // as the model wrote them
	Question   json.RawMessage    `json:"question,omitempty"`
	Verdicts   []canister.Verdict `json:"verdicts"`
	Client     bool               `json:"client,omitzero"` // a call of a tool of the client

	place int // of the invocation
}

// Open returns the open waits at the end of a conversation.
func Open(id string, canisters []canister.Canister, now time.Time) []Wait {
	all := []Wait{}
	for _, wait := range waits.Open(id, canisters, now) {
		form := Wait{
			ID: wait.ID, For: wait.For, Deadline: wait.Deadline.UTC(), Who: wait.Who, Invocation: wait.Invocation,
			Arguments: wait.Arguments, Question: wait.Question, Verdicts: wait.For.Answers(), Client: clienttools.IsCall(wait),
		}
		for i, c := range canisters {
			if invocation, is := c.(canister.Invocation); is && invocation.ID == wait.Invocation {
				form.Tool, form.Arguments, form.place = invocation.Name, cmp.Or(wait.Arguments, invocation.Arguments), i
			}
		}
		all = append(all, form)
	}
	return all
}

// Asked returns the waits that were open before each answer at the end of a conversation, and at last the waits that
// are open now. A request with several answers that is sent again can be about any of these sets.
func Asked(ctx context.Context, log history.Log, id string) (sets [][]Wait, err error) {
	now := time.Now()
	_, canisters, err := engine.LastTurn(ctx, log, id, now)
	for i, c := range canisters {
		if c.Kind() == canister.KindAnswer {
			sets = append(sets, Open(id, canisters[:i], c.Header().Time))
		}
	}
	return append(sets, Open(id, canisters, now)), err
}

// Find returns the wait with an ID in one of several sets.
func Find(sets [][]Wait, id string) (Wait, bool) {
	for _, some := range sets {
		if i := slices.IndexFunc(some, func(wait Wait) bool { return wait.ID == id }); i >= 0 {
			return some[i], true
		}
	}
	return Wait{}, false
}

// Split divides open waits into calls of the client's tools, in the order of the model,
// and the others.
func Split(open []Wait) (calls, others []Wait) {
	for _, wait := range open {
		if wait.Client {
			calls = append(calls, wait)
		} else {
			others = append(others, wait)
		}
	}
	slices.SortStableFunc(calls, func(a, b Wait) int { return a.place - b.place })
	return calls, others
}

// Text lists waits for the user of a chat program, a line for each.
func Text(open []Wait) string {
	var b strings.Builder
	for _, wait := range open {
		switch wait.For {
		case canister.WaitApproval:
			fmt.Fprintf(&b, "The call of %s with %s waits for your approval.\n", wait.Tool, cmp.Or(wait.Arguments, "{}"))
		case canister.WaitOutcome:
			fmt.Fprintf(&b, "It is unknown whether the call of %s with %s took effect. /allow makes it again.\n", wait.Tool, cmp.Or(wait.Arguments, "{}"))
		case canister.WaitElicitation:
			fmt.Fprintf(&b, "The tool %s asks: %s\nThis can be answered at the console or over the HTTP API; here it can only be declined.\n", wait.Tool, wait.Question)
		}
	}
	return b.String()
}

// Refusals are the verdicts that say no.
var Refusals = map[canister.WaitFor]canister.Verdict{
	canister.WaitApproval: canister.VerdictDeny, canister.WaitOutcome: canister.VerdictUnknown,
	canister.WaitElicitation: canister.VerdictDecline, canister.WaitTimer: canister.VerdictCancel,
}
