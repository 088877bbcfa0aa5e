// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBusy is returned by a conversation that is asked for a second piece of
// work while it is doing one. Wait for the first, or use two conversations.
var ErrBusy = errors.New("converse: the conversation is busy with another Send, Continue, Step or Add")

// ErrClosed is returned by a conversation after Close.
var ErrClosed = errors.New("converse: the conversation is closed")

// ErrSuspended is the cause with which a program cancels the context of a piece
// of work that another process, or this one later, is to carry on: what the model
// had streamed is dropped, and calls that are under way are cancelled, but no
// invocation is answered as interrupted. Continue takes them up.
var ErrSuspended = errors.New("converse: the work was suspended")

// CodeContextLength is the Code of a [ModelError] that says that a request is
// longer than the model takes, under whatever name its server has for that. A
// conversation with Options.Compaction becomes shorter then and goes on; a
// [Model] that reports it by this name lets it.
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

// Error returns the message with what else is known.
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
