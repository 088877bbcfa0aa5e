// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Fault says that an operation failed. Nil is no fault.
type Fault struct {
	// Type is the error.type of the conventions, a name of which there are few,
	// such as a failure's code; default _OTHER.
	Type string
	// Message is the description of the span's status: words for people, such
	// as those that a model was told.
	Message string
	// Said is what a tool returned about its failure. Like any result it is
	// recorded with Options.Content alone, then in place of Message.
	Said []canister.Content
	// Cause is the error behind it, which the span has as an exception event.
	// It may say what a model is not told: traces are for those who may read
	// the logs. Nil if there is none.
	Cause error
}

// otherError is the conventions' error.type of errors that have no name.
const otherError = "_OTHER"

func (f *Fault) kind() string { return cmp.Or(f.Type, otherError) }

func (f *Fault) words() string { return cmp.Or(canister.TextOf(f.Said), f.Message) }

// FaultOf is the fault of a failed call: the code of the failure, what the model
// is told, and the cause. What a tool itself said about its failure is a result,
// and recorded with Options.Content alone. It is nil for nil.
func FaultOf(failure *invoker.Failure) *Fault {
	if failure == nil {
		return nil
	}
	return &Fault{Type: string(failure.Code), Message: failure.Message, Cause: failure.Cause, Said: failure.Content}
}

// causeType returns the name of the type of an error: of the first in its chain
// that is more than words around another. Of others it calls no method: one on
// a nil pointer may panic.
func causeType(err error) string {
	kind := fmt.Sprintf("%T", err)
	for range maxChain {
		if kind != "*fmt.wrapError" && kind != "*invoker.Failure" || errors.Unwrap(err) == nil {
			break
		}
		err = errors.Unwrap(err)
		kind = fmt.Sprintf("%T", err)
	}
	return kind
}

// maxChain bounds how far a chain of errors is followed.
const maxChain = 32
