// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
)

// Post puts a message into the log of a conversation, or finds it there: what
// the Send of an engine begins with. If the log is empty, open makes the
// conversation, so that its instructions come first; a nil open does without. An
// identity and a time that are missing are filled in.
//
// The message is there already if one of its identity is. It is looked for among
// what was appended since its time, with [Skew] for clocks that differ; in the whole
// conversation if it has an identity and no time. Who sends a message once more
// leaves both as they were.
//
// An error that has [ErrBusy] or [ErrWaiting] in its chain says that nothing was
// appended since calls lack their results: somebody has to work, or to answer,
// first. Who is only asking the model is not in the way: the message enters, and
// that exchange ends with a conflict and is made again with the message.
func Post(ctx context.Context, log history.Log, open converse.OpenFunc, conversation string, message canister.User, now time.Time) error {
	if len(message.Content) == 0 {
		return errors.New("engine: a message needs content")
	}
	if err := history.CheckID(conversation); err != nil {
		return err
	}
	since := message.Time.Add(-Skew)
	if message.ID == "" {
		message.ID, since = rand.Text(), now
	}
	if message.Time.IsZero() {
		message.Time = now
	}
	for begins := 0; ; {
		place, canisters, err := LastTurn(ctx, log, conversation, since)
		if err != nil {
			return err
		}
		if there, err := said(canisters, message); there || err != nil {
			return err
		}
		if pending := canister.Pending(canisters); len(pending) > 0 {
			return inTheWay(conversation, canisters, pending, now)
		}
		if len(canisters) > 0 || open == nil {
			if err = log.Append(ctx, conversation, place+len(canisters), message); !isConflict(err) {
				return err
			}
			continue
		}
		if begins++; begins > maxBegins {
			return fmt.Errorf("engine: the conversation %q took the message, and it is not in the log: give its Options the Log", conversation)
		}
		if err = begin(ctx, open, conversation, message); err != nil && !isConflict(err) && !begun(ctx, log, conversation) {
			return err
		}
	}
}

// Skew is by how much the clocks of those who write into one log may differ.
const Skew = time.Hour

// maxBegins is how often a message begins a conversation that is not there then,
// since somebody deletes it.
const maxBegins = 3

// begun reports whether somebody else has begun a conversation meanwhile.
func begun(ctx context.Context, log history.Log, conversation string) bool {
	for _, err := range log.Read(ctx, conversation, 0) {
		return err == nil
	}
	return false
}

// begin makes a conversation say its instructions, if it has any, and the message.
func begin(ctx context.Context, open converse.OpenFunc, conversation string, message canister.User) error {
	talk, err := opened(ctx, open, conversation)
	if err != nil {
		return err
	}
	return errors.Join(talk.Add(ctx, message), talk.Close(context.WithoutCancel(ctx)))
}

// opened makes a conversation, and says what is wrong with one that is another.
func opened(ctx context.Context, open converse.OpenFunc, id string) (*converse.Conversation, error) {
	talk, err := open(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("engine: the conversation cannot be opened: %w", err)
	}
	if talk != nil && talk.ID() == id {
		return talk, nil
	}
	err = fmt.Errorf("engine: the conversation that was opened is not %q: give its Options the ID", id)
	if talk != nil {
		err = errors.Join(err, talk.Close(context.WithoutCancel(ctx)))
	}
	return nil, err
}

// LastTurn returns the end of a conversation, in which its last turn is, whole, and
// what was appended since an instant; and the place of the first of these canisters,
// which is how many are before it. It is all that tells what an engine has to do:
// [converse.Next], [converse.Waiting] and [canister.Pending] need no more. See
// [history.Tail] for the cost.
func LastTurn(ctx context.Context, log history.Log, conversation string, since time.Time) (int, []canister.Canister, error) {
	place, canisters, err := history.Tail(ctx, log, conversation, func(_ int, end []canister.Canister) bool {
		return turnOf(end) != "" && beginsBefore(end, since)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("engine: the log cannot be read: %w", err)
	}
	return place, canisters, nil
}

// beginsBefore reports whether what stands before some canisters was appended before
// an instant. The first of them tells that a turn has written: the times of others
// are those of whoever said them, maybe long before they were appended.
func beginsBefore(canisters []canister.Canister, since time.Time) bool {
	for _, c := range canisters {
		switch at := c.Header().Time; c.Kind() {
		case canister.KindAssistant, canister.KindInvocation, canister.KindIntent, canister.KindWait, canister.KindResult:
			if !at.IsZero() {
				return at.Before(since)
			}
		}
	}
	return false
}

// said reports whether a message is in a history already.
func said(canisters []canister.Canister, message canister.User) (bool, error) {
	for _, c := range canisters {
		if c.Header().ID != message.ID {
			continue
		}
		if c.Kind() == canister.KindUser {
			return true, nil
		}
		return false, fmt.Errorf("engine: the message has the identity %q, which the conversation's %s has already", message.ID, c.Kind())
	}
	return false, nil
}

// inTheWay says what a message would have to wait for.
func inTheWay(conversation string, canisters []canister.Canister, pending []canister.Invocation, now time.Time) error {
	waits := converse.WaitingIn(conversation, canisters, now)
	waiting := func(i canister.Invocation) bool {
		return slices.ContainsFunc(waits, func(w canister.Wait) bool { return w.Invocation == i.ID })
	}
	if slices.ContainsFunc(pending, waiting) && !slices.ContainsFunc(pending, func(i canister.Invocation) bool { return !waiting(i) }) {
		return fmt.Errorf("%w: %q, for %s", ErrWaiting, waits[0].ID, waits[0].For)
	}
	return fmt.Errorf("%w: %q", ErrBusy, pending[0].ID)
}

func isConflict(err error) bool {
	_, conflict := errors.AsType[*history.ConflictError](err)
	return conflict
}
