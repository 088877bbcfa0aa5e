// SPDX-License-Identifier: Apache-2.0

// Package elsewhere lets an engine prevent that a conversation takes up calls that another
// process may be making.
package elsewhere

import (
	"context"
	"fmt"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/internal/calls"
	"github.com/consort-go/consort/converse/internal/compaction"
)

// Error says that another process may be making a call of the conversation, or has just
// appended a message to it.
type Error struct{ Until time.Time }

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("converse: another process may be working on the conversation until %v", e.Until)
}

type key struct{}

// limit applies to one conversation: its tools, which may run others, have the same context.
type limit struct {
	conversation string
	timeout      time.Duration
}

// With returns a context for the work of a conversation, which then fails with an [Error]
// if another process has begun a call and the timeout has not passed since.
func With(ctx context.Context, conversation string, timeout time.Duration) context.Context {
	return context.WithValue(ctx, key{}, limit{conversation, timeout})
}

type messageKey struct{}

// message is the last message of a conversation.
type message struct{ conversation, id string }

// For returns a context for the work of a conversation that is done for the author of the last
// message of a history. The work fails with an [Error], before it does anything, if another
// message has entered meanwhile.
func For(ctx context.Context, conversation string, history []canister.Canister) context.Context {
	return context.WithValue(ctx, messageKey{}, message{conversation, compaction.LastUserID(history)})
}

// checkMessage returns an [Error] if the last message is not the one of the context.
func checkMessage(ctx context.Context, conversation string, history []canister.Canister) error {
	want, ok := ctx.Value(messageKey{}).(message)
	if !ok || want.conversation != conversation {
		return nil
	}
	if compaction.LastUserID(history) != want.id {
		return &Error{Until: time.Now()}
	}
	return nil
}

// Check returns an [Error] in two cases: the last message of a history is not the one of the
// context, or a call may be under way elsewhere. Added are the canisters of the history that
// the conversation has just read from its log. The intent of such a call is among them; the
// call has no result, does not wait, and none of the calls that it has made itself is pending.
// When these have their results, it is made again. Unmade has the conversation's own intents.
func Check(ctx context.Context, conversation string, history, added []canister.Canister, unmade map[string]bool) error {
	if err := checkMessage(ctx, conversation, history); err != nil {
		return err
	}
	limit, ok := ctx.Value(key{}).(limit)
	if !ok || limit.conversation != conversation {
		return nil
	}
	begun := begunIn(conversation, history, added, unmade)
	pending := canister.Pending(history)
	for _, invocation := range pending {
		delete(begun, invocation.Parent)
	}
	var until time.Time
	for _, invocation := range pending {
		if at, ok := begun[invocation.ID]; ok && at.Add(limit.timeout).After(until) {
			until = at.Add(limit.timeout)
		}
	}
	if time.Now().Before(until) {
		return &Error{Until: until}
	}
	return nil
}

// begunIn returns when calls have begun according to added, by their invocations. An intent with the
// key of another conversation is of the conversation that this one was forked from.
func begunIn(conversation string, history, added []canister.Canister, unmade map[string]bool) map[string]time.Time {
	parents := map[string]string{} // by the invocation
	for _, c := range history {
		if c, is := c.(canister.Invocation); is && c.Parent != "" {
			parents[c.ID] = c.Parent
		}
	}
	begun := map[string]time.Time{}
	for _, c := range added {
		switch c := c.(type) {
		case canister.Intent:
			if !unmade[c.ID] && (c.Key == "" || c.Key == calls.Key(conversation, c.Invocation)) {
				begun[c.Invocation] = c.Time
			}
		case canister.Wait: // the call has ended, to be made again with the answer
			delete(begun, c.Invocation)
		case canister.Result:
			if parent := parents[c.Invocation]; !begun[parent].IsZero() {
				begun[parent] = c.Time
			}
		}
	}
	return begun
}
