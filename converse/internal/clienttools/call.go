// SPDX-License-Identifier: Apache-2.0

package clienttools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// Arguments returns the arguments of a call in the form that the client gets, or why the call
// is not passed on.
func Arguments(definition *invoker.Definition, arguments json.RawMessage) (json.RawMessage, *invoker.Failure) {
	tool, err := invoker.Raw(*definition, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		arguments = call.Arguments
		return invoker.Output{}, nil
	}, &invoker.RawOptions{Inline: true})
	if err != nil {
		return nil, &invoker.Failure{Code: invoker.Internal, Message: "The tool of the client cannot be called.", Cause: err}
	}
	if _, err := tool.Invoke(context.Background(), &invoker.Call{Arguments: arguments}); err != nil {
		return nil, invoker.AsFailure(err)
	}
	return arguments, nil
}

// resultSchema describes the answer that a person gives instead of the client.
var resultSchema = json.RawMessage(`{"type":"object","required":["result"],"properties":{"result":{"type":"string","title":"Result"}}}`)

// Question returns the question of the wait of a call.
func Question(name string) json.RawMessage {
	text, _ := json.Marshal(calls.Question{ // strings and a schema that is valid
		Server: Ensemble, Schema: resultSchema,
		Message: "The client was asked to call its tool " + name + ". What did it return?",
	})
	return text
}

// Returned returns the result of a call from the answer to its wait: the content of the answer,
// or else the member result of its arguments.
func Returned(answer canister.Answer) ([]canister.Content, *invoker.Failure) {
	by := textcut.Bytes(answer.By, bounds.MaxQuoted)
	switch {
	case answer.Verdict == canister.VerdictAccept && len(answer.Content) > 0:
		return answer.Content, nil
	case answer.Verdict == canister.VerdictAccept:
		return canister.Texts(resultOf(answer.Arguments)), nil
	case answer.Verdict == canister.VerdictDecline && len(answer.Content) > 0:
		text := canister.TextOf(answer.Content)
		return nil, &invoker.Failure{Code: invoker.ExecutionFailed, Message: text, Content: answer.Content}
	case answer.Verdict == canister.VerdictDecline:
		return nil, invoker.Failf(invoker.Denied, "%s", calls.Because("The call was declined by "+by, answer.Reason))
	}
	return nil, Unreturned(calls.Because("it was cancelled by "+by, answer.Reason))
}

// resultOf returns the result in the arguments of an answer as text.
func resultOf(arguments json.RawMessage) string {
	var form struct{ Result json.RawMessage }
	if json.Unmarshal(arguments, &form) != nil || form.Result == nil {
		return string(arguments)
	}
	text := ""
	if json.Unmarshal(form.Result, &text) != nil {
		text = string(form.Result)
	}
	return text
}

// Unreturned returns the failure of a call without a result. why is a sentence that begins in
// lower case.
func Unreturned(why string) *invoker.Failure {
	return invoker.Failf(invoker.Canceled, "The client was asked to make the call and returned no result: %s It may or may not have taken effect.", why)
}

// Overdue returns the failure of a call that the client did not return in time.
func Overdue(wait canister.Wait) *invoker.Failure {
	return invoker.Failf(invoker.Timeout, "The client was asked to make the call and returned no result before %s. It may or may not have taken effect.",
		wait.Deadline.UTC().Format(time.RFC3339))
}
