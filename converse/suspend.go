// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"fmt"
	"sync"
)

// suspension is how a piece of work learns that it is to be put down.
type suspension struct {
	once      sync.Once
	suspended chan struct{} // closed then
}

// Suspend puts down the piece of work under way so that it can be carried on
// with [Conversation.Continue], here or in another process: no exchange and no
// call is begun any more, approvals are not waited for, and what is under way is
// let end. The work then ends with [ErrSuspended]. When ctx ends first, what is
// under way is cancelled with that cause, and Suspend returns the error of ctx
// without waiting further; [Conversation.Close] does.
//
// Without work under way there is nothing to do. Work that begins later is not
// affected: an engine that shuts down begins none.
func (c *Conversation) Suspend(ctx context.Context) error {
	c.mu.Lock()
	working := c.working
	c.mu.Unlock()
	if working == nil {
		return nil
	}
	working.once.Do(func() { close(working.suspended) })
	if err := wait(ctx, working.done); err != nil {
		working.cancel(ErrSuspended)
		return fmt.Errorf("converse: suspending, what was under way was cancelled: %w", err)
	}
	return nil
}

// asked reports whether the work is to be put down.
func (s *suspension) asked() bool {
	select {
	case <-s.suspended:
		return true
	default:
		return false
	}
}
