// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/testing/conversekit"
	"github.com/consort-go/consort/invoker"
)

// The tools, lines and checks of package conversekit.
var (
	fn, echo, newRoster = conversekit.Tool, conversekit.Echo, conversekit.NewRoster
	call, told          = conversekit.Call, conversekit.LastResult
	sound, played       = conversekit.CheckHistory, conversekit.CheckScript
)

func exclusive(i invoker.Invoker) invoker.Invoker {
	i.Definition().Exclusive = true
	return i
}

func readOnly(i invoker.Invoker) invoker.Invoker {
	i.Definition().Hints.ReadOnly = true
	return i
}

// waiter runs until its context ends.
func waiter(name string) invoker.Invoker {
	return fn(name, func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		<-ctx.Done()
		return invoker.Output{}, ctx.Err()
	})
}

// counter makes IDs that are the same in every run.
func counter() func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("id-%d", n) }
}

// play sends a message and returns the events.
func play(t testing.TB, talk *converse.Conversation, message string) []converse.Event {
	t.Helper()
	var events []converse.Event
	for event, err := range talk.Send(t.Context(), canister.Text(message)) {
		if err != nil {
			t.Fatalf("after %d events: %v", len(events), err)
		}
		events = append(events, event)
	}
	return events
}

func last(t testing.TB, events []converse.Event) converse.Turn {
	t.Helper()
	if len(events) > 0 {
		if done, ok := events[len(events)-1].(converse.TurnCompleted); ok {
			return done.Turn
		}
	}
	t.Fatalf("the turn did not complete: %v", events)
	return converse.Turn{}
}

// watchedLog calls a function before each append, which fails with its error.
type watchedLog struct {
	*history.Memory
	before func(ctx context.Context, added []canister.Canister) error
}

func newWatchedLog(before func(ctx context.Context, added []canister.Canister) error) *watchedLog {
	return &watchedLog{history.NewMemory(), before}
}

func (l *watchedLog) Append(ctx context.Context, conversation string, length int, canisters ...canister.Canister) error {
	if err := l.before(ctx, canisters); err != nil {
		return err
	}
	return l.Memory.Append(ctx, conversation, length, canisters...)
}

// results returns the results of a history in order.
func results(history []canister.Canister) []canister.Result {
	var found []canister.Result
	for _, c := range history {
		if r, ok := c.(canister.Result); ok {
			found = append(found, r)
		}
	}
	return found
}

// names lists the kinds of events, without the deltas.
func names(events []converse.Event) string {
	var list []string
	for _, event := range events {
		name := strings.TrimPrefix(fmt.Sprintf("%T", event), "converse.")
		if name != "TextDelta" {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// counterSafe is counter for functions that are called concurrently.
func counterSafe() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("id-%d", n.Add(1)) }
}
