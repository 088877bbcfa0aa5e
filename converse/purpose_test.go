// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/invoker"
)

// purposeful notes what it is asked for. In a conversation it calls the tool each
// time that it may.
type purposeful struct{ asked []converse.Purpose }

func (p *purposeful) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	p.asked = append(p.asked, request.Purpose)
	return func(yield func(converse.ModelEvent, error) bool) {
		reply := converse.Reply{Message: canister.Assistant{Finish: canister.FinishStop, Content: canister.Texts("Yes.")}}
		reply.Message.ID = request.NewID()
		if request.Purpose == converse.PurposeAnswer {
			reply.Message.Finish = canister.FinishInvocations
			reply.Invocations = []canister.Invocation{{
				Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID, CallID: "c", Name: "local__ask", Arguments: "{}",
			}}
		}
		yield(reply, nil)
	}
}

// Each request says what it is for, so that a model can leave out what belongs to
// another purpose.
func TestRequestsHaveAPurpose(t *testing.T) {
	ask := fn("ask", func(ctx context.Context, call *invoker.Call) (invoker.Output, error) {
		_, err := call.Model(ctx, &invoker.SampleRequest{Messages: []invoker.SampleMessage{{Role: "user", Content: canister.Texts("Well?")}}})
		return invoker.Output{Content: canister.Texts(strings.Repeat("many words ", 200))}, err
	})
	model := &purposeful{}
	talk := converse.New(model, newRoster(t, ask), &converse.Options{
		Limits:     converse.Limits{Exchanges: 4, FinalAnswer: true},
		Compaction: &converse.Compaction{Window: 1000, At: 0.5, Keep: 1, Trim: -1},
	})
	play(t, talk, "Go.")
	play(t, talk, "Again.")
	for _, purpose := range []converse.Purpose{converse.PurposeAnswer, converse.PurposeFinalAnswer, converse.PurposeSummary, converse.PurposeSampling} {
		if !slices.Contains(model.asked, purpose) {
			t.Errorf("no request was for %q: %q", purpose, model.asked)
		}
	}
	if slices.Contains(model.asked, "") {
		t.Errorf("a request had no purpose: %q", model.asked)
	}
}
