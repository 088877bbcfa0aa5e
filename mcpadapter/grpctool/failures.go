// SPDX-License-Identifier: Apache-2.0

package grpctool

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter/grpctool/toolspb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errorCodes maps the error codes of the contract. A tool server sends
// SERVICE_UNAVAILABLE if a service that it depends on is unavailable and nothing was
// done.
var errorCodes = map[toolspb.ErrorCode]invoker.Code{
	toolspb.ErrorCode_ERROR_CODE_INVALID_ARGUMENTS:   invoker.InvalidArguments,
	toolspb.ErrorCode_ERROR_CODE_SERVICE_UNAVAILABLE: invoker.Unavailable,
	toolspb.ErrorCode_ERROR_CODE_TOOL_NOT_FOUND:      invoker.ToolNotFound,
	toolspb.ErrorCode_ERROR_CODE_INTERNAL_ERROR:      invoker.ExecutionFailed,
}

// statusCodes maps the gRPC statuses (gRPC, § Status Codes) of requests that were sent.
// A status that is missing here leaves open whether the tool ran. UNAVAILABLE is one of
// these: a proxy also sends it when its connection to the server breaks.
var statusCodes = map[codes.Code]invoker.Code{
	codes.InvalidArgument:    invoker.InvalidArguments,
	codes.OutOfRange:         invoker.InvalidArguments,
	codes.NotFound:           invoker.NotFound,
	codes.AlreadyExists:      invoker.Conflict,
	codes.FailedPrecondition: invoker.Conflict,
	codes.Aborted:            invoker.Conflict,
	codes.Unauthenticated:    invoker.Unauthorized,
	codes.PermissionDenied:   invoker.Unauthorized,
	codes.ResourceExhausted:  invoker.Unavailable,
	codes.DeadlineExceeded:   invoker.Timeout,
	codes.Unimplemented:      invoker.Protocol,
	codes.Unknown:            invoker.ExecutionFailed, // what servers return for an exception
}

// words are the messages for the model, which come before the server's own message.
var words = map[invoker.Code]string{
	invoker.InvalidArguments: "The server rejected the arguments",
	invoker.NotFound:         "The server did not find the requested item",
	invoker.Conflict:         "The existing state does not allow this",
	invoker.Unauthorized:     "The server rejected this",
	invoker.Unavailable:      "The server cannot accept the call now",
	invoker.Timeout:          "The server's own time limit passed; the call may or may not have taken effect, so find out before you call it again",
	invoker.Protocol:         "The server does not know the request",
	invoker.ExecutionFailed:  "The tool failed",
	invoker.OutcomeUnknown:   "The server, or the connection to it, failed. The call may or may not have taken effect: find out before you call it again",
}

// exchange describes how far a failed request got.
type exchange struct {
	left     bool // it may have reached the server
	answered bool // a response had begun to arrive
	said     bool // the server sent the status; gRPC did not derive it from something else
	what     effect
	most     int // bytes of a message, as the client limits them
}

// failureOf returns the failure for an RPC that did not succeed.
func failureOf(err error, x exchange) *invoker.Failure {
	s := status.Convert(err)
	code := cmp.Or(statusCodes[s.Code()], invoker.OutcomeUnknown)
	if !x.said && (s.Code() == codes.Unknown || s.Code() == codes.ResourceExhausted) {
		code = invoker.OutcomeUnknown // an HTML page or ENHANCE_YOUR_CALM: not a failed tool or a busy server
	}
	switch {
	case s.Code() == codes.ResourceExhausted && (x.answered || x.said && isTooLarge(s.Message())):
		return x.tooLarge(err)
	case !x.left && (code == invoker.OutcomeUnknown || code == invoker.ExecutionFailed):
		return &invoker.Failure{Code: invoker.Unavailable, Message: "The server cannot be reached.", Retryable: true, Cause: err}
	case x.what == harmless && code == invoker.OutcomeUnknown:
		code = invoker.Unavailable
	}
	failure := &invoker.Failure{Code: code, Message: words[code], Retryable: code == invoker.Unavailable, RetryAfter: retryAfter(s), Cause: err}
	if said := textcut.Bytes(s.Message(), maxQuoted); said != "" {
		failure.Message += ": " + said
	} else {
		failure.Message += "."
	}
	if x.said && code == invoker.Unavailable && x.what != harmless { // it is an answer: the call is not made again, even if the connection ends with it
		failure.Content = canister.Texts(failure.Message)
	}
	return failure
}

// tooLarge returns the failure for an answer that exceeds the client's limit, or the server's.
func (x exchange) tooLarge(err error) *invoker.Failure {
	limit, whose := "the server's own limit", "of the server"
	if x.answered {
		limit, whose = fmt.Sprintf("%d bytes (MaxMessage)", x.most), "of this client"
	}
	if x.what == harmless {
		return &invoker.Failure{Code: invoker.ResultTooLarge, Message: "The list of tools is larger than " + limit + ". Request one category of tools, or raise the limit " + whose + ".", Cause: err}
	}
	return &invoker.Failure{Code: invoker.ResultTooLarge, Message: "The answer of the server is larger than " + limit + ". The tool may have run; request less data.", Cause: err}
}

// isTooLarge reports whether the message of RESOURCE_EXHAUSTED says that the server could not send an
// answer because of its own limit, in the words of gRPC for Go or of gRPC's core.
func isTooLarge(message string) bool {
	return strings.Contains(message, "trying to send message larger than max") || strings.Contains(message, "Sent message larger than max")
}

// retryAfter returns the delay that the server requests in the details of its status.
func retryAfter(s *status.Status) time.Duration {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return min(max(info.GetRetryDelay().AsDuration(), 0), 24*time.Hour)
		}
	}
	return 0
}

// gone returns the failure for a request whose connection was lost. maybe is set if the
// server may have received it.
func (c *connection) gone(err error, maybe bool) *invoker.Failure {
	cause := cmp.Or(c.Err(), err)
	if maybe {
		return &invoker.Failure{Code: invoker.OutcomeUnknown, Message: "The connection to the server was lost while the call ran. It may or may not have taken effect: find out before you call it again.", Cause: cause}
	}
	return &invoker.Failure{Code: invoker.Unavailable, Message: "The server cannot be reached.", Retryable: true, Cause: cause}
}

// interrupted returns the failure for a request whose own context ended.
func interrupted(err error, left bool) *invoker.Failure {
	failure := *invoker.AsFailure(err)
	if !left {
		failure.Message, failure.Retryable = "The call ended before it reached the server. Nothing was done.", true
	}
	return &failure
}

// told returns the failure that a response describes. It always has content, which
// shows that the call was answered: such a call is never retried automatically.
func told(response *toolspb.ToolCallResponse) *invoker.Failure {
	failure := &invoker.Failure{Code: cmp.Or(errorCodes[response.GetErrorCode()], invoker.ExecutionFailed)}
	failure.Retryable = failure.Code == invoker.Unavailable
	if said, ok := invoker.FailureFrom([]byte(response.GetFailureJson())); ok {
		failure = said
	}
	failure.Message = cmp.Or(response.GetErrorMessage(), failure.Message, "The tool failed without saying why.")
	failure.Content = contentOf(response.GetContentJson())
	if len(failure.Content) == 0 {
		failure.Content = canister.Texts(failure.Message)
	}
	return failure
}

// maxQuoted is how many bytes of the peer's text an error or a log entry quotes.
const maxQuoted = 2000
