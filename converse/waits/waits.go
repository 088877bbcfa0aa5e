// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/appending"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/logtail"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/textcut"
	"github.com/consort-go/consort/invoker"
)

// ErrNotOpen is in the chain of the error of [Answer] for a wait that is not open:
// it does not exist, it has an answer, its deadline has passed, or the conversation has
// gone on without it.
var ErrNotOpen = calls.ErrNotOpen

// MaxAnswer is the maximum size in bytes of a [canister.Answer] in its JSON form, and
// of arguments that an approval changes.
const MaxAnswer = calls.MaxAnswer

// Open returns the open waits of a history at a time: waits of invocations without a
// result, and waits of the conversation as a whole, that have no answer and whose
// deadline is later, in their order. Waits before the last message of the model are not
// open: the conversation has gone on. The cost depends on the canisters after that
// message.
//
// Conversation is the ID of the conversation. The waits of a conversation that it
// was forked from are left out, since their answers would not hold in the fork: when
// carried on, the fork asks again. Timers go on in a fork. An empty ID includes
// all waits.
func Open(conversation string, history []canister.Canister, now time.Time) []canister.Wait {
	return calls.Waits(conversation, history, now)
}

// Answer answers a wait of a conversation in a log, from any process; the process that
// runs the conversation carries on with [converse.Conversation.Continue]. The answer names the
// wait and the person who gives it (By); a missing ID and time are filled in.
// Giving the same answer again, by its ID, is not an error.
//
// An error that has [ErrNotOpen] in its chain means that the wait is not open. It is
// also an error if the verdict does not answer the wait, if By may not answer it, if
// the answer is larger than [MaxAnswer], if its time is not before the deadline, if
// another canister of the conversation has its ID (an [invoker.Failure] with the
// code CONFLICT), or if log is nil. Answer appends the answer or appends nothing. To compare a given ID, it reads the
// whole conversation.
func Answer(ctx context.Context, log history.Log, conversation string, answer canister.Answer, now time.Time) error {
	if contain.IsNil(log) {
		return errors.New("waits: Answer needs a log")
	}
	named := answer.ID != ""
	if !named {
		answer.ID = rand.Text()
	}
	if answer.Time.IsZero() {
		answer.Time = now
	}
	hasID := func(c canister.Canister) bool { return c.Header().ID == answer.ID }
	given := func(c canister.Canister) bool {
		there, ok := c.(canister.Answer)
		return ok && hasID(c) && there.Wait == answer.Wait
	}
	for {
		place, canisters, err := history.Tail(ctx, log, conversation, func(_ int, end []canister.Canister) bool {
			return len(calls.Tail(end)) < len(end)
		})
		if err != nil {
			return fmt.Errorf("waits: the log cannot be read: %w", err)
		}
		if slices.ContainsFunc(canisters, given) {
			return nil
		}
		if err := calls.CheckAnswer(conversation, canisters, answer, now); err != nil {
			// The conversation may have gone on since it was given.
			if was, _, unread := logtail.Before(ctx, log, conversation, place, given); was != nil || unread != nil {
				return unread
			}
			return err
		}
		if named {
			other, _, err := logtail.Before(ctx, log, conversation, place+len(canisters), hasID)
			if err != nil {
				return err
			}
			if other != nil {
				return invoker.Failf(invoker.Conflict, "The answer has the ID %q, which the conversation's %s already has.", textcut.Bytes(answer.ID, bounds.MaxQuoted), other.Kind())
			}
		}
		err = appending.Append(ctx, log, conversation, place+len(canisters), answer)
		if _, conflict := errors.AsType[*history.ConflictError](err); !conflict {
			return err
		}
	}
}

// Question returns the question of a wait for an elicitation.
func Question(wait canister.Wait) (*invoker.ElicitRequest, error) {
	var form calls.Question
	if err := json.Unmarshal(wait.Question, &form); err != nil {
		return nil, fmt.Errorf("waits: the wait %s has no question: %w", textcut.Bytes(wait.ID, bounds.MaxQuoted), err)
	}
	return &invoker.ElicitRequest{Server: form.Server, Key: form.Key, Message: form.Message, Schema: form.Schema, URL: form.URL}, nil
}
