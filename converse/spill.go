// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/foreign"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/logevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// spiller calls Options.Spill for one result.
type spiller struct {
	ctx          context.Context
	conversation string
	spill        func(ctx context.Context, conversation string, whole canister.Content) (canister.LinkContent, error)
	logger       *zap.Logger
	begins       func() // called before spill; may be nil
}

// keep spills a piece if there is a function for it.
func (s spiller) keep(whole canister.Content) (canister.LinkContent, bool) {
	if s.spill == nil {
		return canister.LinkContent{}, false
	}
	link, err := s.call(whole)
	if err != nil {
		logevent.Log(s.ctx, s.logger, zapcore.ErrorLevel, "a piece of a result could not be spilled", logevent.SpillFailed, zap.Error(err))
		return canister.LinkContent{}, false
	}
	return link, true
}

// call calls the program's function, which may panic.
func (s spiller) call(whole canister.Content) (link canister.LinkContent, err error) {
	defer foreign.Caught("Options.Spill", &err)
	if s.begins != nil {
		s.begins()
	}
	link, err = s.spill(s.ctx, s.conversation, whole)
	return link, contain.Error(err)
}
