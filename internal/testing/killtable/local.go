// SPDX-License-Identifier: Apache-2.0

//go:build unix

package killtable

import (
	"context"
	"errors"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
)

// Local is the in-process engine, which finds unfinished conversations by itself. The
// child only sends the message, again in each process.
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

// Watch waits until the turn of a conversation has ended, or waits for an answer. A
// failure that the engine will retry is not an error.
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
