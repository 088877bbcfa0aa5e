// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// fake is an invoker made of a function.
type fake struct {
	definition invoker.Definition
	run        func(ctx context.Context, call *invoker.Call) (invoker.Output, error)
}

func (f *fake) Definition() *invoker.Definition { return &f.definition }
func (f *fake) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	return f.run(ctx, call)
}

func fn(name string, run func(ctx context.Context, call *invoker.Call) (invoker.Output, error)) invoker.Invoker {
	return &fake{invoker.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, run}
}

func exclusive(i invoker.Invoker) invoker.Invoker {
	i.Definition().Exclusive = true
	return i
}

func readOnly(i invoker.Invoker) invoker.Invoker {
	i.Definition().Hints.ReadOnly = true
	return i
}

// echo answers with its arguments.
func echo(name string) invoker.Invoker {
	return fn(name, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(name + " " + string(call.Arguments))}, nil
	})
}

// waiter runs until its context ends.
func waiter(name string) invoker.Invoker {
	return fn(name, func(ctx context.Context, _ *invoker.Call) (invoker.Output, error) {
		<-ctx.Done()
		return invoker.Output{}, ctx.Err()
	})
}

func newRoster(t testing.TB, invokers ...invoker.Invoker) *ensemble.Roster {
	t.Helper()
	roster, err := ensemble.NewRoster(ensemble.Local("local", invokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roster.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return roster
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

// sound fails the test unless a history can be sent to a model.
func sound(t testing.TB, history []canister.Canister) {
	t.Helper()
	for _, problem := range sequence.Check(history) {
		t.Errorf("the history is not sound: %v", problem)
	}
}

func played(t testing.TB, script *conversetest.Script) {
	t.Helper()
	if err := script.Err(); err != nil {
		t.Error(err)
	}
}

// call asks for a tool of the ensemble "local".
func call(tool, arguments string) conversetest.Call {
	return conversetest.Call{Name: "local__" + tool, Arguments: arguments}
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

// told expects the last result of a request to contain some text.
func told(text string) func(*converse.Request) error {
	return func(request *converse.Request) error {
		found := results(request.History)
		if len(found) == 0 {
			return errors.New("there is no result")
		}
		if got := canister.TextOf(found[len(found)-1].Content); !strings.Contains(got, text) {
			return fmt.Errorf("the last result is %q and lacks %q", got, text)
		}
		return nil
	}
}

// counterSafe is counter for functions that are called concurrently.
func counterSafe() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("id-%d", n.Add(1)) }
}
