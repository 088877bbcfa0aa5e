// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/eventjson"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/internal/contain"
)

// Publisher publishes the events of one attempt to continue a conversation. Engines
// create one for each attempt; the turn of the attempt calls its methods sequentially.
// Events that are lost can be recovered from the log.
type Publisher struct {
	// Stream is where events are published; nil discards them.
	Stream Stream
	// Log is the log of the conversation. It identifies the turn if the turn could not
	// be begun.
	Log history.Log
	// Conversation is the ID of the conversation.
	Conversation string
	// Attempt is set in the deltas; each attempt has a greater number.
	Attempt int64
	// Lost, if not nil, is called with the error when a delta could not be published.
	Lost func(error)

	conv     *converse.Conversation // set by the first event
	index    int
	missed   int    // deltas that were not published since the last one that was
	turn     string // the ID of the User canister
	position int
}

// Observe publishes an event of the conversation, if it matters to watchers.
func (p *Publisher) Observe(ctx context.Context, conv *converse.Conversation, event converse.Event) {
	if p.Stream == nil {
		return
	}
	p.conv = conv
	grown := p.update()
	var delta Delta
	switch event.(type) {
	case converse.TextDelta, converse.ReasoningDelta, converse.InvocationAnnounced,
		converse.InvocationStarted, converse.InvocationProgressed, converse.ExchangeRetried, converse.ExchangeMoved:
		form, err := eventjson.Marshal(event)
		if err != nil {
			return
		}
		delta.Event, delta.Index = form, p.index
		p.index++
	default:
		if !grown {
			return
		}
	}
	p.publish(ctx, delta)
}

// update sets the position, and reports whether the log has grown.
func (p *Publisher) update() (grown bool) {
	if p.conv == nil || p.conv.Length() == p.position {
		return false
	}
	p.position, p.turn = p.conv.Length(), compaction.LastUserID(p.conv.History())
	return true
}

// Turn returns the ID of the User canister that the turn began with. Before the
// first event it reads the log; the result is empty if the log cannot be read.
func (p *Publisher) Turn(ctx context.Context) string {
	if p.turn == "" && p.Log != nil {
		if position, canisters, err := LastTurn(ctx, p.Log, p.Conversation, time.Now()); err == nil {
			p.turn, p.position = compaction.LastUserID(canisters), position+len(canisters)
		}
	}
	return p.turn
}

// End publishes that the work has ended, with its turn. It must be called when no work
// is running.
func (p *Publisher) End(ctx context.Context, ended Ended) {
	if p.Stream == nil {
		return
	}
	p.update()
	ended.Turn = p.Turn(ctx)
	if ended.Error != "" || ended.Reason == converse.ReasonBudget {
		ended.Attempt = p.Attempt
	}
	p.publish(ctx, Delta{Index: p.index, Ended: &ended})
}

// publish sends a delta, even if the context of the work was cancelled.
func (p *Publisher) publish(ctx context.Context, delta Delta) {
	delta.Turn, delta.Attempt, delta.Position, delta.Missed = p.turn, p.Attempt, p.position, p.missed
	var err error
	panicked := contain.Call("the stream", func() {
		err = p.Stream.Publish(context.WithoutCancel(ctx), p.Conversation, delta)
	})
	failed := cmp.Or(panicked, contain.Error(err))
	switch {
	case failed == nil:
		p.missed = 0
	case delta.Event != nil:
		p.missed++
	}
	if failed != nil && p.Lost != nil {
		p.Lost(failed)
	}
}

// Permanent reports whether a turn that failed with err would fail the same way again:
// the model's server has refused it, the history is damaged or was written by a newer
// version, or there was a panic.
func Permanent(err error) bool {
	if model, ok := errors.AsType[*converse.ModelError](err); ok {
		return !model.Retryable
	}
	_, panicked := errors.AsType[*contain.Panic](err)
	_, corrupt := errors.AsType[*history.CorruptError](err)
	return panicked || corrupt || errors.Is(err, canister.ErrNewer)
}
