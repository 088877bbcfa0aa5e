// SPDX-License-Identifier: Apache-2.0

// Package spilling calls the function that stores the pieces of a result that are too large.
package spilling

import (
	"context"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Spiller calls Options.Spill for one result.
type Spiller struct {
	Context      context.Context
	Conversation string
	Spill        func(ctx context.Context, conversation string, whole canister.Content) (canister.LinkContent, error)
	Logger       *zap.Logger
	Begins       func() // called before Spill
}

// Keep spills a piece.
func (s Spiller) Keep(whole canister.Content) (canister.LinkContent, bool) {
	link, err := s.call(whole)
	if err == nil { // otherwise the result could not enter the history
		err = canister.Writable(canister.User{Content: []canister.Content{link}})
	}
	if err != nil {
		logevent.Log(s.Context, s.Logger, zapcore.ErrorLevel, "a piece of a result could not be spilled", logevent.SpillFailed, zap.Error(err))
		return canister.LinkContent{}, false
	}
	return link, true
}

// call calls the program's function, which may panic.
func (s Spiller) call(whole canister.Content) (link canister.LinkContent, err error) {
	defer foreign.Caught("Options.Spill", &err)
	s.Begins()
	link, err = s.Spill(s.Context, s.Conversation, whole)
	return link, contain.Error(err)
}
