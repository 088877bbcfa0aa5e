// SPDX-License-Identifier: Apache-2.0

// Package conversekit has what tests of conversations share: tools that are functions, a
// roster, lines of a scripted model, and checks.
package conversekit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/canister/sequence"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// tool is an invoker that is a function.
type tool struct {
	definition invoker.Definition
	run        func(ctx context.Context, call *invoker.Call) (invoker.Output, error)
}

func (t *tool) Definition() *invoker.Definition { return &t.definition }

func (t *tool) Invoke(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
	return t.run(ctx, call)
}

// Tool returns a tool that is a function and takes any object.
func Tool(name string, run func(ctx context.Context, call *invoker.Call) (invoker.Output, error)) invoker.Invoker {
	return &tool{invoker.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, run}
}

// Echo returns a tool that answers with its arguments.
func Echo(name string) invoker.Invoker {
	return Tool(name, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(name + " " + string(call.Arguments))}, nil
	})
}

// NewRoster returns a roster with the ensemble "local", which has the tools. It is closed
// with the test.
func NewRoster(t testing.TB, tools ...invoker.Invoker) *ensemble.Roster {
	t.Helper()
	roster, err := ensemble.NewRoster(ensemble.Local("local", tools...))
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

// Call returns a call of a tool of the ensemble "local".
func Call(tool, arguments string) conversetest.Call {
	return conversetest.Call{Name: "local__" + tool, Arguments: arguments}
}

// LastResult expects the last result of a request to contain a text.
func LastResult(text string) func(*converse.Request) error {
	return func(request *converse.Request) error {
		for _, c := range slices.Backward(request.History) {
			if result, ok := c.(canister.Result); ok {
				if got := canister.TextOf(result.Content); !strings.Contains(got, text) {
					return fmt.Errorf("the last result is %q and lacks %q", got, text)
				}
				return nil
			}
		}
		return errors.New("there is no result")
	}
}

// CheckHistory fails the test unless a history can be sent to a model.
func CheckHistory(t testing.TB, history []canister.Canister) {
	t.Helper()
	for _, problem := range sequence.Check(history) {
		t.Errorf("the history is not sound: %v", problem)
	}
}

// CheckScript fails the test unless a script was played to its end.
func CheckScript(t testing.TB, script *conversetest.Script) {
	t.Helper()
	if err := script.Err(); err != nil {
		t.Error(err)
	}
}

// Instant is a model that answers at once: a message with one call of the tool that it
// names, and a result with a text.
type Instant string

// Exchange implements [converse.Model].
func (tool Instant) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		message := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Finish: canister.FinishStop, Content: canister.Texts("It rains in Oslo.")}
		if request.History[len(request.History)-1].Kind() == canister.KindResult {
			yield(converse.Reply{Message: message}, nil)
			return
		}
		message.Finish, message.Content = canister.FinishInvocations, canister.Texts("I look it up.")
		yield(converse.Reply{Message: message, Invocations: []canister.Invocation{{
			Head: canister.Head{ID: request.NewID()}, Message: message.ID, CallID: "call", Name: string(tool), Arguments: `{"what":"the weather in Oslo"}`,
		}}}, nil)
	}
}
