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

// Code is one word of the failure vocabulary, which is the same for every
// transport.
type Code string

// The failure vocabulary.
const (
	InvalidArguments Code = "INVALID_ARGUMENTS" // the arguments break the schema, or the tool refused them
	ToolNotFound     Code = "TOOL_NOT_FOUND"    // there is no such tool
	NotFound         Code = "NOT_FOUND"         // the tool did not find what it was asked about
	Unauthorized     Code = "UNAUTHORIZED"      // the identity is missing or may not do this
	Denied           Code = "DENIED"            // a policy or a person said no
	Conflict         Code = "CONFLICT"          // what is there stands against it; nothing was done
	Unavailable      Code = "UNAVAILABLE"       // the tool cannot be reached; nothing was done
	Timeout          Code = "TIMEOUT"           // no answer in time
	Canceled         Code = "CANCELED"          // the turn ended before the call did
	ExecutionFailed  Code = "EXECUTION_FAILED"  // the tool ran and failed
	OutcomeUnknown   Code = "OUTCOME_UNKNOWN"   // the call may have taken effect
	Protocol         Code = "PROTOCOL"          // the peer broke its protocol or its own schema
	ResultTooLarge   Code = "RESULT_TOO_LARGE"  // the answer exceeds a limit
	Internal         Code = "INTERNAL"          // a fault of this program
)

// Failure is what came of a call that did not succeed. It is news for the
// model, not an error of the runtime.
type Failure struct {
	Code Code
	// Message tells the model, in words that it can act on, what happened.
	Message string
	// Retryable says that the same call can succeed later.
	Retryable bool
	// Pointer is the JSON pointer (RFC 6901) of the argument at fault; of the
	// first, if there are several. Empty when it is none or all of them.
	Pointer string
	// RetryAfter is how long to wait before the next attempt; 0 when not said.
	RetryAfter time.Duration
	// Content is what the tool itself said about its failure; if it is not
	// empty the model is shown it in place of Message.
	Content []canister.Content
	// Metadata is for programs; the model never sees it. May be nil.
	Metadata canister.Fields
	// Cause is the error behind the failure, for logs; the model never sees
	// it. May be nil.
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

// Invalid returns the failure of a call whose argument at pointer, such as
// "/title", the tool cannot take, though its schema allows it. The rest is as
// in [Failf].
func Invalid(pointer, format string, args ...any) *Failure {
	failure := Failf(InvalidArguments, format, args...)
	failure.Pointer = pointer
	return failure
}

// UnavailableFor returns the failure of a call that did nothing and can be made
// again after a while. The rest is as in [Failf].
func UnavailableFor(wait time.Duration, format string, args ...any) *Failure {
	failure := Failf(Unavailable, format, args...)
	failure.RetryAfter = wait
	return failure
}

// Failf returns a Failure with the message that fmt.Errorf would make, which
// the model is shown; an error given to %w becomes the cause. It is retryable
// if the code is [Unavailable].
func Failf(code Code, format string, args ...any) *Failure {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if _, many := err.(interface{ Unwrap() []error }); many {
		cause = err
	}
	return &Failure{Code: code, Message: err.Error(), Retryable: code == Unavailable, Cause: cause}
}

// AsFailure translates the error of a call: the [Failure] in err's chain if
// there is one, [Timeout] and [Canceled] for the errors of a context, and
// [ExecutionFailed] for any other, with a message that says no more than that:
// err, which may hold what a model is not to see, is the Cause. It returns nil
// for nil and only then. The Failure always has a code, and a message or content; if err
// wraps one that lacks them, or says more than it, AsFailure returns a copy. An
// error whose methods panic, such as those of a nil pointer returned as an error,
// is replaced by one that has its text or says so: the methods of all errors in
// the chain of the Failure return.
func AsFailure(err error) *Failure {
	var failure *Failure
	switch {
	case err == nil:
		return nil
	case !contain.Usable(err):
		return failureIn(err)
	case errors.As(err, &failure):
		return completed(failure, err)
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{Code: Timeout, Message: "The tool did not answer in time. It may or may not have taken effect.", Retryable: true, Cause: err}
	case errors.Is(err, context.Canceled):
		return &Failure{Code: Canceled, Message: "The call was interrupted. It may or may not have taken effect.", Cause: err}
	}
	return &Failure{Code: ExecutionFailed, Message: "The tool ran and failed. The reason is in the log of the program that runs it.", Cause: err}
}

// failureIn returns the failure of an error whose methods panic.
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

// completed returns failure with what it lacks. Outer is the error in which it
// was found; nil if it was not found in one.
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
