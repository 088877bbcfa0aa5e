// SPDX-License-Identifier: Apache-2.0

// Package turncancel bounds how long the cancellation of a turn may take.
package turncancel

import (
	"context"
	"time"
)

// Limit bounds the cancellation of a turn. A turn whose functions ignore its end stops after 20 s, and its engine then
// settles with a ledger, and closes the conversation, in 10 s each. If the context of a cancellation ends before the
// log has it, the turn begins again.
const Limit = 45 * time.Second

// Outlive returns a context that ends Limit after ctx. The caller must call cancel.
func Outlive(ctx context.Context) (lasting context.Context, cancel func()) {
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		bounded, stop := context.WithTimeout(lasting, Limit)
		defer stop()
		<-bounded.Done()
		end()
	})
	return lasting, func() { unhook(); end() }
}
