// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBusy is returned when a piece of work is started while the conversation does
// another one. Wait for the first, or use two conversations.
var ErrBusy = errors.New("converse: the conversation is busy with another Send, Continue, Step or Add")

// ErrClosed is returned by a conversation after Close.
var ErrClosed = errors.New("converse: the conversation is closed")

// ErrSuspended is the cause for cancelling the context of a piece of work that another
// process, or this one later, will carry on: the streamed part of a message is dropped
// and running calls are cancelled, but no invocation gets a result that says that it
// was interrupted. Continue takes them up.
var ErrSuspended = errors.New("converse: the work was suspended")

// CodeContextLength is the Code of a [ModelError] for a request that is longer than the
// model accepts, whatever name its server has for that. A conversation with
// Options.Compaction is then shortened and goes on; a [Model] must report this code for
// that to work.
const CodeContextLength = "context_length_exceeded"

// ModelError is a failed exchange with a model.
type ModelError struct {
	// Message says what failed, in the server's own words if it had any. It
	// holds no credentials.
	Message string
	// Status is the HTTP status, or 0 when there was no response.
	Status int
	// Code is the server's name for the failure, or [CodeContextLength]; may be
	// empty.
	Code string
	// RequestID is the server's name for the request; may be empty.
	RequestID string
	// Retryable says that the same exchange can succeed later.
	Retryable bool
	// Err is the cause; may be nil.
	Err error
}

// Error returns the message with the status, the code and the request ID, if known.
func (e *ModelError) Error() string {
	var facts []string
	if e.Status != 0 {
		facts = append(facts, fmt.Sprintf("status %d", e.Status))
	}
	if e.Code != "" {
		facts = append(facts, "code "+e.Code)
	}
	if e.RequestID != "" {
		facts = append(facts, "request "+e.RequestID)
	}
	if len(facts) == 0 {
		return "model: " + e.Message
	}
	return "model: " + e.Message + " (" + strings.Join(facts, ", ") + ")"
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }
