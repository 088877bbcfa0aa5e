// SPDX-License-Identifier: Apache-2.0

package approve_test

import (
	"context"
	"fmt"
	"os"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/approve"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// A person at the terminal decides about calls that may change something. Here there is
// no terminal, so the call is denied.
func Example() {
	remove, err := invoker.New("remove", "Remove a file.",
		func(context.Context, struct{}) (string, error) { return "removed", nil }, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	roster, err := ensemble.NewRoster(ensemble.Local("files", remove))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(context.Background())
	model := conversetest.NewScript( // a real program has a model here
		conversetest.Line{Calls: []conversetest.Call{{Name: "files__remove", Arguments: "{}"}}},
		conversetest.Line{Text: "I was not allowed to remove it."},
	)
	piped, _, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	conversation := converse.New(model, roster, &converse.Options{
		Approve: approve.ExceptReads(approve.OnTerminal(piped, os.Stderr)), // os.Stdin in a real program
	})
	turn, err := conversation.Ask(context.Background(), canister.Text("Remove it."))
	fmt.Println(turn.Text(), err)
	// Output: I was not allowed to remove it. <nil>
}
