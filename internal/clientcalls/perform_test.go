// SPDX-License-Identifier: Apache-2.0

package clientcalls_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/clientcalls"
	"github.com/consort-go/consort/invoker"
	mcpserver "github.com/consort-go/consort/mcpadapter/server"
)

// Work that stands for a call of a tool, such as a message over HTTP for a call of converse, is done when it is
// approved, and the tool is not called. With other arguments it is not done: it cannot take them.
func TestApprovedWork(t *testing.T) {
	for _, c := range []struct {
		given canister.Answer
		code  invoker.Code
		done  int
	}{
		{canister.Answer{Verdict: canister.VerdictAllow}, "", 1},
		{canister.Answer{Verdict: canister.VerdictChange, Arguments: json.RawMessage(`{"to":"bob"}`)}, invoker.Denied, 0},
		{canister.Answer{Verdict: canister.VerdictDeny}, invoker.Denied, 0},
	} {
		w, gate, done := newWorld(t), clientcalls.NewGate(), 0
		roster, err := ensemble.NewRoster()
		if err != nil {
			t.Fatal(err)
		}
		server := mcpserver.New(roster, &mcpserver.Options{
			Tools: []invoker.Invoker{w.pay("Pay.")},
			Invoke: func(ctx context.Context, call *mcpserver.ToolCall) (invoker.Output, error) {
				return gate.Invoke(ctx, w.rules(w.store), call)
			},
		})
		perform := func() error {
			return server.Perform(as(t.Context(), "ada"), "pay", json.RawMessage(toAda), func(context.Context) error {
				done++
				return nil
			})
		}
		answer(t, w.store, fails(t, perform(), invoker.Conflict), c.given)
		if err := perform(); c.code != "" {
			fails(t, err, c.code)
		} else if err != nil {
			t.Errorf("%s: %v", c.given.Verdict, err)
		}
		if done != c.done || w.count() != 0 {
			t.Errorf("%s: the work was done %d times, and the tool was called %d times", c.given.Verdict, done, w.count())
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
