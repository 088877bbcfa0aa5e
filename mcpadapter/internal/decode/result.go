// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/jsontext"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// Output decodes a CallToolResult. A result with isError is the tool's own failure.
func Output(result json.RawMessage) (invoker.Output, *invoker.Failure) {
	m, err := wire.Members(result)
	if err != nil {
		return invoker.Output{}, invoker.Failf(invoker.Protocol, "The server's answer is not a tool result.")
	}
	isError := string(m["isError"]) == "true"
	out := invoker.Output{Metadata: Metadata(m, "content", "structuredContent", "isError", "resultType", "inputRequests", "requestState")}
	content := m["content"]
	blocks, isArray := wire.Elements(content)
	if !isArray && content != nil && string(content) != "null" {
		blocks = []json.RawMessage{content}
	}
	for _, block := range blocks {
		out.Content = append(out.Content, Content(block))
	}
	if structured := m["structuredContent"]; len(structured) > 0 && string(structured) != "null" {
		out.Content = append(out.Content, canister.StructuredContent{JSON: jsontext.Compact(structured)})
	}
	if !isError {
		return out, nil
	}
	return invoker.Output{}, failureOf(out, m["_meta"], m["structuredContent"])
}

// reportedFailure decodes the failure that a failed result carries in the form of
// [invoker.Failure.Structured]: under [wire.FailureKey] in its _meta, or else as its
// structured content. It returns false if there is none.
func reportedFailure(meta, structured json.RawMessage) (*invoker.Failure, bool) {
	var named map[string]json.RawMessage
	_ = json.Unmarshal(meta, &named) // fails if it is not an object; then it has no members
	reported, ok := invoker.FailureFrom(named[wire.FailureKey])
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
