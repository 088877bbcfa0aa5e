// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// FailureKey is the member of a result's _meta that describes a failed call, in the
// JSON form of invoker.Failure.Structured, for clients that know it. The text of such a
// result is meant for models.
const FailureKey = "io.github.consort-go/failure"

// reportedFailure decodes the failure that a failed result carries in the form of
// [invoker.Failure.Structured]: under [FailureKey] in its _meta, or else as its
// structured content. It returns false if there is none.
func reportedFailure(meta, structured json.RawMessage) (*invoker.Failure, bool) {
	var named map[string]json.RawMessage
	_ = json.Unmarshal(meta, &named) // fails if it is not an object; then it has no members
	reported, ok := invoker.FailureFrom(named[FailureKey])
	if !ok {
		reported, ok = invoker.FailureFrom(structured)
	}
	if !ok {
		return nil, false
	}
	switch reported.Code {
	case invoker.Canceled, invoker.Internal, invoker.Protocol:
		// These describe this program's own turn, fault or peer, so a server may not
		// report them.
		reported.Code = invoker.ExecutionFailed
	case invoker.OutcomeUnknown:
		reported.Retryable = false // unless the tool may be repeated, which the ensemble decides
	}
	return reported, true
}

// failureOf returns the failure of a call whose result says isError, with the tool's
// own text and, if it has one, its own code. Content shows that the call was answered,
// so it is never repeated automatically.
func failureOf(out invoker.Output, meta, structured json.RawMessage) *invoker.Failure {
	failure := &invoker.Failure{Code: invoker.ExecutionFailed}
	if reported, ok := reportedFailure(meta, structured); ok {
		failure = reported
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
