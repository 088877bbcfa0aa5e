// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"fmt"
	"strings"

	"github.com/consort-go/consort/canister"
)

// ErrBusy is returned by Send, Continue, Step, Compact, Add and Load while another of these
// calls runs on the same conversation. Wait for it, or use two conversations.
var ErrBusy = errors.New("converse: the conversation is busy with another Send, Continue, Step or Add")

// ErrClosed is returned by a conversation after Close.
var ErrClosed = errors.New("converse: the conversation is closed")

// ErrSuspended is the error of a turn that was suspended, to be continued later by
// Continue, here or in another process. [Conversation.Suspend] suspends a turn, and so does
// cancelling its context with ErrSuspended as the cause (see [context.WithCancelCause]).
// The streamed part of a message is dropped and running calls are cancelled, but no
// invocation gets a result that says that it was interrupted.
var ErrSuspended = errors.New("converse: the work was suspended")

// The codes of a [ModelError] that do not depend on the server. Any other code is the
// server's own. docs/failures.md says what to do about each.
const (
	// CodeContextLength is for a request that is longer than the model accepts. A
	// conversation with Options.Compaction is then shortened and goes on; a [Model] must
	// report this code for that to work.
	CodeContextLength = "context_length_exceeded"
	// CodeModelNotFound is for a model that the server does not have, or that the account
	// may not use.
	CodeModelNotFound = "model_not_found"
	// CodeAPI is for a model that requires another API of the same server.
	CodeAPI = "unsupported_api"
	// CodeTools is for a model or a server that takes no tools.
	CodeTools = "unsupported_tools"
	// CodeParameter is for a member of the request, or a value, that the model or the
	// server does not take.
	CodeParameter = "unsupported_parameter"
	// CodeImage is for an image, or a PDF file, that the model does not take, for example
	// because it is too large, and for too many of them.
	CodeImage = "unsupported_image"
	// CodeKey is for a key that is missing or not valid.
	CodeKey = "invalid_api_key"
	// CodeQuota is for an account without credit. Waiting does not help.
	CodeQuota = "insufficient_quota"
	// CodeUnverified is for an account that must be verified first.
	CodeUnverified = "organization_not_verified"
	// CodeRegion is for a provider that does not serve the caller's country or region.
	CodeRegion = "unsupported_country_region_territory"
	// CodeAddress is for a server that does not have the API at this address.
	CodeAddress = "wrong_address"
)

// ModelError is a failed exchange with a model.
type ModelError struct {
	// Message says what failed, in the server's own words if it had any. It
	// holds no credentials.
	Message string
	// Status is the HTTP status, or 0 when there was no response.
	Status int
	// Code is [CodeContextLength] or another of the Code constants, or the server's own
	// name for the failure; may be empty.
	Code string
	// Advice says what to do about it, such as which option of the model to change; may be
	// empty. It holds no credentials.
	Advice string
	// RequestID is the server's name for the request; may be empty.
	RequestID string
	// Retryable says that the same exchange can succeed later.
	Retryable bool
	// Ran names a tool that the model's server has run by itself. The exchange is then not
	// repeated, by this model or another one, since that could repeat the tool's effect. It is
	// empty if the server is not known to have run one.
	Ran string
	// Usage counts the tokens of earlier parts of the answer, which the server charges
	// although the exchange failed. It is nil if it is unknown or zero.
	Usage *canister.Usage
	// Err is the cause; may be nil. It wraps io.ErrUnexpectedEOF if an answer that had begun
	// broke off.
	Err error
}

// Error returns the message with the status, the code and the request ID, if known, and
// the advice, if there is any, in a line of its own.
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
	text := "model: " + e.Message
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, ", ") + ")"
	}
	if e.Advice != "" {
		text += "\n" + e.Advice
	}
	return text
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }
