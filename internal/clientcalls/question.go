// SPDX-License-Identifier: Apache-2.0

package clientcalls

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/approvals"
	"github.com/consort-go/consort/invoker"
)

// maxQuestion bounds a question to the user of a client, in bytes: a client may cut a
// longer one, and a person must have seen all of it.
const maxQuestion = 16 << 10

// decisionForm is the schema of the answer. An answer without a decision denies the call.
var decisionForm = json.RawMessage(`{"type":"object","properties":{"decision":{"type":"string","title":"Decision","description":"allow makes this call once","enum":["allow","deny"]}},"required":["decision"]}`)

// await asks the user of the client, if that is possible. Otherwise it returns the failure
// that tells the client that its call waits.
func (a *approval) await(ctx context.Context, s *state) (answered bool, err error) {
	if err := a.describe(ctx); err != nil {
		return false, unreadable(err)
	}
	question := a.question()
	if a.demand.Who != "" || a.call.Call.Person == nil || len(question) > maxQuestion {
		return false, a.waiting(ctx, s)
	}
	if a.lasts {
		if !a.gate.begin(a.gate.asking, a.id) {
			return false, invoker.Failf(invoker.Conflict, "The user of this client is being asked about an equal call. This one was not started.")
		}
		defer a.gate.end(a.gate.asking, a.id)
	}
	reply, err := a.call.Call.Ask(ctx, &invoker.ElicitRequest{Message: question, Schema: decisionForm})
	switch {
	case ctx.Err() != nil:
		return false, invoker.AsFailure(ctx.Err())
	case err != nil || reply.Action == invoker.Dismiss:
		return false, a.waiting(ctx, s)
	}
	answer := canister.Answer{
		Wait: s.wait.ID, Verdict: canister.VerdictDeny, By: "the user of " + cmp.Or(a.client, "the client"),
		Reason: "the user of the client said no",
	}
	if reply.Action == invoker.Accept && isAllowed(reply.Content) {
		answer.Verdict, answer.Reason = canister.VerdictAllow, ""
	}
	return true, waits.Answer(ctx, a.store, a.id, answer, time.Now())
}

// isAllowed reports whether an answer to [decisionForm] allows the call.
func isAllowed(content map[string]any) bool {
	decision, _ := content["decision"].(string)
	return decision == "allow"
}

// question returns the question to a person: what will be called, and with which arguments.
func (a *approval) question() string {
	return fmt.Sprintf("May %s call %s? The arguments are:\n%s\nIf you allow it, this call is made once.",
		cmp.Or(a.client, "this client"), approvals.Describe(a.ask), approvals.Arguments(a.ask))
}

// waiting returns the failure for a call that waits. Where nothing is stored, it cannot.
func (a *approval) waiting(ctx context.Context, s *state) error {
	if !a.lasts {
		return invoker.Failf(invoker.Denied, "This call needs an approval and was not started: the client cannot ask its user, or there was no answer, and calls cannot wait because conversations are not stored ([history]).")
	}
	return invoker.Failf(invoker.Conflict, "This call needs an approval and was not started. It waits as %s until %s. %s answers it with: consort approve %s. After that, make the same call again, with the same arguments: an approval allows one call.%s",
		a.id, s.wait.Deadline.UTC().Format(time.RFC3339), cmp.Or(s.wait.Who, "A person"), a.id, s.earlier())
}

// earlier says what became of an equal call, whose client may not have got the answer.
func (s *state) earlier() string {
	if s.before == nil {
		return ""
	}
	at := s.before.Time.UTC().Format(time.RFC3339)
	switch invoker.Code(s.before.Code) {
	case "":
		return " An equal call was made before, and succeeded at " + at + "."
	case invoker.OutcomeUnknown, invoker.Timeout, invoker.Canceled:
		return " An equal call was made before, and it is unknown whether it took effect (" + at + ")."
	}
	return " An equal call was made before, and failed at " + at + " (" + s.before.Code + ")."
}
