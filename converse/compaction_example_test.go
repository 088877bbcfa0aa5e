// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
)

// A conversation that would outgrow its model is summarised, and goes on.
func ExampleCompaction() {
	counts := func(input int64) *canister.Usage { return &canister.Usage{Input: input, Output: 10} }
	model := conversetest.NewScript(
		conversetest.Line{Text: "Take the train at nine.", Usage: counts(500)},
		conversetest.Line{Text: "It arrives at noon.", Usage: counts(900)},
		conversetest.Line{Text: "The user goes to Oslo by the train at nine, which arrives at noon.", Usage: counts(200)}, // the summary
		conversetest.Line{Text: "A raincoat.", Usage: counts(300)},
	)
	talk := converse.New(model, nil, &converse.Options{
		Compaction: &converse.Compaction{Window: 1000, Keep: 1},
	})
	for _, message := range []string{"How do I get to Oslo?" + strings.Repeat(" Please.", 100), "When am I there?", "What should I wear?"} {
		for event, err := range talk.Send(context.Background(), canister.Text(message)) {
			if err != nil {
				log.Fatal(err)
			}
			switch event := event.(type) {
			case converse.CompactionCompleted:
				fmt.Println("summary:", canister.TextOf(event.Document.Content))
			case converse.MessageCompleted:
				fmt.Println("answer:", canister.TextOf(event.Message.Content))
			}
		}
	}
	fmt.Println(len(talk.History()), "canisters in the history")
	// Output:
	// answer: Take the train at nine.
	// answer: It arrives at noon.
	// summary: The user goes to Oslo by the train at nine, which arrives at noon.
	// answer: A raincoat.
	// 7 canisters in the history
}
