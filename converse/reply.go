// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"fmt"
	"sync"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/foreign"
)

// identities records the IDs that a model was given for one reply.
type identities struct {
	newID func() string

	mu    sync.Mutex
	given map[string]bool // false once it is used
}

// next is Request.NewID.
func (i *identities) next() string {
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
func (i *identities) take(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	given := i.given[id]
	if given {
		i.given[id] = false
	}
	return given
}

// canisters returns the canisters of the reply, or an error if they would corrupt the
// history: implementations of Model are not trusted.
func (r *Reply) canisters(ids *identities) ([]canister.Canister, error) {
	added, err := r.check(ids)
	if err != nil {
		return nil, &ModelError{Message: "the reply cannot be added to the history: " + err.Error()}
	}
	return added, nil
}

func (r *Reply) check(ids *identities) ([]canister.Canister, error) {
	if id := r.Message.ID; !ids.take(id) {
		return nil, fmt.Errorf("the ID of the message is not from Request.NewID: %q", id)
	}
	if err := canister.Writable(r.Message); err != nil {
		return nil, err
	}
	added := make([]canister.Canister, 0, 1+len(r.Invocations))
	added = append(added, r.Message)
	callIDs := map[string]bool{"": true}
	for i, invocation := range r.Invocations {
		switch {
		case !ids.take(invocation.ID):
			return nil, fmt.Errorf("the ID of invocation %d is not from Request.NewID, or taken: %q", i, invocation.ID)
		case invocation.Message != r.Message.ID:
			return nil, fmt.Errorf("the Message of invocation %d is not the ID of the message: %q", i, invocation.Message)
		case callIDs[invocation.CallID]:
			return nil, fmt.Errorf("the CallID of invocation %d is empty or taken: %q", i, invocation.CallID)
		}
		if err := canister.Writable(invocation); err != nil {
			return nil, err
		}
		callIDs[invocation.CallID] = true
		added = append(added, invocation)
	}
	return added, nil
}
