// SPDX-License-Identifier: Apache-2.0

package agenttool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

var userID = invoker.NewTrusted[int64]("user_id")

// done is the answer that ends a turn.
var done = conversetest.Line{Text: "Done."}

func asks(calls ...conversetest.Call) conversetest.Line { return conversetest.Line{Calls: calls} }

// call asks for a tool of the ensemble "local".
func call(tool, arguments string) conversetest.Call {
	return conversetest.Call{Name: "local__" + tool, Arguments: arguments}
}

// told expects the last result of a request to contain some text.
func told(text string) func(*converse.Request) error {
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

// fake is a tool that is a function.
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

// echo answers with its arguments.
func echo(name string) invoker.Invoker {
	return fn(name, func(_ context.Context, call *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts(fmt.Sprint(name, " ", string(call.Arguments)))}, nil
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
