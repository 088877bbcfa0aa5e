// SPDX-License-Identifier: Apache-2.0

// Package replies checks the replies of models, which are not trusted.
package replies

import (
	"fmt"
	"slices"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/foreign"
)

// IDs records the IDs that a model was given for one reply. It is safe for
// concurrent use.
type IDs struct {
	newID func() string

	mu    sync.Mutex
	given []givenID
	first [4]givenID // room for the IDs of most replies
}

type givenID struct {
	id   string
	used bool
}

// NewIDs returns the record for one reply, of IDs that newID makes.
func NewIDs(newID func() string) *IDs {
	i := &IDs{newID: newID}
	i.given = i.first[:0]
	return i
}

// Next returns a new ID. It panics with a [*foreign.Misuse] if newID returned it
// before.
func (i *IDs) Next() string {
	id := i.newID()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.find(id) >= 0 {
		panic(foreign.SameIdentity(id))
	}
	i.given = append(i.given, givenID{id: id})
	return id
}

// find returns the place of an ID, or -1. The latest are looked at first.
func (i *IDs) find(id string) int {
	for place, given := range slices.Backward(i.given) {
		if given.id == id {
			return place
		}
	}
	return -1
}

// take marks an ID as used, and reports whether it was given out and unused.
func (i *IDs) take(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	place := i.find(id)
	if place < 0 || i.given[place].used {
		return false
	}
	i.given[place].used = true
	return true
}

// Canisters returns the canisters of a reply, or an error if they would corrupt the
// history.
func (i *IDs) Canisters(message canister.Assistant, invocations []canister.Invocation) ([]canister.Canister, error) {
	if !i.take(message.ID) {
		return nil, fmt.Errorf("the ID of the message is not from Request.NewID: %q", message.ID)
	}
	added := make([]canister.Canister, 0, 1+len(invocations))
	added = append(added, message)
	if err := canister.Writable(added[0]); err != nil {
		return nil, err
	}
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
		added = append(added, invocation)
		if err := canister.Writable(added[1+place]); err != nil {
			return nil, err
		}
		callIDs[invocation.CallID] = true
	}
	return added, nil
}
