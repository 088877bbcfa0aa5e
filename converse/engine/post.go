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
	"github.com/consort-go/consort/converse/internal/appending"
	"github.com/consort-go/consort/converse/internal/compaction"
	"github.com/consort-go/consort/converse/internal/opening"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/internal/sender"
	"github.com/consort-go/consort/invoker"
)

// Post appends a message to the log of a conversation, unless it is there already. The
// Send of an engine begins with it. If the log is empty, open creates the conversation,
// so that its instructions come first; a nil open adds none. A missing ID and
// time are filled in.
//
// The message is already there if a message with the same ID is. Post searches
// the canisters appended since the time of the message, with [Skew] to allow for
// differing clocks, or the whole conversation if the message has an ID and no
// time. A caller that sends a message again must leave both unchanged. A message whose time is
// more than Skew ahead of now is refused, because it could not be found again.
//
// An error that has [ErrBusy] or [ErrWaiting] in its chain says that nothing was
// appended because calls lack results: they must be completed or answered first. A
// running request to the model does not prevent this: the message enters, and that
// exchange ends with a conflict and is repeated with the message.
func Post(ctx context.Context, log history.Log, open converse.OpenFunc, conversation string, message canister.User, now time.Time) error {
	if len(message.Content) == 0 {
		return errors.New("engine: a message needs content")
	}
	if err := history.CheckID(conversation); err != nil {
		return err
	}
	if message.Time.After(now.Add(Skew)) {
		return invoker.Failf(invoker.InvalidArguments, "The time of the message is %v ahead of the clock of this machine, and at most %v is possible. Send it with the right time, or without one.",
			message.Time.Sub(now).Round(time.Second), Skew)
	}
	since := message.Time.Add(-Skew)
	if message.ID == "" {
		message.ID, since = rand.Text(), now
	}
	if message.Time.IsZero() {
		message.Time = now
	}
	if err := sender.Mark(ctx, &message); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	for begins := 0; ; {
		start, canisters, err := LastTurn(ctx, log, conversation, since)
		if err != nil {
			return err
		}
		if there, err := hasMessage(canisters, message); there || err != nil {
			return err
		}
		if pending := canister.Pending(canisters); len(pending) > 0 {
			return busyError(conversation, canisters, pending, now)
		}
		if len(canisters) == 0 && ctx.Value(mustExist{}) != nil {
			return fmt.Errorf("engine: the conversation %q is empty or was deleted: %w", conversation, history.ErrNotFound)
		}
		if len(canisters) > 0 || open == nil {
			if err = appending.Append(ctx, log, conversation, start+len(canisters), message); !isConflict(err) {
				return err
			}
			continue
		}
		if begins++; begins > maxBegins {
			return fmt.Errorf("engine: the conversation %q accepted the message, but the message is not in the log: set Options.Log of the conversation", conversation)
		}
		if err = begin(ctx, open, conversation, message); err != nil && !isConflict(err) && !begun(ctx, log, conversation) {
			return err
		}
	}
}

// MustExist returns a context for [Post], and for the Send of an engine, that forbids them to begin
// a conversation: if its log is empty, for example because the conversation was deleted
// meanwhile, the error has [history.ErrNotFound] in its chain.
func MustExist(ctx context.Context) context.Context {
	return context.WithValue(ctx, mustExist{}, true)
}

// mustExist is the key of the value that MustExist sets.
type mustExist struct{}

// Skew is the maximum difference between the clocks of the processes that write to one
// log.
const Skew = time.Hour

// maxBegins is how often Post tries to begin a conversation that is then missing
// because it was deleted.
const maxBegins = 3

// begun reports whether another writer has begun the conversation meanwhile.
func begun(ctx context.Context, log history.Log, conversation string) bool {
	for _, err := range log.Read(ctx, conversation, 0) {
		return err == nil
	}
	return false
}

// begin creates a conversation and appends its instructions, if it has any, and the
// message.
func begin(ctx context.Context, open converse.OpenFunc, conversation string, message canister.User) error {
	conv, err := opening.Open(ctx, open, conversation)
	if err != nil {
		return err
	}
	return errors.Join(conv.Add(ctx, message), conv.Close(context.WithoutCancel(ctx)))
}

// LastTurn returns the end of a conversation: at least its whole last turn and
// everything appended since an instant. It also returns the start of the first of these
// canisters, which is the number of canisters before it. An engine needs nothing else
// to decide what to do: this is enough for [converse.Next], [waits.Open] and
// [canister.Pending]. See [history.Tail] for the cost.
func LastTurn(ctx context.Context, log history.Log, conversation string, since time.Time) (int, []canister.Canister, error) {
	start, canisters, err := history.Tail(ctx, log, conversation, func(_ int, end []canister.Canister) bool {
		return compaction.LastUserID(end) != "" && beginsBefore(end, since)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("engine: the log cannot be read: %w", err)
	}
	return start, canisters, nil
}

// beginsBefore reports whether the canisters before the given ones were appended before
// an instant. It uses the first canister that a turn has written: the time of other
// kinds is set by their author, maybe long before they were appended.
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

// hasMessage reports whether a message is already in a history.
func hasMessage(canisters []canister.Canister, message canister.User) (bool, error) {
	for _, c := range canisters {
		if c.Header().ID != message.ID {
			continue
		}
		if c.Kind() == canister.KindUser {
			return true, nil
		}
		return false, invoker.Failf(invoker.Conflict, "The message has the ID %q, which the conversation's %s already has. Send it with another one.", message.ID, c.Kind())
	}
	return false, nil
}

// busyError returns the error that names the calls that a message would have to wait
// for.
func busyError(conversation string, canisters []canister.Canister, pending []canister.Invocation, now time.Time) error {
	waits := waits.Open(conversation, canisters, now)
	made := map[string]bool{} // invocations that wait for the calls that they have made
	for _, i := range pending {
		made[i.Parent] = true
	}
	waiting := func(i canister.Invocation) bool {
		if made[i.ID] {
			return true
		}
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
