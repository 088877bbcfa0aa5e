// SPDX-License-Identifier: Apache-2.0

package historytest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// Exchange is the model of the conversation. It answers with any text, any calls, and
// sometimes not at all.
func (l *life) Exchange(_ context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		if l.chance(12) {
			yield(nil, &converse.ModelError{Message: l.text()})
			return
		}
		finishes := []canister.Finish{canister.FinishStop, canister.FinishLength, canister.FinishRefusal, canister.FinishContentFilter}
		reply := converse.Reply{Message: canister.Assistant{Finish: finishes[l.of(0, 0, 0, 1, 2, 3)], Model: "fickle"}}
		reply.Message.ID = request.NewID()
		if l.chance(2) {
			reply.Message.Content = canister.Texts(l.text())
		}
		if l.chance(2) {
			reply.Message.Usage = &canister.Usage{Input: int64(l.of(0, 10)), Output: int64(l.of(1, 1000))}
		}
		for i := range l.of(0, 0, 1, 2, 3, 5) {
			reply.Message.Finish = canister.FinishInvocations
			name := []string{"reads", "twice", "once", "asks", "nobody"}[l.of(0, 1, 2, 3, 4)]
			reply.Invocations = append(reply.Invocations, canister.Invocation{
				Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID, CallID: fmt.Sprint("call ", i),
				Name: "local__" + name, Arguments: []string{`{}`, ``, `{"a":1.50}`, `{"a`}[l.of(0, 1, 2, 2, 3)],
			})
		}
		yield(reply, nil)
	}
}

// tools returns the tools of a life: one that only reads, one that may be called twice,
// one that may not, and one that asks the user.
func (l *life) tools() *ensemble.Ensemble {
	make := func(name string, hints invoker.Hints) invoker.Invoker {
		definition := invoker.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Hints: hints}
		tool, err := invoker.Raw(definition, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) { return l.run(ctx, name, call) }, nil)
		if err != nil {
			panic(err) // the definition is valid
		}
		return tool
	}
	return ensemble.Local("local",
		make("reads", invoker.Hints{ReadOnly: true}), make("twice", invoker.Hints{Idempotent: true}),
		make("once", invoker.Hints{}), make("asks", invoker.Hints{Idempotent: l.chance(2)}))
}

func (l *life) run(ctx context.Context, name string, call *invoker.Call) (invoker.Output, error) {
	if name == "asks" {
		for range l.of(1, 2) {
			if _, err := call.Ask(ctx, &invoker.ElicitRequest{Message: l.text()}); err != nil {
				return invoker.Output{}, err
			}
		}
	}
	if l.chance(4) {
		return invoker.Output{}, invoker.Failf(invoker.NotFound, "%s", l.text())
	}
	output := invoker.Output{Content: canister.Texts(l.text())}
	if l.chance(3) {
		output.Content = append(output.Content,
			canister.ImageContent{Data: []byte(l.text()), MIME: "image/png"},
			canister.StructuredContent{JSON: json.RawMessage(`{"z":0.10,"y":"<&>"}`)})
	}
	return output, nil
}
