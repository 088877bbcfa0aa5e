// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"context"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
)

// teller publishes what happens while a conversation is at work, for those who
// watch. What is lost, is lost.
type teller struct {
	stream       engine.Stream // may be nil
	conversation string
	talk         *converse.Conversation
	attempt      int64
	index        int
	turn         string // the User canister that the turn began with
	place        int
}

// saw publishes what an event means to those who watch, if anything.
func (t *teller) saw(ctx context.Context, event converse.Event) {
	if t.stream == nil {
		return
	}
	var delta engine.Delta
	switch event.(type) {
	case converse.TextDelta, converse.ReasoningDelta, converse.InvocationAnnounced, converse.InvocationStarted, converse.InvocationProgressed, converse.ExchangeRetried:
		form, err := converse.MarshalEvent(event)
		if err != nil {
			return
		}
		delta.Event, delta.Index = form, t.index
		t.index++
	case converse.TurnStarted, converse.MessageCompleted, converse.InvocationRequested, converse.InvocationCompleted:
		t.look()
	default:
		return
	}
	t.publish(ctx, delta)
}

// look sees how far the log is.
func (t *teller) look() {
	history := t.talk.History()
	for _, c := range history[min(t.place, len(history)):] {
		if c.Kind() == canister.KindUser {
			t.turn = c.Header().ID
		}
	}
	t.place = len(history)
}

// ended publishes what came of the work.
func (t *teller) ended(ctx context.Context, ended engine.Ended) {
	if t.stream == nil {
		return
	}
	if t.talk != nil {
		t.look()
	}
	ended.Turn = t.turn
	t.publish(ctx, engine.Delta{Ended: &ended})
}

func (t *teller) publish(ctx context.Context, delta engine.Delta) {
	delta.Turn, delta.Attempt, delta.Place = t.turn, t.attempt, t.place
	_ = t.stream.Publish(context.WithoutCancel(ctx), t.conversation, delta)
}
