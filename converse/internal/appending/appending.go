// SPDX-License-Identifier: Apache-2.0

// Package appending appends canisters to a log, also if the caller leaves meanwhile.
package appending

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
)

// patience is how long an append continues after its context has ended.
const patience = 5 * time.Second

// Append is [history.Log.Append], except that an append that has begun continues for up to 5
// seconds after ctx has ended: a store may keep it although it returns the error of ctx, and
// no caller would carry on the conversation then.
func Append(ctx context.Context, log history.Log, conversation string, length int, canisters ...canister.Canister) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	appending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(patience):
			cancel()
		case <-appending.Done():
		}
	})()
	err := log.Append(appending, conversation, length, canisters...)
	if err != nil && appending.Err() != nil { // only after the patience
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}
