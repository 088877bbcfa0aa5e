// SPDX-License-Identifier: Apache-2.0

// Package elsewhere lets an engine prevent that a conversation takes up calls that another
// process may be making.
package elsewhere

import (
	"context"
	"fmt"
	"sync"
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
	own          *Begun
}

// With returns a context for the work of a conversation, which then fails with an [Error]
// if another process has begun a call and the timeout has not passed since. Own has the calls
// that this process has begun in earlier work, and gets the new ones.
func With(ctx context.Context, conversation string, timeout time.Duration, own *Begun) context.Context {
	return context.WithValue(ctx, key{}, limit{conversation, timeout, own})
}

// Begun has the intents of the calls that a process has begun, by the conversation. The zero
// value is empty. It is safe for concurrent use.
type Begun struct {
	mu sync.Mutex
	of map[string]map[string]bool
}

// maxBegun bounds the conversations of a [Begun].
const maxBegun = 1024

// Forget removes the intents of a conversation.
func (b *Begun) Forget(conversation string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, conversation)
}

func (b *Begun) add(conversation, intent string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other := range b.of {
		if len(b.of) < maxBegun || b.of[conversation] != nil {
			break
		}
		delete(b.of, other)
	}
	if b.of == nil {
		b.of = map[string]map[string]bool{}
	}
	if b.of[conversation] == nil {
		b.of[conversation] = map[string]bool{}
	}
	b.of[conversation][intent] = true
}

func (b *Begun) has(conversation, intent string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of[conversation][intent]
}

// Begin records that this process is about to append the intent of a call, or to go on with that call.
func Begin(ctx context.Context, conversation, intent string) {
	if limit, ok := ctx.Value(key{}).(limit); ok && limit.conversation == conversation {
		limit.own.add(conversation, intent)
	}
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
// When these have their results, it is made again. Calls that this process has begun are not
// under way elsewhere.
func Check(ctx context.Context, conversation string, history, added []canister.Canister) error {
	if err := checkMessage(ctx, conversation, history); err != nil {
		return err
	}
	limit, ok := ctx.Value(key{}).(limit)
	if !ok || limit.conversation != conversation {
		return nil
	}
	begun := begunIn(limit, history, added)
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
func begunIn(limit limit, history, added []canister.Canister) map[string]time.Time {
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
			switch {
			case limit.own.has(limit.conversation, c.ID): // an earlier intent is of a process whose call this one has taken over
				delete(begun, c.Invocation)
			case c.Key == "" || c.Key == calls.Key(limit.conversation, c.Invocation):
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
