// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
)

// Log keeps lists of canisters by the identity of their conversation, which is
// anything that [CheckID] lets pass. All methods may be called concurrently,
// also by several processes where the store is one that they share. One whose
// context has ended does nothing and returns the error of the context.
type Log interface {
	// Read yields the canisters of a conversation behind the first after ones,
	// in order, as they were when the loop over them began. Of a conversation
	// that does not exist it yields nothing, and neither does it when after is
	// the length or more. An error ends the sequence; it is a [*CorruptError]
	// when what was kept is no longer what was written.
	Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error]
	// Append adds canisters to the end of a conversation, all or none, and
	// returns when they would survive the loss of power. The conversation must
	// have length canisters, and is made if that is 0 and it does not exist. If
	// it is longer, and the same identities stand where the canisters would,
	// they are there already and nothing is done; canisters without identity are
	// never there already. Anything else is a [*ConflictError]. No canisters
	// make no conversation. A canister without a JSON form is an error, see
	// [Lines]. After an error of another kind than these it is open whether the
	// canisters are there: call Append again with the same, or Read.
	Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error
}

// ConflictError says that a conversation is not as long as who appends to it, or
// deletes it, believes: somebody else has gone on with it.
type ConflictError struct {
	Conversation string
	Expected     int // canisters, as was believed
	Length       int // canisters that there are
}

// Error says so.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("history: conversation %q has %d canisters and not %d: somebody else has gone on with it", e.Conversation, e.Length, e.Expected)
}

// CorruptError says that what was kept of a conversation cannot be what was
// written.
type CorruptError struct {
	Conversation string
	Place        string // such as a file and a line
	Err          error
}

// Error says where, and what is wrong.
func (e *CorruptError) Error() string {
	if e.Conversation == "" { // all of the store
		return fmt.Sprintf("history: %s: %v", e.Place, e.Err)
	}
	return fmt.Sprintf("history: conversation %q: %s: %v", e.Conversation, e.Place, e.Err)
}

// Unwrap returns what is wrong.
func (e *CorruptError) Unwrap() error { return e.Err }

// ErrNotFound is in the chain of the errors about a conversation that does not
// exist, and about a place in one that there is not.
var ErrNotFound = errors.New("history: no such conversation")

// ErrExists is in the chain of the error about a conversation that is to be
// made and exists already.
var ErrExists = errors.New("history: the conversation exists already")

// ErrNewer is in the chain of the errors about what a newer program has
// written. It is that of package canister, so that an error of Unmarshal can be
// passed on.
var ErrNewer = canister.ErrNewer

// ErrClosed is in the chain of the errors of a store that was closed.
var ErrClosed = errors.New("history: the store is closed")
