// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/protobuf/proto"
)

// contractCodes maps failures to the error codes of the contract. SERVICE_UNAVAILABLE
// invites the client to retry, so it is used only if nothing was done.
var contractCodes = map[invoker.Code]toolspb.ErrorCode{
	invoker.InvalidArguments: toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS,
	invoker.Unavailable:      toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE,
	invoker.ToolNotFound:     toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND,
}

// respond returns the response of a call, and its content. A response that is too large
// becomes a failure.
func respond(output invoker.Output, failure *invoker.Failure, limit int) (*toolspb.ToolCallResponse, []canister.Content, *invoker.Failure) {
	response, content := success(output), output.Content
	if failure != nil {
		response, content = failed(failure), failure.Content
	}
	if size := proto.Size(response); size > limit {
		failure = invoker.Failf(invoker.ResultTooLarge, "The answer has %d bytes; at most %d are allowed. The tool has run; request less data.", size, limit)
		response, content = failed(failure), nil
	}
	if failure != nil && len(content) == 0 {
		content = canister.Texts(failure.Message)
	}
	return response, content, failure
}

func success(output invoker.Output) *toolspb.ToolCallResponse {
	response := &toolspb.ToolCallResponse{Success: true, ResultJson: resultText(output.Content)}
	if !same(resultOf(response.ResultJson), output.Content) {
		response.ContentJson = contentText(output.Content)
	}
	return response
}

func failed(failure *invoker.Failure) *toolspb.ToolCallResponse {
	response := &toolspb.ToolCallResponse{
		ErrorCode:    cmp.Or(contractCodes[failure.Code], toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR),
		ErrorMessage: clean(cmp.Or(plain(failure.Content), failure.Message)),
		FailureJson:  clean(string(failure.Structured().JSON)),
	}
	if len(failure.Content) > 0 && !same(canister.Texts(response.ErrorMessage), failure.Content) {
		response.ContentJson = contentText(failure.Content)
	}
	return response
}

// resultText returns content as one JSON value: the structured content, if there is
// any, or else all of it as text.
func resultText(content []canister.Content) string {
	for _, c := range content {
		if s, ok := c.(canister.StructuredContent); ok && len(s.JSON) > 0 {
			return clean(string(s.JSON))
		}
	}
	if len(content) == 0 {
		return "null"
	}
	return string(quoted(plain(content)))
}

// plain returns content as text, with a placeholder line for content that is not text.
func plain(content []canister.Content) string {
	var lines []string
	for _, c := range content {
		switch c := c.(type) {
		case canister.TextContent:
			lines = append(lines, c.Text)
		case canister.StructuredContent:
			lines = append(lines, string(c.JSON))
		case canister.ResourceContent:
			lines = append(lines, cmp.Or(c.Text, fmt.Sprintf("[the resource %s, %s, %d bytes, that cannot be shown here]", c.URI, c.MIME, len(c.Blob))))
		case canister.LinkContent:
			lines = append(lines, fmt.Sprintf("[the resource %s, %s]", c.URI, c.Name))
		default:
			p := canister.PayloadOf(c)
			lines = append(lines, cmp.Or(p.URI, fmt.Sprintf("[%s, %s, %d bytes, that cannot be shown here]", cmp.Or(p.Type, "unknown content"), p.MIME, len(p.Data))))
		}
	}
	return strings.Join(lines, "\n")
}

// same reports whether a and b are both a single text or both a single structured
// value, and equal. In this case one JSON value holds the whole content.
func same(a, b []canister.Content) bool {
	if len(a) != 1 || len(b) != 1 {
		return len(a) == 0 && len(b) == 0
	}
	switch a := a[0].(type) {
	case canister.TextContent:
		b, ok := b[0].(canister.TextContent)
		return ok && a.Text == b.Text
	case canister.StructuredContent:
		b, ok := b[0].(canister.StructuredContent)
		return ok && string(a.JSON) == string(b.JSON)
	default:
		return false
	}
}

// clean makes text valid UTF-8, as strings in protobuf must be.
func clean(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
