// SPDX-License-Identifier: Apache-2.0

package conversetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
)

// A test of a conversation: the model's answers are scripted, and the second line checks
// the result of the tool.
func ExampleScript() {
	ctx := context.Background()
	roster, err := ensemble.NewRoster(ensemble.Local("local", ensembletest.Returns("weather", "-4 °C, snow")))
	if err != nil {
		log.Fatal(err)
	}
	defer roster.Close(ctx)

	script := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{{Name: "local__weather", Arguments: `{"city":"Oslo"}`}}},
		conversetest.Line{
			Expect: func(request *converse.Request) error {
				last := request.History[len(request.History)-1]
				if result, ok := last.(canister.Result); !ok || canister.TextOf(result.Content) != "-4 °C, snow" {
					return errors.New("the weather is missing")
				}
				return nil
			},
			Text: "Take a warm coat.",
		},
	)
	turn, err := converse.New(script, roster, nil).Ask(ctx, canister.Text("What should I wear in Oslo?"))
	fmt.Println(turn.Text(), err)
	fmt.Println(script.Err())
	// Output:
	// Take a warm coat. <nil>
	// <nil>
}

// A conversation is recorded, and played again without its model and tools.
func ExampleRecord() {
	ctx := context.Background()
	roster, err := ensemble.NewRoster(ensemble.Local("local", ensembletest.Returns("weather", "-4 °C, snow")))
	if err != nil {
		log.Fatal(err)
	}
	defer roster.Close(ctx)
	model := conversetest.NewScript( // or package openaimodel's
		conversetest.Line{Calls: []conversetest.Call{{Name: "local__weather", Arguments: `{}`}}},
		conversetest.Line{Text: "It is."},
	)

	record := conversetest.Record(converse.New(model, roster, nil), roster)
	for _, err := range record.Send(ctx, canister.Text("Is it cold?")) {
		if err != nil {
			log.Fatal(err)
		}
	}
	transcript, err := record.Transcript()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(transcript.Format()))

	again, err := transcript.Replay(ctx, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", conversetest.Diff(transcript, again))
	// Output:
	// -- tools --
	// {"name":"local__weather","ensemble":"local","tool":"weather"}
	// -- turn 1/given --
	// {"kind":"user","id":"u1","content":[{"type":"text","text":"Is it cold?"}]}
	// -- turn 1/events --
	// {"event":"turn_started","tools":1}
	// {"event":"message_started"}
	// {"event":"message_completed","canister":"a1"}
	// {"event":"invocation_requested","canister":"i1"}
	// {"event":"exchange_completed","finish":"invocations"}
	// {"event":"invocation_started","invocation":"i1","name":"local__weather"}
	// {"event":"invocation_completed","invocation":"i1","name":"local__weather","canister":"r1"}
	// {"event":"message_started"}
	// {"event":"text_delta","text":"It is."}
	// {"event":"message_completed","canister":"a2"}
	// {"event":"exchange_completed","finish":"stop"}
	// {"event":"turn_completed","reason":"answered","answer":"a2","exchanges":2,"invocations":1}
	// -- turn 1/canisters --
	// {"kind":"assistant","id":"a1","model":"script","finish":"invocations"}
	// {"kind":"invocation","id":"i1","message":"a1","call_id":"call1","name":"local__weather","arguments":"{}"}
	// {"kind":"result","id":"r1","invocation":"i1","content":[{"type":"text","text":"-4 °C, snow"}]}
	// {"kind":"assistant","id":"a2","content":[{"type":"text","text":"It is."}],"model":"script","finish":"stop"}
	// ""
}
