// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// toldFailure reads what a failed result says of itself to those who know the
// form of [invoker.Failure.Structured]: under [FailureKey] in its _meta, or else
// as its structured content. It is false if the result says nothing of the kind.
func toldFailure(meta, structured json.RawMessage) (*invoker.Failure, bool) {
	var named map[string]json.RawMessage
	_ = json.Unmarshal(meta, &named) // one that is no object has no members
	told, ok := invoker.FailureFrom(named[FailureKey])
	if !ok {
		told, ok = invoker.FailureFrom(structured)
	}
	if !ok {
		return nil, false
	}
	switch told.Code {
	case invoker.Canceled, invoker.Internal, invoker.Protocol:
		// These speak of this program's own turn, fault and peer: not for the
		// server to say.
		told.Code = invoker.ExecutionFailed
	case invoker.OutcomeUnknown:
		told.Retryable = false // unless the tool may be repeated, which the ensemble knows
	}
	return told, true
}

// failureOf is the failure of a call whose result says isError: in the tool's
// own words, and with the code that it gives itself. That it has content shows
// that it was answered: such a call is never made again by itself.
func failureOf(out invoker.Output, meta, structured json.RawMessage) *invoker.Failure {
	failure := &invoker.Failure{Code: invoker.ExecutionFailed}
	if told, ok := toldFailure(meta, structured); ok {
		failure = told
	}
	failure.Content, failure.Metadata = out.Content, out.Metadata
	if text := canister.TextOf(out.Content); text != "" {
		failure.Message = text
	}
	if failure.Message == "" {
		failure.Message = "The tool failed without saying why."
	}
	if len(failure.Content) == 0 {
		failure.Content = canister.Texts(failure.Message)
	}
	return failure
}
