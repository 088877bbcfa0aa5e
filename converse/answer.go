// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/internal/bounds"
	"github.com/consort-go/consort/internal/contain"
	"github.com/consort-go/consort/internal/textcut"
)

// ErrNotWaiting is in the chain of the error of [Answer] for a wait that is not open:
// it does not exist, it has an answer, its deadline has passed, or the conversation has
// gone on without it.
var ErrNotWaiting = errors.New("converse: nobody waits for that")

// Waiting returns the open waits of a history at a time: waits of invocations without a
// result, and waits of the conversation as a whole, that have no answer and whose
// deadline is later, in their order. Waits before the last message of the model are not
// open: the conversation has gone on. The cost depends on the canisters after that
// message. [WaitingIn] also leaves out waits that a fork asks anew.
func Waiting(history []canister.Canister, now time.Time) []canister.Wait {
	return WaitingIn("", history, now)
}

// WaitingIn is [Waiting] for the conversation with the given identity. It leaves out
// the waits of a conversation that it was forked from, since their answers would not
// hold in the fork: when carried on, the fork asks again. Timers go on in a fork.
func WaitingIn(conversation string, history []canister.Canister, now time.Time) []canister.Wait {
	open := map[string]bool{"": true}
	for _, invocation := range canister.Pending(history) {
		open[invocation.ID] = true
	}
	history = tail(history)
	answered := map[string]bool{}
	for _, c := range history {
		if answer, ok := c.(canister.Answer); ok {
			answered[answer.Wait] = true
		}
	}
	var waits []canister.Wait
	for _, c := range history {
		wait, ok := c.(canister.Wait)
		if ok && !answered[wait.ID] && open[wait.Invocation] && now.Before(wait.Deadline) && !inherited(wait, conversation) {
			waits = append(waits, wait)
		}
	}
	return waits
}

// inherited reports whether a wait belongs to another conversation.
func inherited(wait canister.Wait, conversation string) bool {
	return conversation != "" && wait.Conversation != "" && wait.Conversation != conversation && wait.For != canister.WaitTimer
}

// Answer answers a wait of a conversation in a log, from any process; the process that
// runs the conversation carries on with [Conversation.Continue]. The answer names the
// wait and the person who gives it (By); a missing identity and time are filled in.
// Giving the same answer again, by its identity, is not an error.
//
// An error that has [ErrNotWaiting] in its chain means that the wait is not open. It is
// also an error if the verdict does not answer the wait, if By may not answer it, if
// the answer is larger than [MaxAnswer], if its time is not before the deadline, or if
// log is nil. Answer appends the answer or appends nothing.
func Answer(ctx context.Context, log history.Log, conversation string, answer canister.Answer, now time.Time) error {
	if contain.IsNil(log) {
		return errors.New("converse: Answer needs a log")
	}
	if answer.ID == "" {
		answer.ID = rand.Text()
	}
	if answer.Time.IsZero() {
		answer.Time = now
	}
	given := func(c canister.Canister) bool {
		there, ok := c.(canister.Answer)
		return ok && there.ID == answer.ID && there.Wait == answer.Wait
	}
	for {
		place, canisters, err := history.Tail(ctx, log, conversation, func(_ int, end []canister.Canister) bool {
			return len(tail(end)) < len(end)
		})
		if err != nil {
			return fmt.Errorf("converse: the log cannot be read: %w", err)
		}
		if slices.ContainsFunc(canisters, given) {
			return nil
		}
		if err := checkAnswer(conversation, canisters, answer, now); err != nil {
			// The conversation may have gone on since it was given.
			if was, _, unread := before(ctx, log, conversation, place, given); was != nil || unread != nil {
				return unread
			}
			return err
		}
		err = log.Append(ctx, conversation, place+len(canisters), answer)
		if _, conflict := errors.AsType[*history.ConflictError](err); !conflict {
			return err
		}
	}
}

// checkAnswer returns why an answer is not valid for the open waits of a history.
func checkAnswer(conversation string, history []canister.Canister, answer canister.Answer, now time.Time) error {
	waits := WaitingIn(conversation, history, now)
	i := slices.IndexFunc(waits, func(w canister.Wait) bool { return w.ID == answer.Wait })
	if i < 0 {
		return fmt.Errorf("%w: wait %s", ErrNotWaiting, textcut.Bytes(answer.Wait, bounds.MaxQuoted))
	}
	wait := waits[i]
	switch verdicts := wait.For.Answers(); {
	case !slices.Contains(verdicts, answer.Verdict):
		return fmt.Errorf("converse: the verdict %s does not answer a wait for %s: want one of %q", textcut.Bytes(string(answer.Verdict), bounds.MaxQuoted), wait.For, verdicts)
	case answer.By == "":
		return errors.New("converse: an answer has to say who gives it")
	case wait.Who != "" && answer.By != wait.Who:
		return fmt.Errorf("converse: the wait %s is for %s to answer, and not for %s", textcut.Bytes(wait.ID, bounds.MaxQuoted), textcut.Bytes(wait.Who, bounds.MaxQuoted), textcut.Bytes(answer.By, bounds.MaxQuoted))
	case !answer.Time.IsZero() && !answer.Time.Before(wait.Deadline): // it would not hold
		return fmt.Errorf("converse: the answer says that it was given at %s, and the deadline of the wait %s is %s", answer.Time.UTC().Format(time.RFC3339Nano), textcut.Bytes(wait.ID, bounds.MaxQuoted), wait.Deadline.UTC().Format(time.RFC3339Nano))
	case wait.For == canister.WaitApproval && !answer.Time.IsZero() && expiry(wait, answer).Before(now): // the approval would be asked for again
		return fmt.Errorf("converse: the answer says that it was given at %s, and has expired: an approval holds for as long as there was to give it", answer.Time.UTC().Format(time.RFC3339Nano))
	case answer.Verdict == canister.VerdictChange && !isObject(answer.Arguments):
		return errors.New("converse: the changed arguments have to be one JSON object")
	case answer.Verdict == canister.VerdictAccept && len(answer.Arguments) > 0 && !isObject(answer.Arguments):
		return errors.New("converse: what the person answers has to be one JSON object, or nothing")
	}
	return fits(answer)
}

// MaxAnswer is the maximum size in bytes of a [canister.Answer] in its JSON form, and
// of arguments that an approval changes.
const MaxAnswer = 1 << 20

// fits returns why an answer cannot be appended. An answer is never cut: its author can
// give another one.
func fits(answer canister.Answer) error {
	line, err := canister.Marshal(answer)
	switch {
	case err != nil:
		return fmt.Errorf("converse: the answer cannot be written down: %w", err)
	case len(line) > MaxAnswer:
		return fmt.Errorf("converse: the answer has %d bytes in its JSON form, and an answer may have %d: give a shorter one", len(line), MaxAnswer)
	}
	return nil
}
