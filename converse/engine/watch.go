// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/internal/notes"
)

// defaultPoll is how often a [Watcher] reads the log.
const defaultPoll = time.Second

// Watcher implements the Watch of an engine. It combines a log, which is complete, and
// a stream, which is fast.
type Watcher struct {
	Log history.Log
	// Stream may be nil; there are no deltas then.
	Stream Stream
	// Poll is how often the log is read when the stream is silent; default 1 s.
	Poll time.Duration
	// Next returns the next step of a conversation if its canisters alone do not
	// determine it, because it depends on limits. Watchers call it again while the turn
	// may go on: after Poll if the error is [ErrBusy], otherwise after ten times as
	// long. If Next is nil, watchers that start after a limit has ended the turn, or
	// watch another process, do not see the end.
	Next func(ctx context.Context, conversation string) (converse.Command, error)
	// Failed returns the failure, or the budget, that ended the work on a conversation, if
	// there was one. If Failed is nil, watchers that start after that, or whose stream has
	// lost it, do not see it. It is called at each Poll, with the length of the log. An end is
	// reported once: again only if its Attempt is greater than each one reported before. It is
	// not reported if Ended.Turn, which may be empty, is not the last turn. Each process with
	// [Options.Others] tries such a turn again by itself, and each of these attempts can
	// have an end.
	Failed func(conversation string, length int) (Ended, bool)
}

// Watch implements [Engine.Watch]. It may be called concurrently.
func (w *Watcher) Watch(ctx context.Context, conversation string, after int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		v := &view{Watcher: w, ctx: ctx, conversation: conversation, after: after, yield: yield, reported: -1}
		if err := v.run(); err != nil && !v.left {
			yield(nil, err)
		}
	}
}

// view is the state of one Watch.
type view struct {
	*Watcher
	ctx          context.Context
	conversation string
	after        int
	yield        func(Event, error) bool

	left     bool   // the caller has left the loop
	position int    // number of canisters read
	last     string // identity of the last one read, if known
	turn     []canister.Canister
	polled   int   // the position at the last check for the end of the turn
	pause    int   // polls until the next check at this position; none if it is not positive
	reported int   // the position of the last reported end, except failures
	byBudget bool  // that end was one by a budget
	attempt  int64 // the latest of the turn
	failed   int64 // the highest attempt whose failure, or end by a budget, was reported
	missed   int   // deltas lost and not reported yet
}

func (v *view) run() error {
	deltas, err := v.subscribe()
	if err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		return err
	}
	if err := v.poll(); err != nil {
		return err
	}
	ticker := time.NewTicker(cmp.Or(v.Poll, defaultPoll))
	defer ticker.Stop()
	for !v.left {
		var err error
		select {
		case <-v.ctx.Done():
			err = context.Cause(v.ctx)
		case delta, open := <-deltas:
			if !open {
				deltas = nil // the log still works
				continue
			}
			err = v.delta(delta)
		case <-ticker.C:
			err = v.poll()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *view) subscribe() (<-chan Delta, error) {
	if v.Stream == nil {
		return nil, nil
	}
	deltas, err := v.Stream.Subscribe(v.ctx, v.conversation)
	if err != nil {
		return nil, v.failure(fmt.Sprintf("the stream of %q", v.conversation), err)
	}
	return deltas, nil
}

// emit yields an event.
func (v *view) emit(event Event) {
	v.left = v.left || !v.yield(event, nil)
}

// begin sets the position to the last user message before the first event to yield,
// because the end of that turn may have to be reported as well.
func (v *view) begin() error {
	if v.after <= 0 {
		return nil
	}
	position, end, err := history.Tail(v.ctx, beginning{v.Log, v.after}, v.conversation, func(_ int, end []canister.Canister) bool {
		return compaction.LastUserID(end) != ""
	})
	if err != nil {
		return v.failure("the log cannot be read", err)
	}
	if position+len(end) < v.after {
		return v.deleted()
	}
	v.position = position + max(0, compaction.LastUser(end))
	return nil
}

// beginning is a log that has only the first canisters of a conversation.
type beginning struct {
	history.Log
	length int
}

// Read implements [history.Log].
func (b beginning) Read(ctx context.Context, conversation string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		if after >= b.length {
			return
		}
		for c, err := range b.Log.Read(ctx, conversation, after) {
			if after++; !yield(c, err) || after == b.length {
				return
			}
		}
	}
}

// Info returns the length for [history.Tail].
func (b beginning) Info(ctx context.Context, conversation string) (info history.Info, err error) {
	info.Length = b.length
	if log, ok := b.Log.(interface {
		Info(ctx context.Context, conversation string) (history.Info, error)
	}); ok {
		info, err = log.Info(ctx, conversation)
	}
	info.Length = min(info.Length, b.length)
	return info, err
}

// deleted returns the error about a conversation that has lost canisters.
func (v *view) deleted() error {
	return fmt.Errorf("engine: the conversation %q was deleted: %w", v.conversation, history.ErrNotFound)
}

// failure returns the error of the context if it has ended, otherwise err after text.
func (v *view) failure(text string, err error) error {
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	return fmt.Errorf("engine: %s: %w", text, err)
}

