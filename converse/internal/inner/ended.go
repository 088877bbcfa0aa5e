// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/invoker"
)

// whyEnded says in a clause why a call does not go on, by the code of its failure.
var whyEnded = map[invoker.Code]string{
	invoker.Canceled:       "it was cancelled",
	invoker.Timeout:        "it took too long",
	invoker.OutcomeUnknown: "the connection of its tool was lost",
	invoker.Unavailable:    "its tool could not be reached again",
	invoker.Unauthorized:   "its tool could not be reached again",
	invoker.ToolNotFound:   "its tool is no longer there",
}

// Ended returns the failure of a call that may have called tools. If it has, the failure
// does not say that nothing was done, or that a second call does no harm. The tool's own
// words stay.
func Ended(s *calls.State, failure *invoker.Failure) *invoker.Failure {
	if failure == nil || len(s.Made) == 0 || len(failure.Content) > 0 || failure.Code == invoker.Canceled && failure.Cause == nil {
		return failure
	}
	if why := whyEnded[failure.Code]; why != "" {
		return Stopped(s, failure.Code, why, failure)
	}
	return failure
}

// Stopped returns the failure of a call that has called tools and does not go on.
func Stopped(s *calls.State, code invoker.Code, why string, cause *invoker.Failure) *invoker.Failure {
	failure := s.Barred(code, why)
	failure.Retryable, failure.Cause = false, cause
	return failure
}
