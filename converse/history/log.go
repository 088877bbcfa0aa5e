// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
)

// Log stores lists of canisters by conversation ID, which is any string that [CheckID]
// accepts. All methods may be called concurrently, also by several processes if they
// share the store. A method whose context has already ended when it is called does
// nothing and returns the error of the context.
type Log interface {
	// Read yields the canisters of a conversation in order, as they were when the loop
	// began, and skips the first after of them. It yields nothing if the conversation
	// does not exist or has at most after canisters. An error ends the sequence; it is
	// a [*CorruptError] if the stored data was damaged after it was written, and may be
	// ErrNotFound if the conversation is deleted during the loop.
	Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error]
	// Append adds canisters to the end of a conversation, all or none, and returns when
	// they would survive a power failure. The conversation must have the expected number
	// of canisters; if that is 0 and the conversation does not exist, it is created. If it is
	// longer and already has canisters with the same IDs at the same indexes,
	// Append does nothing; canisters without an ID never match. If the length is any
	// other, the error is a [*ConflictError]. Appending no canisters creates no
	// conversation. A canister without a JSON form is an error, see [MarshalAll]. Other
	// errors, also that of a context which ends during the call, leave open whether the
	// canisters were added: call Append again with the same arguments, or Read.
	Append(ctx context.Context, conversation string, expected int, canisters ...canister.Canister) error
}

// ConflictError reports that a conversation does not have the length that the caller of
// Append or Delete expected, because another writer has changed it.
type ConflictError struct {
	Conversation string
	Expected     int // the expected number of canisters
	Length       int // the actual number of canisters
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("history: conversation %q has %d canisters and not %d: another writer has changed or deleted it", e.Conversation, e.Length, e.Expected)
}

// CorruptError reports that the stored data of a conversation was damaged after it was
// written, or that its canisters do not follow the rules of a history.
type CorruptError struct {
	Conversation string
	Location     string // for example a file and a line
	Err          error
}

// Error implements error. It names the location and the cause.
func (e *CorruptError) Error() string {
	if e.Conversation == "" { // the whole store
		return fmt.Sprintf("history: %s: %v", e.Location, e.Err)
	}
	return fmt.Sprintf("history: conversation %q: %s: %v", e.Conversation, e.Location, e.Err)
}

// Unwrap returns Err.
func (e *CorruptError) Unwrap() error { return e.Err }

// ErrNotFound is in the chain of errors about a conversation that does not exist, or
// about a fork at a length that it does not have.
var ErrNotFound = errors.New("history: no such conversation")

// ErrExists is in the chain of the error returned when a new conversation would have
// the ID of an existing one.
var ErrExists = errors.New("history: the conversation already exists")

// ErrClosed is in the chain of errors of a closed store.
var ErrClosed = errors.New("history: the store is closed")
