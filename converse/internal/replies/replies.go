// SPDX-License-Identifier: Apache-2.0

// Package replies checks the replies of models, which are not trusted.
package replies

import (
	"fmt"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/foreign"
)

// IDs records the identities that a model was given for one reply. It is safe for
// concurrent use.
type IDs struct {
	newID func() string

	mu    sync.Mutex
	given map[string]bool // false once it is used
}

// NewIDs returns the record for one reply, of identities that newID makes.
func NewIDs(newID func() string) *IDs { return &IDs{newID: newID, given: map[string]bool{}} }

// Next returns a new identity. It panics with a [*foreign.Misuse] if newID returned it
// before.
func (i *IDs) Next() string {
	id := i.newID()
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, twice := i.given[id]; twice {
		panic(foreign.SameIdentity(id))
	}
	i.given[id] = true
	return id
}

// take marks an identity as used, and reports whether it was given out and unused.
func (i *IDs) take(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	given := i.given[id]
	if given {
		i.given[id] = false
	}
	return given
}

// Canisters returns the canisters of a reply, or an error if they would corrupt the
// history.
func (i *IDs) Canisters(message canister.Assistant, invocations []canister.Invocation) ([]canister.Canister, error) {
	if !i.take(message.ID) {
		return nil, fmt.Errorf("the ID of the message is not from Request.NewID: %q", message.ID)
	}
	if err := canister.Writable(message); err != nil {
		return nil, err
	}
	added := make([]canister.Canister, 0, 1+len(invocations))
	added = append(added, message)
	callIDs := map[string]bool{"": true}
	for place, invocation := range invocations {
		switch {
		case !i.take(invocation.ID):
			return nil, fmt.Errorf("the ID of invocation %d is not from Request.NewID, or taken: %q", place, invocation.ID)
		case invocation.Message != message.ID:
			return nil, fmt.Errorf("the Message of invocation %d is not the ID of the message: %q", place, invocation.Message)
		case callIDs[invocation.CallID]:
			return nil, fmt.Errorf("the CallID of invocation %d is empty or taken: %q", place, invocation.CallID)
		}
		if err := canister.Writable(invocation); err != nil {
			return nil, err
		}
		callIDs[invocation.CallID] = true
		added = append(added, invocation)
	}
	return added, nil
}
