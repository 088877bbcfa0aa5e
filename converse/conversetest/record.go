// SPDX-License-Identifier: Apache-2.0

package conversetest

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
)

// Recorder wraps a conversation and records its turns. Like the conversation, it runs one
// turn at a time.
type Recorder struct {
	talk   *converse.Conversation
	roster *ensemble.Roster

	tools []toolForm
	turns []recorded
	seen  int // length of the history that the recorded turns cover
}

// recorded is one recorded turn.
type recorded struct {
	happened           []happening
	history            []canister.Canister // after the turn
	begin, given, ends int                 // new ones: [begin:given] from outside, [given:ends] by the turn
}

// happening is an event, or an action of the caller.
type happening struct {
	event converse.Event
	did   string
}

// Record returns a recorder for the turns of talk that run through the recorder's Send
// and Continue. roster is the roster of the conversation. If it is nil, the transcript
// has no tools.
func Record(talk *converse.Conversation, roster *ensemble.Roster) *Recorder {
	return &Recorder{talk: talk, roster: roster}
}

// Send calls Send of the conversation and records the turn.
func (r *Recorder) Send(ctx context.Context, content ...canister.Content) iter.Seq2[converse.Event, error] {
	return r.record(ctx, r.talk.Send(ctx, content...), true)
}

// Continue calls Continue of the conversation and records the turn.
func (r *Recorder) Continue(ctx context.Context) iter.Seq2[converse.Event, error] {
	return r.record(ctx, r.talk.Continue(ctx), false)
}

// Transcript returns the turns recorded so far. It returns an error if a canister has no
// JSON form.
func (r *Recorder) Transcript() (*Transcript, error) {
	t := &Transcript{tools: slices.Clone(r.tools)}
	for i, seen := range r.turns {
		turn, err := seen.turn()
		if err != nil {
			return nil, fmt.Errorf("conversetest: turn %d: %w", i+1, err)
		}
		t.turns = append(t.turns, turn)
	}
	return t, nil
}

// record passes the events of run on. It completes the record of the turn when run has
// ended, no matter how the caller leaves the loop.
func (r *Recorder) record(ctx context.Context, run iter.Seq2[converse.Event, error], sends bool) iter.Seq2[converse.Event, error] {
	return func(yield func(converse.Event, error) bool) {
		r.noteTools(ctx)
		begin := len(r.talk.History())
		r.turns = append(r.turns, recorded{begin: r.seen})
		turn := &r.turns[len(r.turns)-1]
		defer func() { r.close(turn, begin, sends) }()
		over := turn.noteEnd(ctx, false)
		for event, err := range run {
			if err != nil {
				turn.happened = append(turn.happened, happening{did: failed + err.Error()})
				yield(nil, err)
				return
			}
			turn.happened = append(turn.happened, happening{event: event})
			if !yield(event, nil) {
				turn.happened = append(turn.happened, happening{did: leaves})
				return
			}
			over = turn.noteEnd(ctx, over)
		}
	}
}

// noteEnd records once that the caller has cancelled the context.
func (r *recorded) noteEnd(ctx context.Context, noted bool) bool {
	if !noted && ctx.Err() != nil {
		r.happened = append(r.happened, happening{did: cancels})
		return true
	}
	return noted
}

// close records the canisters that the turn added to the history. Those that Send added
// itself end with the user's message.
func (r *Recorder) close(turn *recorded, begin int, sends bool) {
	turn.history = r.talk.History()
	turn.given, turn.ends = begin, len(turn.history)
	if sends {
		for i, c := range turn.history[begin:] {
			if c.Kind() == canister.KindUser {
				turn.given = begin + i + 1
				break
			}
		}
	}
	r.seen = turn.ends
}

// noteTools records the tools of the roster, as soon as they are available.
func (r *Recorder) noteTools(ctx context.Context) {
	if r.roster == nil || r.tools != nil {
		return
	}
	catalog, err := r.roster.Catalog(ctx)
	if err != nil {
		return // the turn reports it
	}
	for _, tool := range catalog.Tools() {
		definition := tool.Definition()
		r.tools = append(r.tools, toolForm{
			Name:        tool.Name(),
			Ensemble:    tool.Ensemble().Name(),
			Tool:        definition.Name,
			ReadOnly:    definition.Hints.ReadOnly,
			Idempotent:  definition.Hints.Idempotent,
			Destructive: definition.Hints.Destructive,
			OpenWorld:   definition.Hints.OpenWorld,
			Exclusive:   definition.Exclusive,
		})
	}
}

// turn converts the record to the form that is the same in every run.
func (r *recorded) turn() (turn, error) {
	names := newAliases(r.history)
	lines, err := names.lines(r.happened)
	if err != nil {
		return turn{}, err
	}
	t := turn{events: lines}
	for i, c := range r.history[r.begin:r.ends] {
		c = names.canister(c)
		if _, err := canister.Marshal(c); err != nil {
			return turn{}, err
		}
		if r.begin+i < r.given {
			t.given = append(t.given, c)
		} else {
			t.added = append(t.added, c)
		}
	}
	return t, nil
}
