// SPDX-License-Identifier: Apache-2.0

// Package claim sets the owners of conversations.
package claim

import (
	"context"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// timeout bounds how long the store may take. A Send whose context has ended waits this long for a
// store that hangs.
const timeout = 5 * time.Second

// Set sets the owner of a conversation that has none, if it began with the message with an ID.
// It does so even after the end of ctx, because the message is stored. With an empty owner it
// does nothing.
func Set(ctx context.Context, store history.Store, conversation, message, owner string) error {
	if owner == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	info, err := store.Info(ctx, conversation)
	if err != nil || info.Owner != "" {
		return err
	}
	if begins, err := beginsWith(ctx, store, conversation, message); !begins {
		return err
	}
	return store.Describe(ctx, conversation, history.Change{Owner: &owner})
}

// beginsWith reports whether the first message of a user has an ID.
func beginsWith(ctx context.Context, store history.Store, conversation, message string) (bool, error) {
	for c, err := range store.Read(ctx, conversation, 0) {
		if err != nil {
			return false, err
		}
		if c.Kind() == canister.KindUser {
			return c.Header().ID == message, nil
		}
	}
	return false, nil
}
