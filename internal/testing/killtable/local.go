// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"context"
	"errors"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
)

// Local is the engine of one process, which finds by itself what was left
// unfinished; the child only sends the message, once more each time.
func Local(ctx context.Context, c *Child) error {
	open := func(context.Context, string) (*converse.Conversation, error) {
		return converse.New(c.Model, c.Roster, c.Options()), nil
	}
	local, err := engine.NewLocal(c.Store, open, nil)
	if err != nil {
		return err
	}
	if err := local.Send(ctx, c.Conversation, c.Message()); err != nil {
		return errors.Join(err, local.Close(ctx))
	}
	return errors.Join(Watch(ctx, local, c.Conversation), local.Close(ctx))
}

// Watch waits until the turn of a conversation has ended, or waits for somebody.
// A failure after which it is tried again is none.
func Watch(ctx context.Context, e engine.Engine, conversation string) error {
	for event, err := range e.Watch(ctx, conversation, 0) {
		if err != nil {
			return err
		}
		ended, ok := event.(engine.Ended)
		switch {
		case !ok || !ended.Again.IsZero():
		case ended.Error != "":
			return errors.New(ended.Error)
		default:
			return nil
		}
	}
	return context.Cause(ctx)
}