// poll reads the log, and reports the end of the turn if it is over.
func (v *view) poll() error {
	if err := v.read(); err != nil {
		return err
	}
	v.pause--
	again := v.position == v.polled
	isNew := false
	if again && v.pause != 0 {
		if _, isNew = v.newFailure(again); !isNew {
			return nil
		}
	}
	for v.polled = v.position; !v.left && (isNew || v.reported != v.position) && !v.over(); again, isNew = false, false {
		ended, is := v.knownEnd(again)
		if !is {
			return nil
		}
		// The result may be about canisters that were added meanwhile.
		if err := v.read(); err != nil {
			return err
		}
		if v.position == v.polled {
			v.end(ended)
			return nil
		}
		v.polled = v.position
	}
	return nil
}

// slowly is the number of polls between checks that may have to open the conversation.
const slowly = 10

// newFailure returns a failure that was not reported, for example because the stream has lost it.
// Again says that this position was checked before: a failure without an attempt is not new then.
func (v *view) newFailure(again bool) (Ended, bool) {
	if v.Failed == nil {
		return Ended{}, false
	}
	ended, has := v.Failed(v.conversation, v.position)
	return ended, has && cmp.Or(ended.Turn, v.id()) == v.id() && (ended.Attempt > v.failed || ended.Attempt == 0 && !again)
}

// knownEnd returns an end that the canisters do not show, and schedules the next check. Again
// says that this position was checked before.
func (v *view) knownEnd(again bool) (Ended, bool) {
	v.pause = slowly
	if failed, has := v.newFailure(again); has {
		return failed, true
	}
	if v.Next == nil {
		return Ended{}, false
	}
	command, err := v.Next(v.ctx, v.conversation)
	if errors.Is(err, ErrBusy) {
		v.pause = 1
	}
	done, is := command.(converse.Done)
	return Ended{Reason: done.Reason}, err == nil && is // the worker reports errors
}

// read yields the canisters of the log after the position. It reads the last canister
// again: if that is missing, the conversation was deleted.
func (v *view) read() error {
	missing := v.position > 0
	for c, err := range v.Log.Read(v.ctx, v.conversation, max(0, v.position-1)) {
		switch {
		case err != nil:
			return v.failure("the log cannot be read", err)
		case missing && v.last != "" && c.Header().ID != v.last: // it was begun anew
			return v.deleted()
		case missing:
			missing = false
			continue
		}
		if v.add(c); v.left {
			return nil
		}
	}
	if missing {
		return v.deleted()
	}
	return nil
}

// add yields one canister of the log.
func (v *view) add(c canister.Canister) {
	if c.Kind() == canister.KindUser {
		if !v.over() {
			v.superseded(c.Header().ID)
		}
		if v.left {
			return
		}
		v.turn, v.attempt = v.turn[:0], 0
	}
	v.turn, v.last = append(v.turn, c), c.Header().ID
	if v.position++; v.position > v.after {
		v.emit(Added{Position: v.position, Canister: c})
	}
}

// superseded reports that a message has entered before the turn was over.
func (v *view) superseded(by string) {
	if v.id() != "" && v.position >= v.after {
		v.end(Ended{Superseded: by})
	}
}

// over emits the end of the turn if the canisters show it regardless of limits, and
// reports whether they do.
func (v *view) over() bool {
	if v.id() == "" || v.position < v.after {
		return false
	}
	switch command := converse.Next(v.turn, converse.Policy{Conversation: v.conversation}, time.Now()).(type) {
	case converse.Await:
		v.end(Ended{Turn: v.id(), Reason: converse.ReasonWaiting, Waits: calls.WaitIDs(command.Waits)})
		return true
	case converse.Done:
		if !command.Reason.Limited() {
			limit := converse.Reason(notes.Limit(v.turn)) // the message is a final answer then
			v.end(Ended{Turn: v.id(), Reason: cmp.Or(limit, command.Reason)})
			return true
		}
	}
	return false
}

// id returns the ID of the turn's User canister, or "".
func (v *view) id() string { return compaction.LastUserID(v.turn) }

// end emits the end of a turn once for each position, and a failure or the end by a budget once for each
// attempt, or each time if that is not known. After the end by a budget, the turn can have another end at the same
// position, when its message was sent again.
func (v *view) end(ended Ended) {
	ended.Turn = cmp.Or(ended.Turn, v.id())
	isKnown := ended.Attempt != 0 && ended.Attempt == v.failed // from both the stream and Failed; the clocks of processes differ
	v.failed = max(v.failed, ended.Attempt)
	switch {
	case isKnown:
		return
	case ended.Error != "" && ended.Again.IsZero():
		v.pause = 0 // nothing happens before the log grows
	case ended.Error == "" && ended.Attempt == 0 && v.reported == v.position && (ended.Superseded != "" || !v.byBudget):
		return
	case ended.Error == "":
		v.reported, v.byBudget = v.position, ended.Attempt != 0
	}
	v.emit(ended)
}

// delta yields a delta at its position, unless it is superseded.
func (v *view) delta(d Delta) error {
	v.missed += d.Missed
	if d.Position > v.position {
		if err := v.read(); err != nil || v.left {
			return err
		}
	}
	switch {
	case d.Ended != nil && d.Ended.Error == "" && d.Position < v.position:
		return v.poll() // the log has grown since then: a wait may have been answered
	case d.Ended != nil:
		if d.Ended.Turn == v.id() || d.Position >= v.position {
			v.end(*d.Ended)
		}
	case d.Event == nil || d.Position != v.position:
	case d.Turn == v.id() && d.Attempt < v.attempt:
	default:
		v.attempt = d.Attempt
		d.Missed, v.missed = v.missed, 0
		v.emit(d)
	}
	return nil
}
