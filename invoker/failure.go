// SPDX-License-Identifier: Apache-2.0

package invoker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/internal/contain"
)

// Code is a failure code. The codes are the same for every transport.
type Code string

// The failure codes.
const (
	InvalidArguments Code = "INVALID_ARGUMENTS" // the arguments break the schema, or the tool refused them
	ToolNotFound     Code = "TOOL_NOT_FOUND"    // the tool does not exist
	NotFound         Code = "NOT_FOUND"         // the tool did not find the requested object
	Unauthorized     Code = "UNAUTHORIZED"      // the identity is missing or lacks permission
	Denied           Code = "DENIED"            // a rule or a person denied the call
	Conflict         Code = "CONFLICT"          // the current state does not allow it; nothing was done
	Unavailable      Code = "UNAVAILABLE"       // the tool cannot be reached; nothing was done
	Timeout          Code = "TIMEOUT"           // no answer in time
	Canceled         Code = "CANCELED"          // the turn ended before the call did
	ExecutionFailed  Code = "EXECUTION_FAILED"  // the tool ran and failed
	OutcomeUnknown   Code = "OUTCOME_UNKNOWN"   // the call may have taken effect
	Protocol         Code = "PROTOCOL"          // the tool or its server broke the protocol or its own schema
	ResultTooLarge   Code = "RESULT_TOO_LARGE"  // the answer exceeds a limit
	Internal         Code = "INTERNAL"          // a fault of this program, or a tool that panicked
)

// Failure is the outcome of a call that did not succeed. It is reported to the
// model and is not an error of the runtime.
type Failure struct {
	Code Code
	// Message tells the model what happened, in words that it can act on.
	Message string
	// Retryable means that the same call can succeed later. It does not mean that a
	// repetition is harmless: the first call may have taken effect. Package ensemble sets
	// it for such a call only if a repetition is declared harmless and trusted.
	Retryable bool
	// Pointer is the JSON pointer (RFC 6901) of the invalid argument, or of the first
	// one if there are several. It is empty if the failure concerns no argument or
	// all of them.
	Pointer string
	// RetryAfter is the time to wait before the next attempt; 0 if not known.
	RetryAfter time.Duration
	// Content is the tool's own description of its failure. If it is not empty, the
	// model sees it instead of Message.
	Content []canister.Content
	// Metadata is for programs; the model never sees it. May be nil.
	Metadata canister.Fields
	// Cause is the underlying error, for logs; the model never sees it. May be nil.
	Cause error
}

// Error returns the code and the message.
func (f *Failure) Error() string {
	if f == nil {
		return string(Internal) + ": a nil failure"
	}
	message := f.Message
	if message == "" {
		message = canister.TextOf(f.Content)
	}
	return string(f.Code) + ": " + message
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error {
	if f == nil {
		return nil
	}
	return f.Cause
}

// Invalid returns a failure for the argument at pointer, such as "/title", that
// the tool does not accept although its schema allows it. The other parameters
// are as in [Failf].
func Invalid(pointer, format string, args ...any) *Failure {
	failure := Failf(InvalidArguments, format, args...)
	failure.Pointer = pointer
	return failure
}

// UnavailableFor returns a failure for a call that did nothing and can be
// repeated after wait. The other parameters are as in [Failf].
func UnavailableFor(wait time.Duration, format string, args ...any) *Failure {
	failure := Failf(Unavailable, format, args...)
	failure.RetryAfter = wait
	return failure
}

// Failf returns a Failure whose message is formatted as by fmt.Errorf and shown
// to the model. An error given for %w becomes the cause. The failure is retryable
// if the code is [Unavailable].
func Failf(code Code, format string, args ...any) *Failure {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if _, many := err.(interface{ Unwrap() []error }); many {
		cause = err
	}
	return &Failure{Code: code, Message: err.Error(), Retryable: code == Unavailable, Cause: cause}
}

// AsFailure converts the error of a call to a Failure: the [Failure] in err's
// chain if there is one, [Timeout] or [Canceled] for a context's error, and
// otherwise [ExecutionFailed] with a general message. In that case err, which may
// be confidential, is only the Cause. AsFailure returns nil if and only if err is
// nil.
//
// The Failure always has a code, and a message or content. If the one in err's
// chain lacks them, or if err wraps it, AsFailure returns a copy. An error whose
// methods panic, such as a nil pointer returned as an error, is replaced by an
// error with its text or a description: the methods of all errors in the chain of
// the result are safe to call.
func AsFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	if !contain.Usable(err) {
		return failureIn(err)
	}
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		return completed(failure, err)
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{Code: Timeout, Message: "The tool did not answer in time. It may or may not have taken effect.", Retryable: true, Cause: err}
	case errors.Is(err, context.Canceled):
		return &Failure{Code: Canceled, Message: "The call was interrupted. It may or may not have taken effect.", Cause: err}
	}
	return &Failure{Code: ExecutionFailed, Message: "The tool ran and failed. The reason is in the log of the program that runs it.", Cause: err}
}

// failureIn returns the failure for an error whose methods panic.
func failureIn(err error) *Failure {
	failure, ok := contain.As[*Failure](err)
	if !ok || failure == nil {
		return AsFailure(contain.Error(err))
	}
	full := *completed(failure, nil)
	full.Cause = contain.Error(full.Cause)
	if err != error(failure) {
		full.Cause = contain.Error(err)
	}
	return &full
}

// completed returns failure with defaults for missing fields. outer is the error
// that wraps it, or nil.
func completed(failure *Failure, outer error) *Failure {
	if failure == nil { // a nil *Failure returned as an error is not nil
		return &Failure{Code: Internal, Message: "The tool reported a failure without saying which."}
	}
	full := *failure
	if full.Code == "" {
		full.Code = ExecutionFailed
	}
	if full.Message == "" && len(full.Content) == 0 {
		full.Message = "The tool failed without saying why."
	}
	wrapped := outer != nil && outer != error(failure)
	if wrapped {
		full.Cause = outer
	}
	if !wrapped && full.Code == failure.Code && full.Message == failure.Message {
		return failure
	}
	return &full
}
