// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"fmt"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
)

// BenchmarkTurn is what the loop itself costs: a turn of 20 exchanges with one
// invocation each, with a model and a tool that cost next to nothing, on top
// of a history of some length.
func BenchmarkTurn(b *testing.B) {
	for _, length := range []int{0, 2000} {
		b.Run(fmt.Sprint("history=", length), func(b *testing.B) {
			roster := newRoster(b, echo("a"))
			var history []canister.Canister
			for i := range length {
				history = append(history, canister.Document{Head: canister.Head{ID: fmt.Sprintf("%026d", i)}})
			}
			n := 0
			asks := model(func(request *converse.Request, yield func(converse.ModelEvent, error) bool) {
				reply := converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}}}
				if n++; n%20 != 0 {
					reply.Invocations = []canister.Invocation{{
						Head: canister.Head{ID: request.NewID()}, Message: reply.Message.ID, CallID: "x", Name: "local__a", Arguments: `{"city":"Oslo"}`,
					}}
				}
				yield(reply, nil)
			})
			b.ReportAllocs()
			for b.Loop() {
				talk := converse.New(asks, roster, &converse.Options{History: history, Limits: converse.Limits{Exchanges: 20}})
				if _, err := talk.Ask(b.Context(), canister.Text("Go.")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
