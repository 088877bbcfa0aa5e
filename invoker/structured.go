// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
)

// structured is the JSON form of a failure.
type structured struct {
	Error *structuredError `json:"error"`
}

type structuredError struct {
	Code         Code   `json:"code"`
	Message      string `json:"message"`
	Retryable    bool   `json:"retryable"`
	Pointer      string `json:"pointer,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// Structured returns the parts of the failure that a model and a protocol client
// may see, for programs to read:
//
//	{"error":{"code":"NOT_FOUND","message":"…","retryable":false,"pointer":"/id","retry_after_ms":1000}}
//
// Pointer and retry_after_ms, in milliseconds, are present if they are set.
// [FailureFrom] is the inverse.
func (f *Failure) Structured() canister.StructuredContent {
	full := completed(f, nil)
	said := structuredError{
		Code: full.Code, Message: full.Message, Retryable: full.Retryable, Pointer: full.Pointer,
		RetryAfterMS: int64((full.RetryAfter + time.Millisecond - 1) / time.Millisecond),
	}
	if said.Message == "" {
		said.Message = canister.TextOf(full.Content)
	}
	text, err := json.Marshal(structured{&said})
	if err != nil {
		panic(fmt.Sprintf("invoker: a failure cannot be written: %v", err)) // strings and numbers can be marshaled
	}
	return canister.StructuredContent{JSON: text}
}

// maxRetryAfter is the longest wait that a peer can ask for.
const maxRetryAfter = 24 * time.Hour

// FailureFrom parses the text of [Failure.Structured]. It returns false for any
// other text, including one with an unknown code. A wait that is negative or
// longer than a day is ignored.
func FailureFrom(text json.RawMessage) (*Failure, bool) {
	var said structured
	if json.Unmarshal(text, &said) != nil || said.Error == nil || !said.Error.Code.known() || said.Error.Message == "" {
		return nil, false
	}
	failure := &Failure{
		Code: said.Error.Code, Message: said.Error.Message,
		Retryable: said.Error.Retryable, Pointer: said.Error.Pointer,
	}
	if ms := said.Error.RetryAfterMS; 0 < ms && ms <= maxRetryAfter.Milliseconds() {
		failure.RetryAfter = time.Duration(ms) * time.Millisecond
	}
	return failure, true
}

// known reports whether the code is one of the failure codes.
func (c Code) known() bool {
	switch c {
	case InvalidArguments, ToolNotFound, NotFound, Unauthorized, Denied, Conflict, Unavailable, Timeout, Canceled,
		ExecutionFailed, OutcomeUnknown, Protocol, ResultTooLarge, Internal:
		return true
	}
	return false
}
