// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"errors"
	"fmt"

	"github.com/consort-go/consort/canister"
)

// fits says what about the reply would make a sound history unsound. Models
// are written by many hands, and a history that was spoilt once stays so.
func (r *Reply) fits(history []canister.Canister) error {
	if r.Message.ID == "" {
		return errors.New("the message has no ID")
	}
	ids, callIDs := map[string]bool{r.Message.ID: true}, map[string]bool{}
	for i, invocation := range r.Invocations {
		switch {
		case invocation.ID == "" || ids[invocation.ID]:
			return fmt.Errorf("the ID of invocation %d is empty or taken: %q", i, invocation.ID)
		case invocation.Message != r.Message.ID:
			return fmt.Errorf("invocation %d does not name the message", i)
		case invocation.CallID == "" || callIDs[invocation.CallID]:
			return fmt.Errorf("the CallID of invocation %d is empty or taken: %q", i, invocation.CallID)
		}
		ids[invocation.ID], callIDs[invocation.CallID] = true, true
	}
	for _, c := range history {
		if id := c.Header().ID; ids[id] {
			return fmt.Errorf("the history has the ID %q already; see Request.NewID", id)
		}
	}
	return nil
}
