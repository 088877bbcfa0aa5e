// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"fmt"

	"github.com/consort-go/consort/converse/internal/foreign"
)

// Suspend stops the piece of work under way so that [Conversation.Continue] can carry
// it on, here or in another process. No further exchange or call begins, pending
// approvals are not waited for, and running calls and exchanges are allowed to finish.
// The work then ends with [ErrSuspended]. When ctx ends first, the running calls and
// exchanges are cancelled with that cause, and Suspend returns the error of ctx without
// waiting further; [Conversation.Close] does wait.
//
// Suspend must not be called from within the loop over the events of the same conversation:
// it would wait for that loop.
//
// Without work under way, Suspend does nothing. Work that begins later is not affected:
// an engine that shuts down must not begin any.
func (c *Conversation) Suspend(ctx context.Context) error {
	c.mu.Lock()
	working := c.working
	c.mu.Unlock()
	if working == nil {
		return nil
	}
	working.suspend()
	if err := foreign.Wait(ctx, working.done); err != nil {
		working.cancel(ErrSuspended)
		return fmt.Errorf("converse: suspending: the running work was cancelled: %w", err)
	}
	return nil
}
