// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

// Fault describes the failure of an operation. Nil means success.
type Fault struct {
	// Type is the error.type of the conventions. It must have few distinct values,
	// such as the code of a failure; default _OTHER.
	Type string
	// Message is the description of the span's status, in words for people, such as
	// the message for a model.
	Message string
	// Said is the content that a tool returned about its failure. Like any result, it
	// is only recorded with Options.Content, and then used instead of Message.
	Said []canister.Content
	// Cause is the underlying error, which the span has as an exception event. It can
	// contain information that models do not see: only people who may read the logs
	// should have access to traces. Nil if there is none.
	Cause error
}

// otherError is the conventions' error.type for errors without a name.
const otherError = "_OTHER"

func (f *Fault) kind() string { return cmp.Or(f.Type, otherError) }

// FaultOf returns the fault for a failed call: the code of the failure, the
// message for the model, and the cause. The tool's own content about its failure
// is a result, and is only recorded with Options.Content. FaultOf returns nil for
// nil.
func FaultOf(failure *invoker.Failure) *Fault {
	if failure == nil {
		return nil
	}
	return &Fault{Type: string(failure.Code), Message: failure.Message, Cause: failure.Cause, Said: failure.Content}
}

// causeType returns the name of the type of the first error in the chain that is
// not just a wrapper that adds text. It calls no methods of other types, which
// may panic on a nil pointer.
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

// maxChain is the maximum number of errors in a chain that are examined.
const maxChain = 32
