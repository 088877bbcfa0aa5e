// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/waits"
	"github.com/consort-go/consort/ensemble"
)

// A call waits for its approval in the log, and not in a process.
func ExampleDefer() {
	ctx := context.Background()
	store := history.NewMemory() // one of those on a disk, in earnest
	roster, err := ensemble.NewRoster(ensemble.Local("local", echo("pay")))
	if err != nil {
		log.Fatal(err)
	}
	defer roster.Close(ctx)
	options := &converse.Options{
		ID:  "talk",
		Log: store,
		Approve: func(context.Context, converse.Approval) (converse.Decision, error) {
			return converse.Defer(48*time.Hour, "dana"), nil
		},
	}
	model := conversetest.NewScript(
		conversetest.Line{Calls: []conversetest.Call{call("pay", `{"euros":20}`)}},
		conversetest.Line{Text: "It is paid."},
	)
	turn, err := converse.New(model, roster, options).Ask(ctx, canister.Text("Pay the invoice."))
	if err != nil {
		log.Fatal(err)
	}
	wait := turn.Waits[0]
	fmt.Println(turn.Reason, "for", wait.Who, "about", wait.Arguments)

	// Later, anywhere.
	err = waits.Answer(ctx, store, "talk", canister.Answer{Wait: wait.ID, Verdict: canister.VerdictAllow, By: "dana"}, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	turn, err = converse.New(model, roster, options).Run(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(turn.Reason, turn.Text())
	// Output:
	// waiting for dana about {"euros":20}
	// answered It is paid.
}
